//! `wf approve` and `wf reject`: a person's word on the last micro-commit, where the profile wants people to see every one

use clap::Args;
use model::id::MicroCommitId;
use serde_json::json;

use super::{App, person};
use crate::cli::Which;
use crate::disk::rejection::{Rejection, add_rejection};
use crate::disk::{ProjectDirs, Workstream, list_runs, load_result};
use crate::exit::{Failure, Outcome, WfExit, WfResult};
use crate::rules::meta::stamp;
use crate::rules::pipeline::RunOutcome;
use crate::rules::plan::mark_undone;
use crate::rules::status::WorkstreamStatus;

pub(crate) async fn cmd_approve(app: &App, which: &Which) -> Outcome {
    let (dirs, mut workstream) = app.open(which)?;
    let (commit, sha) = last_accepted(&dirs, &workstream)?;
    let _lock = dirs.lock_global(&format!("approve {}", workstream.meta.id)).await?;
    workstream.change(&[("APPROVED_SHA", &sha)])?;
    workstream.note(&format!("{} approved {commit} at {sha}", person()), host::clock::now())?;
    let id = &workstream.meta.id;
    app.ui.line(&format!("Approved {commit}"));
    app.ui.document(&json!({"workstream": id, "approved": commit, "sha": sha}));
    app.ui.status(&format!("Continue: wf run {id} --loop"));
    Ok(WfExit::Success)
}

/// Reject the last micro-commit, with a reason for the agent
#[derive(Debug, Args)]
pub(crate) struct RejectArgs {
    #[command(flatten)]
    pub(super) which: Which,
    /// Reason, for the agent
    #[arg(long, short, value_name = "TEXT")]
    pub(super) message: String,
}

/// Marks the last micro-commit as not done and records the reason for the next attempt. Its commits stay.
pub(crate) async fn cmd_reject(app: &App, args: &RejectArgs) -> Outcome {
    let message = &args.message;
    if message.trim().is_empty() {
        return Err(Failure::usage("give a reason for the agent: -m REASON"));
    }
    let (dirs, mut workstream) = app.open(&args.which)?;
    let _run = dirs.try_lock_workstream(&workstream.meta.id, "reject")?;
    workstream = Workstream::load_dir(&workstream.dir)?;
    if workstream.meta.status == WorkstreamStatus::Done {
        return Err(Failure::usage(format!("{} is merged already", workstream.meta.id)));
    }
    let (commit, sha) = last_accepted(&dirs, &workstream)?;
    let _lock = dirs.lock_global(&format!("reject {}", workstream.meta.id)).await?;
    let rejection = Rejection {
        commit: commit.clone(),
        sha,
        message: message.clone(),
        by: person(),
        at: stamp(host::clock::now()),
    };
    // The reason first: without it the next attempt would repeat the same work.
    add_rejection(&workstream.dir, rejection)?;
    workstream
        .mark_plan(mark_undone, &commit)?
        .ok_or_else(|| Failure::usage(format!("the plan has no {commit} any more")))?;
    let changes =
        [("STATUS", WorkstreamStatus::Implement.word()), ("BLOCKED_BY", ""), ("APPROVED_SHA", "")];
    workstream.change(&changes)?;
    workstream.note(&format!("{} rejected {commit}: {message}", person()), host::clock::now())?;
    dirs.write_active()?;
    let id = &workstream.meta.id;
    app.ui.line(&format!("Rejected {commit}"));
    app.ui.document(&json!({"workstream": id, "rejected": commit}));
    app.ui.status(&format!("Repeat it: wf run {id}"));
    Ok(WfExit::Success)
}

/// Finds the last accepted micro-commit and its commit. Later runs may have accepted nothing.
fn last_accepted(dirs: &ProjectDirs, workstream: &Workstream) -> WfResult<(MicroCommitId, String)> {
    let id = &workstream.meta.id;
    let nothing = || {
        Failure::usage(format!("{id} has accepted no micro-commit yet; make one with: wf run {id}"))
    };
    let sha = workstream.meta.last_commit_sha.as_ref().ok_or_else(nothing)?.to_string();
    let root = dirs.runs_dir();
    for name in list_runs(&root)? {
        // An unreadable result cannot prove an acceptance.
        let Ok(Some(result)) = load_result(&root.join(name)) else { continue };
        let is_it = result.project == dirs.project.name.as_str()
            && result.workstream == id.as_str()
            && result.status == RunOutcome::Passed
            && result.commit_sha.as_ref() == Some(&sha);
        if let Some(commit) = result.microcommit.filter(|_| is_it) {
            return Ok((commit, sha));
        }
    }
    Err(nothing())
}
