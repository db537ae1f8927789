//! `wf use`: sets the default workstream.

use model::exit::WfExit;
use serde_json::json;

use super::App;
use crate::exit::Outcome;

/// Chooses it.
pub(crate) fn run(app: &App, id: &str) -> Outcome {
    let dirs = app.dirs()?;
    let workstream = dirs.find_workstream(id)?;
    dirs.set_current(&workstream.meta.id)?;
    app.ui.line(&format!("Current workstream of {}: {id}", dirs.project.name));
    app.ui.document(&json!({"project": dirs.project.name, "workstream": id}));
    Ok(WfExit::Success)
}
