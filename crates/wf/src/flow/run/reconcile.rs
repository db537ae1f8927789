//! Recovery: the next run finishes a run whose process was killed.
//!
//! The journal records how far the run came. If every gate had passed, the run is rolled forward: plan, status and result
//! are completed. Otherwise it is a failed run, and its commits stay on the branch.

use jiff::Timestamp;
use model::id::Sha;

use super::RunContext;
use super::accept::accept_commit;
use super::context::owner_of;
use crate::disk::run_dir::{
    RESULT, SUMMARY, is_held_by_its_process, last_sign, list_abandoned, remove_empty,
    remove_unowned,
};
use crate::disk::{OpenRun, StateFile, WfRunDir, Workstream, list_runs, save};
use crate::exit::{Failure, WfExit, WfResult};
use crate::flow::stage::stop_boxes;
use crate::rules::pipeline::{Ending, EndingKind, RunOutcome, RunStage};
use crate::rules::result::{INTERNAL, RunResult, render_summary};
use crate::rules::run_id::RunTopic;
use crate::rules::schema::{Schema, render_json};

pub(super) async fn reconcile(context: &mut RunContext) -> WfResult<()> {
    finish_journalled(context).await?;
    finish_abandoned(context)
}

/// Finishes runs that died while they waited for the lock; only their directories record them.
fn finish_abandoned(context: &mut RunContext) -> WfResult<()> {
    let owner = owner_of(&context.dirs, &context.id);
    let stem_end = format!("_{}_{}", context.dirs.project.name, context.id);
    remove_unowned(&context.dirs.runs_dir(), &stem_end)?;
    for (mut run, started) in list_abandoned(&context.dirs.runs_dir(), &owner)? {
        let left = OpenRun {
            stem: run.stem().to_owned(),
            directory: run.name().to_owned(),
            stage: RunStage::Lock.key().to_owned(),
            started,
            micro_commit: None,
            accepted: None,
        };
        let ended = end_of(&left, Some(&run))?;
        remove_empty(&context.dirs.runs_dir(), run.stem())?;
        run.set_topic(RunTopic::None)?;
        write_result(context, (&left, ended), &ending_of(&left), &run)?;
        context.notes.push(format!("closed the run {}, whose process died early", run.name()));
    }
    Ok(())
}

async fn finish_journalled(context: &mut RunContext) -> WfResult<()> {
    let Some(left) = OpenRun::load(&context.dirs, &context.id)? else { return Ok(()) };
    let mut workstream = Workstream::load_dir(&context.dirs.workstream_dir(&context.id))?;
    remove_empty(&context.dirs.runs_dir(), &left.stem)?;
    let mut run = find_dir(context, &left)?;
    let ended = end_of(&left, run.as_ref())?;
    if let Some(run) = &run {
        // Boxes may outlive their run. They work on copies, so ending them loses nothing.
        let stopped = stop_boxes(&run.path())
            .await
            .map_err(|error| Failure::new(WfExit::General, error.to_string()))?;
        if stopped > 0 {
            context.notes.push(format!("stopped {stopped} boxes of the run {}", run.name()));
        }
    }
    if run.as_ref().is_some_and(|run| run.file(RESULT).is_file()) {
        // The run wrote everything and only failed to close its journal.
        return Ok(OpenRun::remove(&context.dirs, &context.id)?);
    }
    let left = forward_or_not(left, &workstream);
    let ending = ending_of(&left);
    if let Some(run) = run.as_mut().filter(|run| run.is_pending()) {
        run.set_topic(left.micro_commit.as_ref().map_or(RunTopic::None, RunTopic::MicroCommit))?;
    }
    let name = run.as_ref().map_or(left.directory.clone(), |run| run.name().to_owned());
    match (&left.accepted, &left.micro_commit) {
        (Some(commit), Some(id)) => {
            accept_commit(&context.dirs, &mut workstream, id, commit, &name).await?;
        }
        _ => {
            let _lock = context.dirs.lock_global("reconcile").await?;
            let changes = [("LAST_RUN_ID", name.as_str()), ("LAST_RESULT", ending.outcome.word())];
            workstream.change(&changes)?;
        }
    }
    if let Some(run) = run {
        write_result(context, (&left, ended), &ending, &run)?;
    }
    context.notes.push(format!("recovered the run {name}, whose process died in {}", left.stage));
    Ok(OpenRun::remove(&context.dirs, &context.id)?)
}

/// Drops the acceptance if the micro-commit is no longer in the plan; the run then counts as failed.
fn forward_or_not(left: OpenRun, workstream: &Workstream) -> OpenRun {
    // A plan that cannot be read may still contain it, and its error is reported elsewhere.
    let is_gone = left
        .micro_commit
        .as_ref()
        .is_some_and(|id| workstream.load_plan().is_ok_and(|plan| plan.find(id).is_none()));
    let accepted = left.accepted.clone().filter(|_| !is_gone);
    OpenRun { accepted, ..left }
}

/// Finds the directory of the run, which may have been renamed after the journal was last written. Then a run that began in
/// the same second may have its old name.
fn find_dir(context: &RunContext, left: &OpenRun) -> WfResult<Option<WfRunDir>> {
    let root = context.dirs.runs_dir();
    let reopen = |name: &str| WfRunDir::reopen(&root, &left.stem, name);
    let is_another =
        |name: &str| name == context.run.name() || is_held_by_its_process(&root.join(name));
    if root.join(&left.directory).is_dir() && !is_another(&left.directory) {
        return Ok(Some(reopen(&left.directory)));
    }
    let names = list_runs(&root)?;
    let prefix = format!("{}_", left.stem);
    let renamed = names.iter().find(|name| {
        name.starts_with(&prefix)
            && !is_another(name.as_str())
            && !root.join(name).join(RESULT).exists()
    });
    Ok(renamed.map(|name| reopen(name)))
}

/// The time until which a run worked: not that of the run that found it, which may be days later.
fn end_of(left: &OpenRun, run: Option<&WfRunDir>) -> WfResult<Timestamp> {
    let sign = run.map(|run| last_sign(&run.path())).transpose()?.flatten();
    Ok(sign.unwrap_or(left.started).clamp(left.started, host::clock::now().max(left.started)))
}

fn ending_of(left: &OpenRun) -> Ending {
    let stage = RunStage::from_key(&left.stage);
    let ending = match left.accepted {
        Some(_) => Ending::new(RunOutcome::Passed, WfExit::Success, EndingKind::MicroCommit),
        None => Ending::new(RunOutcome::Failed, WfExit::General, EndingKind::NotPassed),
    };
    Ending {
        failed_stage: stage.filter(|_| left.accepted.is_none()),
        message: "the process died; this result was written by the next run".to_owned(),
        ..ending
    }
}

fn write_result(
    context: &RunContext,
    (left, ended): (&OpenRun, Timestamp),
    ending: &Ending,
    run: &WfRunDir,
) -> WfResult<()> {
    let (project, times) = (&context.dirs.project.name, [left.started, ended]);
    let mut result = RunResult {
        microcommit: left.micro_commit.clone(),
        commit_sha: left.accepted.as_ref().map(Sha::to_string),
        ..RunResult::new(project, &context.id, times, &[], ending)
    };
    if left.accepted.is_none() {
        result.failed_stage.get_or_insert_with(|| INTERNAL.to_owned());
    }
    debug_assert!(Schema::Result.check(&serde_json::json!(result)).is_ok());
    save(&run.file(SUMMARY), render_summary(run.name(), &result).as_bytes())?;
    Ok(save(&run.file(RESULT), render_json(&result).as_bytes())?)
}
