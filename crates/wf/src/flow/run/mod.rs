//! One cycle: drives the pure pipeline stage by stage; one finaliser handles every ending.

mod accept;
mod apply_commits;
mod compete;
mod context;
mod finish;
mod history;
mod leak;
mod load;
mod reconcile;
mod stages;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use host::signal::Cancel;
use shell::Ui;

pub(crate) use apply_commits::strange;
pub(crate) use context::{RunContext, owner_of};
pub(crate) use leak::find_leak_in_change;
pub(crate) use stages::weakened_recipes;

use super::stage::{StageRunner, WorkLocation, tidy};
use crate::exit::{WfExit, WfResult};
use crate::rules::manifest::Tested;
use crate::rules::next_step::next_step;
use crate::rules::pipeline::{
    Cycle, Ending, NextCycle, RunMode, RunOutcome, RunStage, StageOutcome, Transition,
    can_be_mended, next_cycle,
};
use crate::rules::profile::Pause;

/// Long enough for the runtime to deliver a signal that was sent before.
const LISTEN: Duration = Duration::from_millis(1);

pub(crate) struct RunOptions<'a> {
    pub(crate) id: &'a model::id::WorkstreamId,
    pub(crate) mode: RunMode,
    pub(crate) runner: &'a StageRunner,
    pub(crate) cancel: &'a Cancel,
    /// Tries that a micro-commit gets in this run; none is that of the profile.
    pub(crate) rounds: Option<usize>,
    /// Words of a person for the implementer.
    pub(crate) guidance: Option<&'a str>,
    /// When this run pauses; none is that of the profile.
    pub(crate) pause: Option<Pause>,
}

/// Runs cycles until the rules stop them, under one lock. The exit status is that of the last cycle.
pub(crate) async fn run(options: &RunOptions<'_>) -> WfResult<WfExit> {
    let mut lock = None;
    let mut left: Option<usize> = None;
    let mut round = 1;
    loop {
        let mut context = RunContext::begin(options, lock.take())?;
        let ending = run_cycle(&mut context, options).await;
        let (ending, plan_left) = finish::finish(&mut context, ending).await;
        tidy(&context.run.path(), context.work_location());
        lock = context.lock.take();
        let rounds = context.profile.as_ref().map_or(1, |profile| profile.rounds);
        let rounds = options.rounds.unwrap_or(rounds);
        let pause = context.profile.as_ref().map_or(Pause::Gates, |profile| profile.pause);
        let can_mend = can_be_mended(&ending) && options.cancel.reason().is_none();
        let mends = can_mend && round < rounds;
        let asks = can_mend && !mends && rounds > 1;
        let follows = match mends {
            true => NextCycle::Again,
            false => {
                let still = left.get_or_insert(plan_left + 1);
                *still = still.saturating_sub(1);
                next_cycle(options.mode, &ending, pause, *still)
            }
        };
        let stops = follows != NextCycle::Again && !asks;
        let status = context.workstream.as_ref().map(|it| it.meta.status);
        let next = stops.then(|| next_step(options.id, &ending, pause, status)).flatten();
        let ui = &options.runner.ui;
        show(ui, &context, &ending, next.as_deref());
        if asks {
            stages::ask_after_rounds(&mut context, ui, &ending, rounds).await?;
        }
        round = if mends { round + 1 } else { 1 };
        if mends {
            ui.status(&format!("Try {round} of {rounds}, with what failed"));
        }
        match follows {
            NextCycle::Again => {}
            NextCycle::Stop => return Ok(ending.exit),
            NextCycle::Pause => {
                ui.status("Paused after this micro-commit (HITL_MODE or SUPERVISED_MODE)");
                return Ok(ending.exit);
            }
        }
    }
}

/// Drives the pipeline. A panic in a stage becomes an ending, so that result.json is always written.
async fn run_cycle(context: &mut RunContext, options: &RunOptions<'_>) -> Ending {
    let mut cycle = Cycle::start();
    loop {
        context.enter(cycle.stage, &options.runner.ui);
        let work = AssertUnwindSafe(run_stage(context, options, cycle.stage)).catch_unwind();
        let report = work.await;
        context.notes.extend(options.runner.take_notes());
        // A signal that arrived during a stage that never awaited is delivered at the next await.
        tokio::time::sleep(LISTEN).await;
        let report = match report {
            Ok(report) => stop_if_cancelled(options.cancel, cycle.stage, report),
            Err(_panic) => StageOutcome::Failed {
                status: WfExit::Internal,
                message: "internal error: a stage panicked".to_owned(),
            },
        };
        context.leave(cycle.stage, &report);
        match cycle.next(report) {
            Transition::Enter(next) => cycle = next,
            Transition::Finish(ending) => return ending,
        }
    }
}

