//! `wf skip`: marks a micro-commit as done without implementing it.

use clap::Args;
use model::exit::WfExit;
use model::id::MicroCommitId;
use serde_json::json;

use super::{App, person};
use crate::cli::Which;
use crate::disk::{DiskError, save};
use crate::exit::{Failure, OrExit, Outcome};
use crate::rules::plan::mark_done;

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
    let dirs = app.dirs()?;
    let workstream = app.workstream(&dirs, which)?;
    let _run = dirs.try_lock_workstream(&workstream.meta.id, "skip")?;
    let plan = workstream.load_plan()?;
    let id = match commit {
        Some(text) => MicroCommitId::parse(text).or_exit(WfExit::Config)?,
        None => plan.next().map(|next| next.id.clone()).ok_or_else(|| {
            Failure::usage("every micro-commit is done; there is nothing to skip")
        })?,
    };
    let text = workstream.plan_text()?.unwrap_or_default();
    let path = workstream.plan_path();
    let marked = mark_done(&text, &id).map_err(|error| DiskError::invalid(&path, error))?;
    let marked = marked.ok_or_else(|| {
        let hint = crate::rules::suggest::hint(
            id.as_str(),
            plan.commits.iter().map(|commit| commit.id.as_str()),
        );
        Failure::usage(format!("the plan has no {id}{hint}"))
    })?;
    save(&path, marked.as_bytes())?;
    let why = message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    workstream.note(&format!("{} skipped {id}{why}", person()), host::clock::now())?;
    app.ui.line(&format!("Skipped {id}"));
    app.ui.document(&json!({"workstream": workstream.meta.id, "skipped": id}));
    Ok(WfExit::Success)
}
