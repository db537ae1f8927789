//! The single finaliser: however a cycle ended, it writes status, touched files, result and summary, in this order.

use model::id::Sha;
use run_store::env_snapshot::{ENV_SNAPSHOT, observe_env, render_env_snapshot};

use super::RunContext;
use crate::disk::run_dir::{RESULT, SUMMARY};
use crate::disk::{OpenRun, StateFile, Workstream};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::flow::product::open_product;
use crate::flow::refresh::{Tips, refresh};
use crate::flow::stage::tidy;
use crate::rules::pipeline::{Ending, EndingKind, RunStage};
use crate::rules::plan::Plan;
use crate::rules::result::{RunResult, StageRecord, StageStatus, render_summary};
use crate::rules::run_id::RunTopic;
use crate::rules::schema::{Schema, render_json};
use crate::rules::touched::parse_touched;

/// Finishes a cycle; an error can only make the ending worse. The number of micro-commits left bounds a loop.
pub(super) async fn finish(context: &mut RunContext, ending: Ending) -> (Ending, usize) {
    let left = context.plan.as_ref().map_or(0, Plan::open_count);
    let ending = match write_state(context, &ending).await {
        Ok(()) => ending,
        Err(failure) => worse(ending, &failure),
    };
    host::failpoint::hit("wf-refresh");
    if context.lock.is_some() {
        refresh_state(context).await;
    }
    context.notes.extend(context.log.take_failure().map(|error| format!("commands.log: {error}")));
    let written = match write_result(context, &ending).await {
        // Copies that are removed anyway may have filled the disk.
        Err(_) => {
            tidy(&context.run.path(), context.work_location());
            write_result(context, &ending).await
        }
        written => written,
    };
    let ending = match written {
        Ok(()) => ending,
        Err(failure) => worse(ending, &failure),
    };
    host::failpoint::hit("wf-result-written");
    if context.lock.is_some() {
        // Ignored: a leftover journal makes the next run check again and find everything done.
        OpenRun::remove(&context.dirs, &context.id).ok();
    }
    (ending, left)
}

fn worse(ending: Ending, failure: &Failure) -> Ending {
    let message = [ending.message.as_str(), &failure.to_string()].join("; ");
    let exit = if ending.exit == WfExit::Success { failure.status } else { ending.exit };
    Ending {
        exit,
        message: message.trim_start_matches("; ").to_owned(),
        kind: EndingKind::NotPassed,
        ..ending
    }
}

/// Names the directory and writes the ending to meta.env. A run that never got the lock does not write there.
async fn write_state(context: &mut RunContext, ending: &Ending) -> WfResult<()> {
    if context.run.is_pending() {
        context.run.set_topic(RunTopic::None)?;
    }
    if context.lock.is_none() || ending.kind == EndingKind::MicroCommit {
        return Ok(());
    }
    let dir = context.dirs.workstream_dir(&context.id);
    let _lock = context.dirs.lock_global("end of run").await?;
    let mut workstream = Workstream::load_dir(&dir)?;
    let mut changes =
        vec![("LAST_RUN_ID", context.run.name()), ("LAST_RESULT", ending.outcome.word())];
    let blocked_by = ending.blocked_by.join(",");
    if let Some(status) = ending.becomes {
        changes.extend([("STATUS", status.word()), ("BLOCKED_BY", blocked_by.as_str())]);
    }
    workstream.change(&changes)?;
    context.workstream = Some(workstream);
    Ok(())
}

/// Runs REFRESH, which follows every ending. Its errors are recorded and do not change the ending.
async fn refresh_state(context: &mut RunContext) {
    let start = host::clock::monotonic();
    let outcome = refresh_inner(context).await;
    let (status, notes) = match outcome {
        Ok(()) => (StageStatus::Passed, String::new()),
        Err(failure) => (StageStatus::Failed, failure.to_string()),
    };
    let duration_seconds = start.elapsed().as_secs_f64();
    context.stages.insert(RunStage::Refresh, StageRecord { status, duration_seconds, notes });
}

/// Opens the repository again, because the handle of the stages is cancelled by the signal that may have ended them.
async fn refresh_inner(context: &mut RunContext) -> WfResult<()> {
    let Some(mut workstream) = context.workstream.clone() else { return Ok(()) };
    let product = open_product(&context.dirs).await?.logged(context.log.callback());
    let tips = Tips::observe(&product).await?;
    let _lock = context.dirs.lock_global("refresh").await?;
    refresh(&product, &tips, &mut workstream).await?;
    context.dirs.write_active()?;
    context.touched = Some(parse_touched(&workstream.touched()?).count());
    context.workstream = Some(workstream);
    Ok(())
}

async fn write_result(context: &RunContext, ending: &Ending) -> WfResult<()> {
    let now = host::clock::now();
    let snapshot = render_env_snapshot(&observe_env(now).await);
    context.save(ENV_SNAPSHOT, snapshot.as_bytes())?;
    let moved = context.head.as_ref().filter(|head| context.head_before.as_ref() != Some(*head));
    let stages = context.stages.iter();
    let (project, times) = (&context.dirs.project.name, [context.started, host::clock::now()]);
    let result = RunResult {
        microcommit: context.commit.as_ref().map(|commit| commit.id.clone()),
        base_sha: context.workstream.as_ref().map(|it| it.meta.base_sha.to_string()),
        commit_sha: context.accepted.as_ref().or(moved).map(Sha::to_string),
        touched_files_count: context.touched,
        stages: stages.map(|(stage, record)| (stage.key().to_owned(), record.clone())).collect(),
        ..RunResult::new(project, &context.id, times, &context.notes, ending)
    };
    let value = serde_json::to_value(&result).or_exit(WfExit::Internal)?;
    Schema::Result.check(&value).or_exit(WfExit::Internal)?;
    context.save(SUMMARY, render_summary(context.run.name(), &result).as_bytes())?;
    context.save(RESULT, render_json(&result).as_bytes())
}
