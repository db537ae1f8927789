//! Writes down how a worker ended. A result that cannot be written now is kept and tried again.

use std::time::Duration;

use forge::ForgeError;
use jiff::Timestamp;
use orchestrator_db::{DbError, IssueKey, WorkHold, WorkItem, WorkNote, WorkStep};

use super::stop::BusyWork;
use super::worker::{JobOutcome, JobResult};
use super::{Reconciler, pause_after};
use crate::exit::{Failure, OrGeneral};
use crate::flow::lease::LeaseLoss;
use crate::rules::closed_run::AfterRun;
use crate::serve::vitals::VitalCounter;

/// Tries of a failure that can pass, before a person is needed.
const PASSING_TRIES: u32 = 40;
/// Consecutive failures of the machine, before a person is needed.
const MACHINE_TRIES: u32 = 3;
/// Pause before the next look at a lock that another process holds: a run of a killed process, or a user at a terminal.
const HELD_PAUSE: Duration = Duration::from_secs(1);
/// Pause after the forge refused the token.
const TOKEN_PAUSE: Duration = Duration::from_secs(30);

impl Reconciler {
    /// Records a result, and enqueues the issue: people may have commented in the meantime.
    pub(super) fn record_outcome(&mut self, result: JobResult) -> Result<(), Failure> {
        let recorded = self.write_outcome(&result);
        if recorded.is_err() {
            self.unrecorded.push(result);
        }
        recorded
    }

    fn write_outcome(&mut self, result: &JobResult) -> Result<(), Failure> {
        let JobResult { key, slug, outcome } = result;
        let Some(BusyWork { work, lease, .. }) = self.busy.get(key) else { return Ok(()) };
        let Ok(fence) = lease.fence() else {
            let loss = lease.loss();
            self.drop_lost(key, loss);
            return Ok(());
        };
        if matches!(outcome, JobOutcome::NotDestroyed(_)) {
            match self.service.store.set_destroy_at(key, fence, None) {
                Err(DbError::Fenced { .. }) => {}
                other => other.or_general()?,
            }
        }
        let (step, note) = match self.step_after_stop(work, outcome) {
            Some((step, note)) => (step, WorkNote { slug: slug.clone(), ..note }),
            None => step_after(work, slug.as_ref(), outcome),
        };
        match self.service.store.step_work(key, fence, step, &note) {
            Ok(state) => {
                tracing::info!(issue = %key, %state, reason = note.reason, "job ended");
            }
            // The new holder continues from what is on disk.
            Err(DbError::Fenced { .. }) => {
                tracing::warn!(issue = %key, "was taken over");
                let loss = LeaseLoss::RefusedByDatabase;
                self.service.vitals.count(VitalCounter::LostLeases, loss.name());
            }
            Err(error) => return Err(error).or_general(),
        }
        host::failpoint::hit("recorded");
        self.finish_job(key);
        Ok(())
    }

    /// Drops the result of a job whose lease is lost: nothing is written, and whoever holds the issue now goes on.
    fn drop_lost(&mut self, key: &IssueKey, loss: Option<LeaseLoss>) {
        tracing::warn!(issue = %key, "its lease was lost, so its result is not recorded");
        if let Some(loss) = loss {
            self.service.vitals.count(VitalCounter::LostLeases, loss.name());
        }
        // Whoever has it now reads the inbox.
        self.stops.remove(key);
        self.finish_job(key);
    }

    fn finish_job(&mut self, key: &IssueKey) {
        self.busy.remove(key);
        // What it reserved and did not spend may be enough for another run.
        self.budget_changed = true;
        self.ended_here.insert(key.clone());
        match self.board {
            Some(_) => self.queue.enqueue(key, None),
            // The server that has the turn reads a stop once more, and marks it as handled.
            None => drop(self.stops.remove(key)),
        }
    }
}

