//! Claims and their leases.

use std::time::Duration;

use rusqlite::{OptionalExtension, Transaction, params};

use super::{OF_ISSUE, SqliteStore, key_values, parsed, read_key};
use crate::error::DbError;
use crate::fence::{Fence, HeldLease, new_claim};
use crate::forge_state::IssueKey;
use crate::rules::holder::{are_of_one_host, host_of};
use crate::rules::lifecycle::{WorkState, WorkStep, next_work};
use crate::spending::{RunReservation, WorkClaim};
use crate::store::LeaseStore;
use crate::work::WorkItem;

/// The database's clock, in whole seconds. Leases use no other clock.
pub(super) const NOW: &str = "CAST(strftime('%s', 'now') AS INTEGER)";

impl LeaseStore for SqliteStore {
    fn claimable_works(&self, host: &str, limit: usize) -> Result<Vec<WorkItem>, DbError> {
        let rest = "WHERE (state = 'queued' OR (state = 'waiting' AND (waits_for = 'budget' \
                    OR (waits_for IS NULL AND not_before <= ?1)))) \
                    AND NOT EXISTS (SELECT 1 FROM forge_state AS bottle \
                    WHERE bottle.owner = work.owner AND bottle.repo = work.repo \
                    AND bottle.issue_number = work.issue_number \
                    AND bottle.status <> 'destroyed' AND bottle.host <> ?2 \
                    AND bottle.saved IS NULL)";
        let now = host::clock::now().to_string();
        let mut works = self.read_works(rest, params![now, host])?;
        works.sort_by(WorkItem::compare_rank);
        let mut free = 0;
        works.retain(|work| {
            let is_free = work.waits_for.is_none();
            free += usize::from(is_free);
            !is_free || free <= limit
        });
        Ok(works)
    }

    fn works_to_maintain(&self, holder: &str) -> Result<Vec<WorkItem>, DbError> {
        let rest = "WHERE holder = ?1 OR (destroy_at <= ?2 AND holder IS NULL \
                    AND state <> 'destroyed') ORDER BY owner, repo, issue_number";
        self.read_works(rest, params![holder, host::clock::now().to_string()])
    }

    fn claim_work(
        &self,
        work: &WorkItem,
        holder: &str,
        lease: Duration,
        reservation: Option<&RunReservation>,
    ) -> Result<WorkClaim, DbError> {
        let key = &work.key;
        self.change("store work", |transaction| {
            let sql = format!("SELECT state, fence, claim_id FROM work {OF_ISSUE}");
            let found = transaction
                .query_row(&sql, key_values(key), |row| {
                    let fence = Fence { number: row.get(1)?, claim: row.get(2)? };
                    Ok((parsed(row, 0, WorkState::parse)?, fence))
                })
                .optional()
                .map_err(self.failed("find work"))?;
            if found != Some((work.state, work.fence)) {
                return Ok(WorkClaim::Gone);
            }
            let next = next_work(work.state, WorkStep::Claim)?;
            if let Some(host) = host_of(holder)
                && let Some(known) = self.known_state(transaction, key)?
            {
                known.check_claimable(host)?;
            }
            if let Some(request) = reservation {
                self.release_unstarted(transaction, key)?;
                let run = (None, host_of(holder));
                if let Some(refusal) = self.reserve(transaction, key, run, request)? {
                    return Ok(WorkClaim::Refused(refusal));
                }
            }
            let sql = format!("UPDATE work SET claims = claims + 1, waits_for = NULL {OF_ISSUE}");
            transaction.execute(&sql, key_values(key)).map_err(self.failed("claim work"))?;
            self.hold(transaction, key, next, holder, lease)?;
            self.record_event(transaction, key, next, "a slot is free")?;
            Ok(WorkClaim::Claimed(Box::new(self.known_work(transaction, key)?)))
        })
    }

    fn take_over_host(&self, holder: &str, lease: Duration) -> Result<Vec<WorkItem>, DbError> {
        let is_free = |work: &WorkItem| {
            work.holder.as_deref().is_some_and(|other| are_of_one_host(holder, other))
        };
        let rest = "WHERE holder <> ?1";
        self.take_over(rest, is_free, holder, lease)
    }

