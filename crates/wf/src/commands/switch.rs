//! `wf use`: sets, shows and clears the default workstream.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use serde_json::json;

use super::App;
use crate::commands::complete::workstream_ids;
use crate::exit::{Outcome, WfExit};

/// Set the default workstream of commands; without one, show it
#[derive(Debug, Args)]
pub(crate) struct UseArgs {
    /// The workstream
    #[arg(add = ArgValueCandidates::new(workstream_ids))]
    id: Option<String>,
    /// Have no default any more
    #[arg(long, conflicts_with = "id")]
    clear: bool,
}

pub(crate) fn cmd_use(app: &App, UseArgs { id, clear }: &UseArgs) -> Outcome {
    let dirs = app.dirs()?;
    let name = &dirs.project.name;
    let current = match id {
        Some(id) => {
            let workstream = dirs.find_workstream(id)?;
            dirs.set_current(&workstream.meta.id)?;
            Some(id.clone())
        }
        None if *clear => {
            dirs.clear_current()?;
            None
        }
        None => dirs.current(),
    };
    match &current {
        Some(id) => app.ui.line(&format!("Current workstream of {name}: {id}")),
        None => app.ui.line(&format!("{name} has no current workstream; set one: wf use ID")),
    }
    app.ui.document(&json!({"project": name, "workstream": current}));
    Ok(WfExit::Success)
}