/// The step after a job, and what changes with it. The request stays: what is tried again is the same work with the same
/// prompt.
fn step_after(
    work: &WorkItem,
    slug: Option<&String>,
    outcome: &JobOutcome,
) -> (WorkStep, WorkNote) {
    let note = |reason: &str| WorkNote { slug: slug.cloned(), ..WorkNote::because(reason) };
    match outcome {
        JobOutcome::Closed(AfterRun::Freeze { reason }) => {
            (WorkStep::Freeze, WorkNote { attempts: Some(0), ..note(reason) })
        }
        JobOutcome::Unneeded(reason) => (WorkStep::Freeze, note(reason)),
        JobOutcome::Closed(AfterRun::Wait { until, reason }) => {
            (WorkStep::Wait, WorkNote { not_before: Some(*until), ..note(reason) })
        }
        JobOutcome::Closed(AfterRun::Retry { reason }) if work.attempts < MACHINE_TRIES => {
            (WorkStep::Wait, retry_later(work, note(reason)))
        }
        JobOutcome::Closed(AfterRun::Retry { reason } | AfterRun::CallPerson { reason }) => {
            (WorkStep::CallPerson, note(reason))
        }
        // A lock is released by whoever holds it, so it is waited for however long that takes, and no person is needed.
        JobOutcome::Failed(failure) if failure.is_held() => {
            let not_before = Some(host::clock::now() + HELD_PAUSE);
            (WorkStep::Wait, WorkNote { not_before, ..note(&failure.to_string()) })
        }
        // The operator replaces the token, and then it continues by itself.
        JobOutcome::Failed(failure) if is_token_refused(failure) => {
            let not_before = Some(host::clock::now() + TOKEN_PAUSE);
            (WorkStep::Wait, WorkNote { not_before, ..note(&failure.to_string()) })
        }
        JobOutcome::Failed(failure) if failure.is_transient() && work.attempts < PASSING_TRIES => {
            let note = retry_later(work, note(&failure.to_string()));
            let not_before = failure.retry_after().or(note.not_before);
            (WorkStep::Wait, WorkNote { not_before, ..note })
        }
        JobOutcome::Failed(failure) => (WorkStep::CallPerson, note(&failure.to_string())),
        JobOutcome::OverBudget(reason) => (
            WorkStep::Wait,
            WorkNote {
                not_before: reason.opens,
                waits_for: Some(WorkHold::Budget),
                ..note(&reason.text)
            },
        ),
        JobOutcome::Stopped => (WorkStep::CallPerson, note("it was stopped")),
        JobOutcome::Destroyed => (WorkStep::Destroy, note("its bottle is removed")),
        JobOutcome::NotDestroyed(failure) => {
            (WorkStep::CallPerson, note(&format!("its bottle was kept: {failure}")))
        }
    }
}

fn is_token_refused(failure: &Failure) -> bool {
    matches!(failure.forge(), Some(ForgeError::Unauthorized { .. } | ForgeError::BadToken { .. }))
}

fn retry_later(work: &WorkItem, note: WorkNote) -> WorkNote {
    let attempts = work.attempts + 1;
    let until: Timestamp = host::clock::now() + pause_after(attempts);
    WorkNote { not_before: Some(until), attempts: Some(attempts), ..note }
}

#[cfg(test)]
mod tests {
    use engine::run::RunError;
    use host::chain::ChainFileError;
    use host::lock::LockError;
    use model::exit::BottleExit;
    use orchestrator_db::{WorkRequest, WorkState};
    use run_store::StoreError;

    use super::*;
    use crate::rules::budget::BudgetReason;

