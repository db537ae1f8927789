//! Claims: gives free slots to issues, in the order of the queue and within the budgets. A claim and the reservation for
//! its run are on disk before anything starts.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use orchestrator_db::{
    BudgetRefusal, RunReservation, WorkClaim, WorkHold, WorkItem, WorkNote, WorkRequest, WorkStep,
    spread_front,
};

use super::Reconciler;
use super::observe::find_bottle;
use super::worker::Job;
use crate::exit::{Failure, OrGeneral};
use crate::flow::spending::{settle, unlimited_runs};
use crate::rules::agent_manifest::SpendTable;
use crate::rules::budget::{
    UnlimitedRun, day_of, explain_refusal, lower_limits, name_scope, with_unlimited,
};
use crate::serve::Service;
use crate::serve::vitals::VitalCounter;

/// Items that the first read of the queue returns.
const QUEUE_PAGE: usize = 32;

/// Facts that one round of claims gathers once.
struct ClaimRound {
    now: Timestamp,
    /// Spending limits by agent; `None` for an agent whose manifest cannot be read.
    agents: BTreeMap<String, Option<SpendTable>>,
    /// Runs at work without a limit; `None` before they are asked for.
    unlimited: Option<Vec<UnlimitedRun>>,
    /// Budgets that an issue waits for until a run at work ends; nobody overtakes it there.
    awaited: BTreeSet<String>,
}

impl Reconciler {
    /// Claims items while a slot is free.
    pub(super) fn claim(&mut self) -> Result<(), Failure> {
        let slots = self.service.settings().max_bottles;
        if !self.service.duties.runs || self.busy.len() >= slots {
            return Ok(());
        }
        let now = host::clock::now();
        let today = day_of(now);
        // Whether a budget has room changes when a run ends, with the configuration, and at midnight.
        let looks_at_held = self.budget_changed || self.day != today;
        let mut round =
            ClaimRound { now, agents: BTreeMap::new(), unlimited: None, awaited: BTreeSet::new() };
        let (mut seen, mut limit) = (BTreeSet::new(), QUEUE_PAGE);
        loop {
            let store = &self.service.store;
            let mut works = store.claimable_works(&self.service.host, limit).or_general()?;
            if self.holder.is_shared {
                let random = host::random::bytes().or_general()?;
                spread_front(&mut works, u64::from_le_bytes(random));
            }
            let is_last = works.iter().filter(|work| work.waits_for.is_none()).count() < limit;
            for work in works {
                if self.busy.len() >= slots {
                    return Ok(());
                }
                let is_held = work.waits_for == Some(WorkHold::Budget);
                let is_out = self.busy.contains_key(&work.key) || (is_held && !looks_at_held);
                if seen.insert(work.key.clone()) && !is_out {
                    self.claim_one(&work, &mut round)?;
                }
            }
            if is_last {
                break;
            }
            // All of them wait for a budget that an earlier one is to get, or were claimed by others.
            limit = limit.saturating_mul(4);
        }
        (self.budget_changed, self.day) = (false, today);
        Ok(())
    }

    fn claim_one(&mut self, work: &WorkItem, round: &mut ClaimRound) -> Result<(), Failure> {
        let reservation = self.reservation_for(work, round)?;
        let names = |request: &RunReservation| -> Vec<String> {
            request.limits.iter().map(|limit| name_scope(limit.scope, &work.key)).collect()
        };
        let covered = reservation.as_ref().map(names).unwrap_or_default();
        if covered.iter().any(|name| round.awaited.contains(name)) {
            return Ok(());
        }
        let (store, lease) = (&self.service.store, self.lease());
        let asked_at = host::clock::boottime();
        let claim =
            store.claim_work(work, &self.holder.name, lease, reservation.as_ref()).or_general()?;
        let vitals = &self.service.vitals;
        match claim {
            WorkClaim::Claimed(claimed) => {
                host::failpoint::hit("claimed");
                vitals.count(VitalCounter::Claims, "claimed");
                vitals.record_claim(claimed.updated_at.duration_since(claimed.queued_at));
                self.start_job(Job::Run(claimed), asked_at);
                Ok(())
            }
            WorkClaim::Refused(refusal) => {
                vitals.count(VitalCounter::Claims, "over-budget");
                self.hold_for_budget(work, &refusal, round)
            }
            WorkClaim::Gone => {
                vitals.count(VitalCounter::Claims, "gone");
                Ok(())
            }
        }
    }

