//! `wf use`: the workstream that commands mean when they name none.

use model::exit::WfExit;
use serde_json::json;

use super::App;
use crate::exit::Outcome;

/// Chooses it.
pub(crate) fn run(app: &App, id: &str) -> Outcome {
    let site = app.site()?;
    let workstream = site.find_workstream(id)?;
    site.set_current(&workstream.meta.id)?;
    app.ui.line(&format!("Current workstream of {}: {id}", site.project.name));
    app.ui.document(&json!({"project": site.project.name, "workstream": id}));
    Ok(WfExit::Success)
}
