//! One cycle: the pure pipeline is driven stage by stage, and one finaliser takes every ending.

mod accept;
mod context;
mod finish;
mod history;
mod land;
mod load;
mod make;
mod reconcile;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use host::signal::Cancel;
use model::exit::WfExit;

pub(crate) use context::RunContext;

use super::stage::{WorkFate, Workshop};
use crate::disk::site::Site;
use crate::disk::workstream::Workstream;
use crate::exit::Failure;
use crate::rules::pipeline::{Cycle, Ending, Onward, Report, Rounds, Stage, Step, next_round};
use crate::rules::profile::Pause;
use crate::ui::Ui;

/// Long enough to hear a signal that was sent before.
const LISTEN: Duration = Duration::from_millis(1);

/// What a run is started with.
pub(crate) struct RunOrder<'a> {
    pub(crate) site: &'a Site,
    pub(crate) id: &'a model::id::WorkstreamId,
    pub(crate) rounds: Rounds,
    pub(crate) workshop: &'a Workshop,
    pub(crate) cancel: &'a Cancel,
    pub(crate) ui: Ui,
}

/// Runs cycles until the rules say stop; the status is that of the last one (D118). The workstream's lock is held for all
/// of them (D67).
pub(crate) async fn run(order: &RunOrder<'_>) -> Result<WfExit, Failure> {
    let mut lock = None;
    let mut left = None;
    loop {
        let mut context = RunContext::begin(order, lock.take())?;
        let ending = run_cycle(&mut context, order).await;
        let (ending, plan_left) = finish::finish(&mut context, ending).await;
        order.workshop.tidy(&context.run.path(), context.work_fate());
        lock = context.release_lock();
        show(order.ui, &context, &ending);
        let still = *left.get_or_insert(plan_left + 1);
        left = Some(usize::saturating_sub(still, 1));
        match next_round(order.rounds, &ending, context.pause(), still.saturating_sub(1)) {
            Onward::Again => {}
            Onward::Stop => return Ok(ending.exit),
            Onward::Pause => {
                order.ui.note(&format!("Paused after this micro-commit, as HITL_MODE or SUPERVISED_MODE wants. Content? wf approve {id}, then go on: wf run {id} --loop", id = order.id));
                return Ok(ending.exit);
            }
        }
    }
}

/// Drives the pipeline. A panic in a stage is an ending too, so that result.json is written whatever happens (D118).
async fn run_cycle(context: &mut RunContext, order: &RunOrder<'_>) -> Ending {
    let mut cycle = Cycle::start();
    loop {
        context.enter(cycle.stage, order.ui);
        let work = AssertUnwindSafe(run_stage(context, order, cycle.stage)).catch_unwind();
        let report = work.await;
        context.notes.extend(order.workshop.take_notes());
        // A signal that came during a stage which never waited is heard as soon as somebody waits.
        tokio::time::sleep(LISTEN).await;
        let report = match report {
            Ok(report) => heed(order.cancel, cycle.stage, report),
            Err(_panic) => Report::Failed {
                status: WfExit::Internal,
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

async fn run_stage(context: &mut RunContext, order: &RunOrder<'_>, stage: Stage) -> Report {
    host::failpoint::hit(&format!("wf-{}", stage.key()));
    let outcome = match stage {
        Stage::Lock => load::lock(context, order.cancel).await,
        Stage::Load => load::load(context, order.cancel).await,
        Stage::Select => load::select(context),
        Stage::ClarificationCheck => load::check_people(context, order.rounds),
        Stage::Implement => make::implement(context, order).await,
        Stage::Test => make::test(context, order).await,
        Stage::Review => make::review(context, order).await,
        Stage::QaGate => accept::qa_gate(context).and_then(|report| {
            if report != Report::Passed {
                land::settle(context)?;
            }
            Ok(report)
        }),
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
    /// Whether the branch has all that the agent made.
    fn work_fate(&self) -> WorkFate {
        let moved = self.head.is_some() && self.head != self.head_before;
        if moved { WorkFate::Landed } else { WorkFate::Unknown }
    }

    fn pause(&self) -> Pause {
        self.profile.as_ref().map_or(Pause::Gates, |profile| profile.pause)
    }

    /// The workstream; a stage after LOAD has one.
    fn loaded(&self) -> Result<&Workstream, Failure> {
        self.workstream
            .as_ref()
            .ok_or_else(|| Failure::new(WfExit::Internal, "the workstream was not loaded"))
    }
}

#[cfg(test)]
mod tests {
    use host::signal::CancelReason;

    use super::*;

    #[test]
    fn a_stop_after_acceptance_does_not_take_it_back_d66() {
        let cancel = Cancel::new();
        cancel.cancel(CancelReason::Asked("a test".into()));
        assert_eq!(heed(&cancel, Stage::UpdateState, Report::Passed), Report::Passed);
        assert!(matches!(heed(&cancel, Stage::Docs, Report::Passed), Report::Stopped { .. }));
    }
}
