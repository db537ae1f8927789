//! `wf skip`: marks a micro-commit as done without implementing it.

use clap::Args;
use model::id::MicroCommitId;
use serde_json::json;

use super::{App, person};
use crate::cli::Which;
use crate::exit::{Failure, OrExit, Outcome, WfExit};
use crate::rules::plan::mark_done;
use crate::rules::suggest::hint;

/// Mark the next micro-commit as done without doing it
#[derive(Debug, Args)]
pub(crate) struct SkipArgs {
    #[command(flatten)]
    which: Which,
    /// The micro-commit, instead of the next one
    #[arg(long, value_name = "COMMIT")]
    commit: Option<String>,
    /// Reason for the notes
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
}

/// Marks it and records who skipped it and why. Refused while a run is active.
pub(crate) async fn cmd_skip(app: &App, args: &SkipArgs) -> Outcome {
    let SkipArgs { which, commit, message } = args;
    let (dirs, workstream) = app.open(which)?;
    let _run = dirs.try_lock_workstream(&workstream.meta.id, "skip")?;
    let plan = workstream.load_plan()?;
    let id = match commit {
        Some(text) => MicroCommitId::parse(text).or_exit(WfExit::Config)?,
        None => plan.next().map(|next| next.id.clone()).ok_or_else(|| {
            Failure::usage("every micro-commit is done; there is nothing to skip")
        })?,
    };
    workstream.mark_plan(mark_done, &id)?.ok_or_else(|| {
        let known = plan.commits.iter().map(|commit| commit.id.as_str());
        Failure::usage(format!("the plan has no {id}{}", hint(id.as_str(), known)))
    })?;
    let why = message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    workstream.note(&format!("{} skipped {id}{why}", person()), host::clock::now())?;
    app.ui.line(&format!("Skipped {id}"));
    app.ui.document(&json!({"workstream": workstream.meta.id, "skipped": id}));
    Ok(WfExit::Success)
}
