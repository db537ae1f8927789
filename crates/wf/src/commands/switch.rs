//! `wf use`: sets the default workstream.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use serde_json::json;

use super::App;
use crate::commands::complete::workstream_ids;
use crate::exit::{Outcome, WfExit};

/// Set the default workstream of commands
#[derive(Debug, Args)]
pub(crate) struct UseArgs {
    /// The workstream
    #[arg(add = ArgValueCandidates::new(workstream_ids))]
    id: String,
}

pub(crate) fn cmd_use(app: &App, UseArgs { id }: &UseArgs) -> Outcome {
    let dirs = app.dirs()?;
    let workstream = dirs.find_workstream(id)?;
    dirs.set_current(&workstream.meta.id)?;
    app.ui.line(&format!("Current workstream of {}: {id}", dirs.project.name));
    app.ui.document(&json!({"project": dirs.project.name, "workstream": id}));
    Ok(WfExit::Success)
}
