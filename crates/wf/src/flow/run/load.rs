//! The stages LOCK, LOAD, SELECT and CLARIFICATION_CHECK: they validate everything before any work starts.

use host::signal::Cancel;

use super::reconcile::reconcile;
use super::{RunContext, RunOptions};
use crate::disk::Workstream;
use crate::disk::question::blocking_questions;
use crate::exit::{OrExit, WfExit, WfResult};
use crate::flow::base::check_rewritten;
use crate::flow::forward::mend_forward;
use crate::flow::gate::is_awaiting_approval;
use crate::flow::product::{check_accepted, check_worktree, open_product, own_changes};
use crate::rules::pipeline::{RunMode, RunStage, StageOutcome};
use crate::rules::plan::parse_plan;
use crate::rules::run_id::RunTopic;
use crate::rules::status::WorkstreamStatus;

/// Waits for the workstream's lock, unless the previous cycle handed it over. The workstream must exist first, because a
/// lock file for a mistyped name would never be removed.
pub(super) async fn lock(context: &mut RunContext, cancel: &Cancel) -> WfResult<StageOutcome> {
    context.dirs.find_workstream(context.id.as_str())?;
    if context.lock.is_none() {
        let note = format!("wf run {}", context.id);
        let dirs = context.dirs.clone();
        context.lock = tokio::select! {
            reason = cancel.cancelled() => return Ok(StageOutcome::Stopped { message: reason.to_string() }),
            lock = dirs.lock_workstream(&context.id, &note) => Some(lock?),
        };
    }
    // A crashed run is recovered before this one writes its own journal.
    reconcile(context).await?;
    context.write_journal(RunStage::Lock)?;
    Ok(StageOutcome::Passed)
}

/// Reads project and workstream under the lock and checks the worktree.
pub(super) async fn load(
    context: &mut RunContext,
    options: &RunOptions<'_>,
) -> WfResult<StageOutcome> {
    let failed = |message: String| Ok(StageOutcome::failed(RunStage::Load, message));
    let (mut profile, warnings) = context.dirs.load_profile()?;
    profile.pause = options.pause.unwrap_or(profile.pause);
    context.notes.extend(warnings);
    context.profile = Some(profile);
    let workstream = Workstream::load_dir(&context.dirs.workstream_dir(&context.id))?;
    let product = open_product(&context.dirs).await?;
    let product = product.logged(context.log.callback()).cancelled_by(options.cancel.clone());
    if let Err(fault) = check_worktree(&context.dirs, &product, &workstream).await? {
        return failed(fault.to_string());
    }
    mend_forward(&context.dirs, &product, &context.id).await?;
    let base = &workstream.meta.base_sha;
    if product.user().resolve_commit(base.as_str()).await.or_exit(WfExit::General)?.is_none() {
        return failed(format!("BASE_SHA {base} does not exist in the repository"));
    }
    if let Err(message) = check_rewritten(&context.dirs, &product, &workstream).await? {
        return failed(message);
    }
    let head = product.head(&workstream.meta.worktree).await.or_exit(WfExit::General)?;
    if let Err(message) = check_accepted(&product, &workstream, head.as_ref()).await? {
        return failed(message);
    }
    let Some(text) = workstream.plan_text()? else {
        return failed(format!("the plan is missing: {}", workstream.plan_path().display()));
    };
    let dirty = own_changes(&product, &workstream.meta.worktree).await?;
    context.notes.extend(dirty.iter().map(|dirty| {
        format!("uncommitted before the run: {}", String::from_utf8_lossy(&dirty.path))
    }));
    context.head_before = head.clone();
    context.head = head;
    context.accepted_base = workstream.meta.last_commit_sha.clone().or_else(|| Some(base.clone()));
    context.plan_text = text;
    context.product = Some(product);
    context.workstream = Some(workstream);
    Ok(StageOutcome::Passed)
}

pub(super) fn select(context: &mut RunContext) -> WfResult<StageOutcome> {
    let workstream = context.loaded()?;
    let status = workstream.meta.status;
    let plan = match parse_plan(&context.plan_text) {
        Ok(plan) => plan,
        Err(error) => {
            let message = format!("{}: {error}", workstream.plan_path().display());
            return Ok(StageOutcome::Failed { status: WfExit::Config, message });
        }
    };
    context.notes.extend(plan.warnings.iter().map(|warning| format!("plan.md {warning}")));
    if plan.wanted_count() == 0 {
        return Ok(StageOutcome::failed(RunStage::Select, "the plan has no micro-commits"));
    }
    let next = plan.next().cloned();
    context.plan = Some(plan);
    match next {
        Some(commit) => {
            context.run.set_topic(RunTopic::MicroCommit(&commit.id))?;
            context.commit = Some(commit);
            context.write_journal(RunStage::Select)?;
            Ok(StageOutcome::Passed)
        }
        None if matches!(status, WorkstreamStatus::MergeReady | WorkstreamStatus::Done) => {
            Ok(StageOutcome::Nothing)
        }
        None => Ok(StageOutcome::AllDone),
    }
}

/// Blocks while a blocking question is pending. Under supervision a loop also blocks until the last micro-commit is
/// approved or rejected; a single cycle does not, because a person started it.
pub(super) fn check_people(context: &mut RunContext, mode: RunMode) -> WfResult<StageOutcome> {
    let workstream = context.loaded()?;
    let by = blocking_questions(&workstream.dir)?;
    if !by.is_empty() {
        return Ok(StageOutcome::Blocked { by });
    }
    let is_next = context.commit.is_some() && mode == RunMode::Loop;
    if is_next && is_awaiting_approval(workstream, context.profile()?.pause)? {
        let id = &context.id;
        let message = format!(
            "the last micro-commit waits for your approval: wf approve {id}, or wf reject {id} -m REASON"
        );
        return Ok(StageOutcome::Unapproved { message });
    }
    Ok(StageOutcome::Passed)
}
