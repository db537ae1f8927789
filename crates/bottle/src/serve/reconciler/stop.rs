//! Stops that people ask for: of work that runs, in whatever part of its run, and of work that waits. A stop stays in the
//! inbox until the run has ended, so that a crash in between does not lose it.

use std::collections::BTreeSet;
use std::sync::Arc;

use host::signal::{Cancel, CancelReason};
use orchestrator_db::{Delivery, IssueKey, WorkItem, WorkNote, WorkState, WorkStep};

use super::Reconciler;
use super::act::{DeliveryProgress, INBOX_PAGE, USER_SOURCES};
use super::worker::JobOutcome;
use crate::exit::{Failure, OrGeneral};
use crate::flow::lease::Lease;
use crate::rules::closed_run::AfterRun;

/// A stop that was asked for while a worker held the issue.
pub(super) struct StopRequest {
    /// Says who stopped it.
    reason: String,
    /// Marks of what was said until then, which does not resume it; `None` until the issue is observed.
    seen: Option<BTreeSet<String>>,
}

/// Item that a worker holds.
pub(super) struct BusyWork {
    pub(super) work: WorkItem,
    pub(super) lease: Arc<Lease>,
    /// Ends its agent, its check and whatever else its worker does.
    pub(super) cancel: Cancel,
}

/// Event of the stored delivery that stops work.
pub(super) const STOP_EVENT: &str = "freeze";

impl Reconciler {
    /// Reads the stops of work that an earlier process left, before it is continued.
    pub(super) fn read_stops(&mut self, taken: &[WorkItem]) -> Result<(), Failure> {
        let store = &self.service.store;
        for delivery in store.unhandled_from(&USER_SOURCES, INBOX_PAGE).or_general()? {
            if delivery.event == STOP_EVENT
                && let Some(key) = self.issue_of(&delivery)?
                && taken.iter().any(|work| work.key == key)
            {
                let stop = self.stop_of(&delivery)?;
                self.stops.insert(key, stop);
            }
        }
        Ok(())
    }

    /// Stops the work on an issue. What a worker holds is ended, and the delivery waits for that.
    pub(super) fn stop_work(
        &mut self,
        work: &WorkItem,
        delivery: &Delivery,
    ) -> Result<DeliveryProgress, Failure> {
        let key = &work.key;
        let stop = match self.stops.remove(key) {
            Some(known) => known,
            None => self.stop_of(delivery)?,
        };
        if self.busy.contains_key(key) {
            self.cancel_work(key, &stop.reason);
            if stop.seen.is_none() {
                self.queue.enqueue(key, None);
            }
            self.stops.insert(key.clone(), stop);
            return Ok(DeliveryProgress::Postponed);
        }
        if matches!(work.state, WorkState::Queued | WorkState::Waiting) {
            let note = stop.note(work);
            let store = &self.service.store;
            store.step_work(key, work.fence, WorkStep::CallPerson, &note).or_general()?;
        }
        Ok(DeliveryProgress::Handled)
    }

    fn stop_of(&self, delivery: &Delivery) -> Result<StopRequest, Failure> {
        let store = &self.service.store;
        let by = store.actor_of(&delivery.id).or_general()?;
        let body = store.delivery_body(delivery.seq).or_general()?;
        let reason = format!("{} stopped it", by.as_deref().unwrap_or("a user"));
        // The page does not know what was said.
        Ok(StopRequest { reason, seen: serde_json::from_slice(&body).ok() })
    }

    /// Ends whatever the worker of an issue does.
    pub(super) fn cancel_work(&self, key: &IssueKey, reason: &str) {
        if let Some(BusyWork { cancel, .. }) = self.busy.get(key)
            && cancel.reason().is_none()
        {
            tracing::info!(issue = %key, reason, "ending its run");
            cancel.cancel(CancelReason::Asked(reason.into()));
        }
    }

    /// Keeps what was said until an issue was stopped.
    pub(super) fn note_seen(&mut self, key: &IssueKey, seen: Option<&BTreeSet<String>>) {
        if let Some(stop) = self.stops.get_mut(key)
            && stop.seen.is_none()
        {
            stop.seen = seen.cloned();
        }
    }

    /// The step after a job that was stopped; `None` if it came to its own end first.
    pub(super) fn step_after_stop(
        &self,
        work: &WorkItem,
        outcome: &JobOutcome,
    ) -> Option<(WorkStep, WorkNote)> {
        let note = self.stops.get(&work.key)?.note(work);
        match outcome {
            JobOutcome::Closed(AfterRun::Freeze { .. })
            | JobOutcome::Unneeded(_)
            | JobOutcome::Destroyed
            | JobOutcome::NotDestroyed(_) => None,
            JobOutcome::Closed(AfterRun::CallPerson { reason }) => {
                Some((WorkStep::CallPerson, WorkNote { reason: reason.clone(), ..note }))
            }
            JobOutcome::Closed(AfterRun::Wait { .. } | AfterRun::Retry { .. })
            | JobOutcome::Stopped
            | JobOutcome::Failed(_)
            | JobOutcome::OverBudget(_) => Some((WorkStep::CallPerson, note)),
        }
    }
}

impl StopRequest {
    pub(super) fn reason(&self) -> &str {
        &self.reason
    }

    fn note(&self, work: &WorkItem) -> WorkNote {
        let seen = self.seen.clone().unwrap_or_default();
        let request = Some(work.request.clone().with_seen(seen));
        WorkNote { request, attempts: Some(0), ..WorkNote::because(self.reason.clone()) }
    }
}
