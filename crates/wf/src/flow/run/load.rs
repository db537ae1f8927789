//! LOCK, LOAD, SELECT and CLARIFICATION_CHECK: nothing is worked on until all of it makes sense (5.2, 5.4 to 5.6).

use host::signal::Cancel;
use model::exit::WfExit;

use super::RunContext;
use super::reconcile::reconcile;
use crate::disk::question::blocking_questions;
use crate::disk::workstream::Workstream;
use crate::exit::{Failure, OrExit};
use crate::flow::gate::waits_for_a_word;
use crate::flow::product::{check_worktree, open_product};
use crate::rules::pipeline::{Report, Rounds, Stage};
use crate::rules::plan::parse_plan;
use crate::rules::run_id::RunTopic;
use crate::rules::status::WorkstreamStatus;

/// Waits for the workstream's lock, unless a cycle before has left it to us. The workstream must exist first: a lock
/// file for a mistyped name would stay for ever.
pub(super) async fn lock(context: &mut RunContext, cancel: &Cancel) -> Result<Report, Failure> {
    context.site.find_workstream(context.id.as_str())?;
    if context.lock.is_none() {
        let note = format!("wf run {}", context.id);
        let site = context.site.clone();
        context.lock = tokio::select! {
            reason = cancel.cancelled() => return Ok(Report::Stopped { words: reason.to_string() }),
            lock = site.lock_workstream(&context.id, &note) => Some(lock?),
        };
    }
    // What a crashed run left is put in order before this one leaves traces of its own.
    reconcile(context).await?;
    context.write_journal(Stage::Lock)?;
    Ok(Report::Passed)
}

/// Reads everything under the lock (D71) and checks the worktree (D60, D72).
pub(super) async fn load(context: &mut RunContext, cancel: &Cancel) -> Result<Report, Failure> {
    let (profile, warnings) = context.site.load_profile()?;
    context.notes.extend(warnings);
    context.profile = Some(profile);
    let workstream = Workstream::load_dir(&context.site.workstream_dir(&context.id))?;
    let product = open_product(&context.site).await?;
    let product = product.logged(context.log.callback()).cancelled_by(cancel.clone());
    if let Err(fault) = check_worktree(&context.site, &product, &workstream).await? {
        return Ok(Report::failed(Stage::Load, fault.to_string()));
    }
    let base = &workstream.meta.base_sha;
    if product.user().resolve_commit(base.as_str()).await.or_exit(WfExit::General)?.is_none() {
        return Ok(Report::failed(
            Stage::Load,
            format!("BASE_SHA {base} does not exist in the repository"),
        ));
    }
    let Some(text) = workstream.plan_text()? else {
        let path = workstream.plan_path();
        return Ok(Report::failed(Stage::Load, format!("the plan is missing: {}", path.display())));
    };
    let dirty = product.dirty_paths(&workstream.meta.worktree).await.or_exit(WfExit::General)?;
    context.notes.extend(dirty.iter().map(|dirty| {
        format!("uncommitted before the run: {}", String::from_utf8_lossy(&dirty.path))
    }));
    let head = product.head(&workstream.meta.worktree).await.or_exit(WfExit::General)?;
    context.head_before = head.clone();
    context.head = head;
    context.accepted_base = workstream.meta.last_commit_sha.clone().or_else(|| Some(base.clone()));
    context.plan_text = text;
    context.product = Some(product);
    context.workstream = Some(workstream);
    Ok(Report::Passed)
}

/// Chooses the first micro-commit that is not done (5.5, D34, D97).
pub(super) fn select(context: &mut RunContext) -> Result<Report, Failure> {
    let workstream = context.loaded()?;
    let status = workstream.meta.status;
    let plan = match parse_plan(&context.plan_text) {
        Ok(plan) => plan,
        Err(error) => {
            let words = format!("{}: {error}", workstream.plan_path().display());
            return Ok(Report::Failed { status: WfExit::Config, words });
        }
    };
    context.notes.extend(plan.warnings.iter().map(|warning| format!("plan.md {warning}")));
    if plan.commits.is_empty() {
        return Ok(Report::failed(Stage::Select, "the plan has no micro-commits; add one"));
    }
    let next = plan.next().cloned();
    context.plan = Some(plan);
    match next {
        Some(commit) => {
            context.run.settle(RunTopic::MicroCommit(&commit.id))?;
            context.commit = Some(commit);
            context.write_journal(Stage::Select)?;
            Ok(Report::Passed)
        }
        None if matches!(status, WorkstreamStatus::MergeReady | WorkstreamStatus::Done) => {
            Ok(Report::Nothing)
        }
        None => Ok(Report::AllDone),
    }
}

/// Stops while a blocking question waits. A loop also stops while people who want to see every micro-commit have said
/// nothing about the last one (D41); a single cycle is somebody's own step.
pub(super) fn check_people(context: &mut RunContext, rounds: Rounds) -> Result<Report, Failure> {
    let workstream = context.loaded()?;
    let by = blocking_questions(&workstream.dir)?;
    if !by.is_empty() {
        return Ok(Report::Blocked { by });
    }
    let is_next = context.commit.is_some() && rounds == Rounds::Loop;
    if is_next && waits_for_a_word(workstream, context.profile()?.pause)? {
        let id = &context.id;
        let words = format!(
            "the last micro-commit waits for your word: wf approve {id}, or wf reject {id} -m WORDS"
        );
        return Ok(Report::Unapproved { words });
    }
    Ok(Report::Passed)
}