/// Turns the outcome of a stage into `Stopped` after a cancellation. An acceptance stays accepted.
fn stop_if_cancelled(cancel: &Cancel, stage: RunStage, report: StageOutcome) -> StageOutcome {
    let is_accepted = matches!(stage, RunStage::UpdateState | RunStage::UatGate)
        && report == StageOutcome::Passed;
    match (cancel.reason().filter(|_| !is_accepted), report) {
        (
            Some(reason),
            StageOutcome::Passed
            | StageOutcome::Skipped { .. }
            | StageOutcome::AllDone
            | StageOutcome::Failed { .. },
        ) => StageOutcome::Stopped { message: reason.to_string() },
        (_, report) => report,
    }
}

async fn run_stage(
    context: &mut RunContext,
    options: &RunOptions<'_>,
    stage: RunStage,
) -> StageOutcome {
    host::failpoint::hit(&format!("wf-{}", stage.key()));
    let outcome = match stage {
        RunStage::Lock => load::lock(context, options.cancel).await,
        RunStage::Load => load::load(context, options).await,
        RunStage::Select => load::select(context),
        RunStage::ClarificationCheck => load::check_people(context, options.mode),
        RunStage::Implement => stages::implement(context, options).await,
        RunStage::Test => stages::test(context, options).await,
        RunStage::Review => stages::review(context, options).await,
        RunStage::QaGate => accept::qa_gate(context).and_then(|report| {
            if report != StageOutcome::Passed {
                apply_commits::clear_implemented(context)?;
            }
            Ok(report)
        }),
        RunStage::Docs => accept::docs(context),
        RunStage::UpdateState => accept::update_state(context).await,
        RunStage::UatGate => accept::uat_gate(context).await,
        RunStage::Refresh => Ok(StageOutcome::Passed),
    };
    outcome.unwrap_or_else(|failure| StageOutcome::Failed {
        status: failure.status,
        message: failure.to_string(),
    })
}

fn show(ui: &Ui, context: &RunContext, ending: &Ending, next: Option<&str>) {
    let topic = context.commit.as_ref().map_or("no micro-commit", |commit| commit.id.as_str());
    let stage = ending.failed_stage.map(|stage| format!(" at {}", stage.key())).unwrap_or_default();
    let message =
        if ending.message.is_empty() { String::new() } else { format!(": {}", ending.message) };
    let passed = ending.outcome == RunOutcome::Passed;
    let tested = context.tested.filter(|_| passed).map_or("", Tested::suffix);
    ui.line(&format!("{topic}: {}{tested}{stage}{message}", ending.outcome.word()));
    ui.line(&format!("  Run: {}", context.run.path().display()));
    if let Some(next) = next {
        ui.line(&format!("  Next: {next}"));
    }
    ui.document(&serde_json::json!({
        "run": context.run.name(), "path": context.run.path(), "microcommit": context.commit.as_ref().map(|commit| &commit.id),
        "status": ending.outcome, "exit_code": ending.exit.code(), "failed_stage": ending.failed_stage.map(RunStage::key),
        "blocked_by": ending.blocked_by, "message": ending.message, "untested": context.tested == Some(Tested::No),
        "tested": context.tested, "next": next,
    }));
}

impl RunContext {
    /// The work is on the branch if the branch moved.
    pub(super) fn work_location(&self) -> WorkLocation {
        let moved = self.head.is_some() && self.head != self.head_before;
        if moved { WorkLocation::OnBranch } else { WorkLocation::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use host::signal::CancelReason;

    use super::*;

    #[test]
    fn a_stop_after_acceptance_does_not_take_it_back() {
        let cancel = Cancel::new();
        cancel.cancel(CancelReason::Asked("a test".into()));
        assert_eq!(
            stop_if_cancelled(&cancel, RunStage::UpdateState, StageOutcome::Passed),
            StageOutcome::Passed
        );
        assert!(matches!(
            stop_if_cancelled(&cancel, RunStage::Docs, StageOutcome::Passed),
            StageOutcome::Stopped { .. }
        ));
    }
}