    fn work(attempts: u32) -> WorkItem {
        let now = host::clock::now();
        WorkItem {
            key: IssueKey { owner: "acme".to_owned(), repo: "widget".to_owned(), issue_number: 3 },
            state: WorkState::Running,
            request: WorkRequest::start("worker", Vec::new(), None),
            trigger: None,
            title: String::new(),
            slug: None,
            fence: orchestrator_db::Fence { number: 2, claim: 7 },
            claims: 1,
            holder: Some("me".to_owned()),
            lease_until: None,
            not_before: None,
            destroy_at: None,
            attempts,
            reason: String::new(),
            waits_for: None,
            order: orchestrator_db::WorkOrder::default(),
            queued_at: now,
            created_at: now,
            updated_at: now,
        }
    }

    fn step(attempts: u32, outcome: &JobOutcome) -> (WorkStep, WorkNote) {
        step_after(&work(attempts), Some(&"worker-issue-3".to_owned()), outcome)
    }

    #[test]
    fn a_published_run_freezes_and_resets_the_failures() {
        let reason = "pull request #7 is up for review".to_owned();
        let (step, note) = step(2, &JobOutcome::Closed(AfterRun::Freeze { reason }));
        assert_eq!((step, note.attempts), (WorkStep::Freeze, Some(0)));
        assert_eq!(note.slug.as_deref(), Some("worker-issue-3"));
    }

    #[test]
    fn a_machine_that_keeps_failing_needs_a_person() {
        let retry = || JobOutcome::Closed(AfterRun::Retry { reason: "the shim died".to_owned() });
        let (first, note) = step(0, &retry());
        assert_eq!((first, note.attempts), (WorkStep::Wait, Some(1)));
        assert_eq!(note.request, None, "the prompt is the same");
        assert!(note.not_before.is_some_and(|at| at > host::clock::now()));
        assert_eq!(step(MACHINE_TRIES, &retry()).0, WorkStep::CallPerson);
    }

    #[test]
    fn a_transient_failure_is_retried_and_another_one_needs_a_person() {
        let down = || JobOutcome::Failed(Failure::transient("the forge is down"));
        assert_eq!(step(PASSING_TRIES - 1, &down()).0, WorkStep::Wait);
        assert_eq!(step(PASSING_TRIES, &down()).0, WorkStep::CallPerson);
        let wrong = JobOutcome::Failed(Failure::usage("there is no agent 'worker'"));
        assert_eq!(step(0, &wrong).0, WorkStep::CallPerson);
    }

    #[test]
    fn a_lock_that_another_process_holds_is_waited_for_and_calls_no_person() {
        let busy = ChainFileError::Busy { path: "operations.jsonl".into() };
        let held = LockError::Held { path: "lock".into(), holder: None };
        for failure in [
            Failure::of(BottleExit::General, RunError::from(StoreError::from(busy))),
            Failure::of(BottleExit::General, held),
        ] {
            let (step, note) = step(PASSING_TRIES, &JobOutcome::Failed(failure));
            assert_eq!((step, note.attempts), (WorkStep::Wait, None));
            assert!(note.not_before.is_some_and(|at| at > host::clock::now()));
        }
    }

    #[test]
    fn a_run_without_room_in_a_budget_waits_and_calls_no_person() {
        let reason = BudgetReason {
            head: String::new(),
            text: "spent".to_owned(),
            opens: Some(host::clock::now()),
            may_fit_soon: false,
        };
        let (step, note) = step(PASSING_TRIES, &JobOutcome::OverBudget(reason.clone()));
        assert_eq!((step, note.waits_for), (WorkStep::Wait, Some(WorkHold::Budget)));
        assert_eq!((note.not_before, note.request), (reason.opens, None), "it is the same request");
    }

    #[test]
    fn a_bottle_that_cannot_be_removed_needs_a_person_and_says_why() {
        let kept = JobOutcome::NotDestroyed(Failure::not_found("it is in use"));
        let (step, note) = step(0, &kept);
        assert_eq!(step, WorkStep::CallPerson);
        assert!(note.reason.contains("it is in use"), "{}", note.reason);
        assert_eq!(super::super::pause_after(30), super::super::LONGEST_PAUSE);
    }
}