    fn take_over_expired(&self, holder: &str, lease: Duration) -> Result<Vec<WorkItem>, DbError> {
        let rest = format!("WHERE holder <> ?1 AND lease_until <= {NOW}");
        self.take_over(&rest, |_| true, holder, lease)
    }

    fn reclaim_work(
        &self,
        key: &IssueKey,
        fence: Fence,
        holder: &str,
        lease: Duration,
    ) -> Result<Option<WorkItem>, DbError> {
        self.change("store work", |transaction| {
            let found = self.read_works_in(transaction, OF_ISSUE, key_values(key))?.pop();
            let is_held =
                |work: &WorkItem| work.fence == fence && work.holder.as_deref() == Some(holder);
            let Some(work) = found.filter(is_held) else { return Ok(None) };
            self.hold(transaction, key, work.state, holder, lease)?;
            self.known_work(transaction, key).map(Some)
        })
    }

    fn raise_claim(
        &self,
        key: &IssueKey,
        fence: Fence,
        above: u64,
    ) -> Result<Option<Fence>, DbError> {
        self.change("raise a claim", |transaction| {
            if self.current_fence(transaction, key)? != fence {
                return Ok(None);
            }
            let raised = Fence { number: fence.number.max(above + 1), ..fence };
            let IssueKey { owner, repo, issue_number } = key;
            let sql = format!("UPDATE work SET fence = ?4 {OF_ISSUE}");
            let values = params![owner, repo, issue_number, raised.number];
            let rows = transaction.execute(&sql, values).map_err(self.failed("raise a claim"))?;
            Ok((rows > 0).then_some(raised))
        })
    }

    fn renew_leases(&self, holder: &str, lease: Duration) -> Result<Vec<HeldLease>, DbError> {
        let sql = format!(
            "UPDATE work SET lease_until = {NOW} + ?2 WHERE holder = ?1 AND lease_until > {NOW} \
             RETURNING owner, repo, issue_number, fence, claim_id"
        );
        self.select("renew the leases", &sql, params![holder, whole_secs(lease)], |row| {
            let fence = Fence { number: row.get(3)?, claim: row.get(4)? };
            Ok(HeldLease { key: read_key(row, 0)?, fence })
        })
    }
}

impl SqliteStore {
    fn take_over(
        &self,
        rest: &str,
        is_free: impl Fn(&WorkItem) -> bool,
        holder: &str,
        lease: Duration,
    ) -> Result<Vec<WorkItem>, DbError> {
        self.change("store work", |transaction| {
            let mut taken = Vec::new();
            for work in self.read_works_in(transaction, rest, params![holder])? {
                if is_free(&work) {
                    self.hold(transaction, &work.key, work.state, holder, lease)?;
                    taken.push(self.known_work(transaction, &work.key)?);
                }
            }
            Ok(taken)
        })
    }

    /// Gives an item to a holder, under a new claim.
    fn hold(
        &self,
        transaction: &Transaction<'_>,
        key: &IssueKey,
        state: WorkState,
        holder: &str,
        lease: Duration,
    ) -> Result<(), DbError> {
        let IssueKey { owner, repo, issue_number } = key;
        let sql = format!(
            "UPDATE work SET state = ?4, fence = fence + 1, claim_id = ?8, holder = ?5, \
             lease_until = {NOW} + ?6, not_before = NULL, updated_at = ?7 {OF_ISSUE}"
        );
        let (now, lease, claim) = (host::clock::now().to_string(), whole_secs(lease), new_claim()?);
        let values = params![owner, repo, issue_number, state.name(), holder, lease, now, claim];
        transaction.execute(&sql, values).map_err(self.failed("claim work")).map(drop)
    }
}

/// Seconds of a lease. The clock drops the fraction of its second, which must not shorten the lease.
pub(super) fn whole_secs(lease: Duration) -> u64 {
    lease.as_secs() + 1
}
