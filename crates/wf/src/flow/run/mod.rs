//! One cycle: the pure pipeline is driven stage by stage, and one finaliser takes every ending.

mod accept;
mod context;
mod finish;
mod history;
mod load;
mod make;
mod reconcile;
#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use host::signal::Cancel;
use model::verdict::WfStatus;

pub(crate) use context::RunContext;

use super::stage::Workshop;
use crate::disk::site::Site;
use crate::disk::workstream::Workstream;
use crate::exit::Failure;
use crate::rules::pipeline::{Cycle, Ending, Onward, Report, Rounds, Stage, Step, next_round};
use crate::rules::profile::Pause;
use crate::ui::Ui;

/// What a run is started with.
pub(crate) struct RunOrder<'a, W> {
    pub(crate) site: &'a Site,
    pub(crate) id: &'a model::id::WorkstreamId,
    pub(crate) rounds: Rounds,
    pub(crate) workshop: &'a W,
    pub(crate) cancel: &'a Cancel,
    pub(crate) ui: Ui,
}

/// Runs cycles until the rules say stop; the status is that of the last one (D118). The workstream's lock is held for all
/// of them (D67).
pub(crate) async fn run<W: Workshop>(order: &RunOrder<'_, W>) -> Result<WfStatus, Failure> {
    let mut lock = None;
    let mut left = None;
    loop {
        let mut context = RunContext::begin(order, lock.take())?;
        let ending = run_cycle(&mut context, order).await;
        let (ending, plan_left) = finish::finish(&mut context, ending).await;
        lock = context.release_lock();
        show(order.ui, &context, &ending);
        let still = *left.get_or_insert(plan_left + 1);
        left = Some(usize::saturating_sub(still, 1));
        match next_round(order.rounds, &ending, context.pause(), still.saturating_sub(1)) {
            Onward::Again => {}
            Onward::Stop => return Ok(ending.exit),
            Onward::Pause => {
                order.ui.note("Paused after this micro-commit, as HITL_MODE or SUPERVISED_MODE wants; go on: wf run --loop");
                return Ok(ending.exit);
            }
        }
    }
}

/// Drives the pipeline. A panic in a stage is an ending too, so that result.json is written whatever happens (D118).
async fn run_cycle<W: Workshop>(context: &mut RunContext, order: &RunOrder<'_, W>) -> Ending {
    let mut cycle = Cycle::start();
    loop {
        context.enter(cycle.stage, order.ui);
        host::failpoint::hit(&format!("wf-{}", cycle.stage.key()));
        let work = AssertUnwindSafe(run_stage(context, order, cycle.stage)).catch_unwind();
        let report = match work.await {
            Ok(report) => heed(order.cancel, cycle.stage, report),
            Err(_panic) => Report::Failed {
                status: WfStatus::Internal,
                words: "internal error: a stage panicked".to_owned(),
            },
        };
        context.leave(cycle.stage, &report);
        match cycle.next(report) {
            Step::Enter(next) => cycle = next,
            Step::Finish(ending) => return ending,
        }
    }
}

/// Whoever was told to stop stops, whatever the stage made of it. What has been accepted stays accepted.
fn heed(cancel: &Cancel, stage: Stage, report: Report) -> Report {
    let is_accepted =
        matches!(stage, Stage::UpdateState | Stage::UatGate) && report == Report::Passed;
    match (cancel.reason().filter(|_| !is_accepted), report) {
        (Some(reason), Report::Passed | Report::AllDone | Report::Failed { .. }) => {
            Report::Stopped { words: reason.to_string() }
        }
        (_, report) => report,
    }
}

async fn run_stage<W: Workshop>(
    context: &mut RunContext,
    order: &RunOrder<'_, W>,
    stage: Stage,
) -> Report {
    let outcome = match stage {
        Stage::Lock => load::lock(context, order.cancel).await,
        Stage::Load => load::load(context, order.cancel).await,
        Stage::Select => load::select(context),
        Stage::ClarificationCheck => load::check_questions(context),
        Stage::Implement => make::implement(context, order).await,
        Stage::Test => make::test(context, order).await,
        Stage::Review => make::review(context, order).await,
        Stage::QaGate => accept::qa_gate(context),
        Stage::Docs => accept::docs(context),
        Stage::UpdateState => accept::update_state(context).await,
        Stage::UatGate => accept::uat_gate(context).await,
        Stage::Refresh => Ok(Report::Passed),
    };
    outcome.unwrap_or_else(|failure| Report::Failed {
        status: failure.status,
        words: failure.to_string(),
    })
}

fn show(ui: Ui, context: &RunContext, ending: &Ending) {
    let topic = context.commit.as_ref().map_or("no micro-commit", |commit| commit.id.as_str());
    let stage = ending.failed_stage.map(|stage| format!(" at {}", stage.key())).unwrap_or_default();
    let words = if ending.words.is_empty() { String::new() } else { format!(": {}", ending.words) };
    ui.line(&format!("{topic}: {}{stage}{words}", ending.outcome.word()));
    ui.line(&format!("  Run: {}", context.run.path().display()));
    ui.document(&serde_json::json!({
        "run": context.run.name(), "path": context.run.path(), "microcommit": context.commit.as_ref().map(|commit| &commit.id),
        "status": ending.outcome, "exit_code": ending.exit.code(), "failed_stage": ending.failed_stage.map(Stage::key),
        "blocked_by": ending.blocked_by, "words": ending.words,
    }));
}

impl RunContext {
    fn pause(&self) -> Pause {
        self.profile.as_ref().map_or(Pause::Gates, |profile| profile.pause)
    }

    /// The workstream; a stage after LOAD has one.
    fn loaded(&self) -> Result<&Workstream, Failure> {
        self.workstream
            .as_ref()
            .ok_or_else(|| Failure::new(WfStatus::Internal, "the workstream was not loaded"))
    }
}