    /// Lets an item wait for a budget. It is told once for each budget, not with every amount.
    fn hold_for_budget(
        &self,
        work: &WorkItem,
        refusal: &BudgetRefusal,
        round: &mut ClaimRound,
    ) -> Result<(), Failure> {
        let settings = self.service.settings();
        let runs = round.unlimited.as_deref().unwrap_or_default();
        let held = (&settings.budget, runs);
        let refusal = with_unlimited(refusal, &work.key, day_of(round.now), held);
        let reason = explain_refusal(&settings.budget, &refusal, &work.key, round.now);
        if reason.may_fit_soon {
            round.awaited.insert(name_scope(refusal.scope, &work.key));
        }
        let is_told =
            work.waits_for == Some(WorkHold::Budget) && work.reason.starts_with(&reason.head);
        if is_told {
            return Ok(());
        }
        tracing::info!(issue = %work.key, reason = reason.text, "waits for a budget");
        let note = WorkNote {
            not_before: reason.opens,
            waits_for: Some(WorkHold::Budget),
            ..WorkNote::because(reason.text)
        };
        let held = self.service.store.step_work(&work.key, work.fence, WorkStep::Wait, &note);
        held.or_general().map(drop)
    }

    /// Reservation for the run of an item; `None` if it starts none, because an open one is to be finished first.
    fn reservation_for(
        &self,
        work: &WorkItem,
        round: &mut ClaimRound,
    ) -> Result<Option<RunReservation>, Failure> {
        let bottle = match find_bottle(&self.service, work) {
            // A store that is down holds up this issue alone; its run reserves for itself.
            Err(failure) if failure.is_transient() => return Ok(None),
            found => found?,
        };
        if let Some((bottle, record)) = &bottle
            && bottle.last_run(record).ok().flatten().is_some_and(|dir| !dir.is_closed())
        {
            return Ok(None);
        }
        let agent = match (&bottle, &work.request) {
            (Some((_, record)), _) => record.agent.clone(),
            (None, WorkRequest::Start { agent, .. }) => agent.clone(),
            (None, WorkRequest::Resume { .. } | WorkRequest::Wake { .. }) => return Ok(None),
        };
        let home = &self.service.home;
        let spend = round
            .agents
            .entry(agent.clone())
            .or_insert_with(|| home.load_agent(&agent).ok().map(|manifest| manifest.spend));
        // The worker says what is wrong with a manifest.
        let Some(spend) = spend else { return Ok(None) };
        let settings = self.service.settings();
        let mut request = settings.budget.reservation(&work.key, &agent, spend, round.now);
        if round.unlimited.is_none() && !request.limits.is_empty() {
            let Service { home, host, store, .. } = &*self.service;
            round.unlimited = Some(unlimited_runs(home, host, &**store, &settings.budget)?);
        }
        lower_limits(&mut request, &work.key, round.unlimited.as_deref().unwrap_or_default());
        Ok(Some(request))
    }

    /// Settles the runs that a killed process left. Those of busy issues are their workers' to settle.
    pub(super) fn settle_rest(&self) -> Result<(), Failure> {
        let Service { home, host, store, .. } = &*self.service;
        for row in store.unsettled_spending().or_general()? {
            if !self.busy.contains_key(&row.key) {
                settle(home, host, &**store, &row)?;
            }
        }
        Ok(())
    }
}
