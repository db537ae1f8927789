//! Leases: renewed at a third of their length, and taken over from a holder that lets them expire.

use std::sync::Arc;

use orchestrator_db::{DbError, WorkItem, WorkNote, WorkStep};

use super::Reconciler;
use super::worker::Job;
use crate::exit::{Failure, OrGeneral};
use crate::serve::vitals::VitalCounter;

impl Reconciler {
    /// Renews the leases of the items that workers hold. One that the store does not renew is claimed once more, or lost.
    pub(super) fn renew_leases(&mut self) -> Result<(), Failure> {
        if self.busy.is_empty() {
            return Ok(());
        }
        let (length, asked_at) = (self.lease(), host::clock::boottime());
        let held = self.service.store.renew_leases(&self.holder.name, length).or_general()?;
        for busy in self.busy.values() {
            let renewed = held.iter().find(|it| it.key == busy.work.key).map(|it| it.fence);
            busy.lease.note_renewal(renewed, length, asked_at);
        }
        Ok(())
    }

    /// Takes over the items of holders that did not renew their leases. Without room, that is left to the others and to the
    /// server that has the turn, which queues them again.
    pub(super) fn take_over_expired(&mut self) -> Result<(), Failure> {
        let is_full = self.busy.len() >= self.service.settings().max_bottles;
        if self.board.is_none() && (is_full || !self.service.duties.runs) {
            return Ok(());
        }
        let asked_at = host::clock::boottime();
        let store = Arc::clone(&self.service.store);
        for work in store.take_over_expired(&self.holder.name, self.lease()).or_general()? {
            tracing::warn!(issue = %work.key, state = %work.state, "taken over: its lease had expired");
            self.service.vitals.count(VitalCounter::Leases, "taken-over");
            let has_room =
                self.service.duties.runs && self.busy.len() < self.service.settings().max_bottles;
            let is_elsewhere = self.is_elsewhere(&work.key)?;
            if has_room && !is_elsewhere && !self.busy.contains_key(&work.key) {
                self.start_job(Job::Run(Box::new(work)), asked_at);
                continue;
            }
            let reason = match is_elsewhere {
                true => {
                    "the host that has its bottle let its lease expire, and goes on with it when it is back"
                }
                false => "its host let its lease expire",
            };
            let note = WorkNote::because(reason);
            match store.step_work(&work.key, work.fence, WorkStep::Queue, &note) {
                Err(DbError::Fenced { .. }) => {}
                queued => queued.or_general().map(drop)?,
            }
        }
        Ok(())
    }

    /// Starts a worker for an item that this reconciler holds without one, under a new claim.
    pub(super) fn restart(&mut self, work: &WorkItem) -> Result<(), Failure> {
        let (asked_at, lease) = (host::clock::boottime(), self.lease());
        let store = &self.service.store;
        let again = store.reclaim_work(&work.key, work.fence, &self.holder.name, lease);
        if let Some(work) = again.or_general()? {
            self.start_job(Job::Run(Box::new(work)), asked_at);
        }
        Ok(())
    }
}
