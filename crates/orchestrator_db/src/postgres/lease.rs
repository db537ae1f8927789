//! Claims and their leases, by the clock of the database.

use std::time::Duration;

use super::value::{Cells, Value};
use super::work::{COLUMNS, read_row};
use super::{FIRST_PLACE, OF_ISSUE, PostgresStore, Tx, key_values, of_key};
use crate::error::DbError;
use crate::fence::{Fence, HeldLease, new_claim};
use crate::forge_state::IssueKey;
use crate::rules::holder::host_of;
use crate::rules::lifecycle::{WorkState, WorkStep, next_work};
use crate::spending::{RunReservation, WorkClaim};
use crate::store::LeaseStore;
use crate::work::WorkItem;

/// Items that the host `$1` can work on: they have no bottle, or it is there, or every host can fetch it.
const WITHIN_REACH: &str = "NOT EXISTS (SELECT 1 FROM forge_state AS bottle \
    WHERE bottle.owner = work.owner AND bottle.repo = work.repo \
    AND bottle.issue_number = work.issue_number \
    AND bottle.status <> 'destroyed' AND bottle.host <> $1 AND bottle.saved IS NULL)";

/// Items that are not left to the host that has their bottle: to fetch it costs more than to wait, so that host has a head start.
const NOT_LEFT_TO_ANOTHER: &str = "NOT EXISTS (SELECT 1 FROM forge_state AS bottle \
    WHERE bottle.owner = work.owner AND bottle.repo = work.repo \
    AND bottle.issue_number = work.issue_number \
    AND bottle.status <> 'destroyed' AND bottle.host <> $1 \
    AND work.updated_at > statement_timestamp() - interval '10 seconds')";

/// Items that one look takes over; the next look takes the others.
const TAKE_OVER_MAX: u64 = 100;

impl LeaseStore for PostgresStore {
    fn claimable_works(&self, host: &str, limit: usize) -> Result<Vec<WorkItem>, DbError> {
        let rest = format!(
            r#"WHERE state = 'waiting' AND waits_for = 'budget' AND {WITHIN_REACH} AND {NOT_LEFT_TO_ANOTHER}
            UNION ALL (SELECT {COLUMNS} FROM work
                WHERE state IN ('queued', 'waiting') AND waits_for IS NULL
                AND (state = 'queued' OR not_before <= statement_timestamp()) AND {WITHIN_REACH} AND {NOT_LEFT_TO_ANOTHER}
                ORDER BY (queued_at AT TIME ZONE 'UTC') - priority_mins * interval '1 minute',
                owner COLLATE "C", repo COLLATE "C", issue_number LIMIT $2)"#
        );
        let mut works = self.read_works(&rest, &[host.into(), limit.into()])?;
        works.sort_by(WorkItem::compare_rank);
        Ok(works)
    }

    fn works_to_maintain(&self, holder: &str) -> Result<Vec<WorkItem>, DbError> {
        let rest = r#"WHERE holder = $1 OR (destroy_at <= statement_timestamp() AND holder IS NULL
            AND state <> 'destroyed') ORDER BY owner COLLATE "C", repo COLLATE "C", issue_number"#;
        self.read_works(rest, &[holder.into()])
    }

    fn claim_work(
        &self,
        work: &WorkItem,
        holder: &str,
        lease: Duration,
        reservation: Option<&RunReservation>,
    ) -> Result<WorkClaim, DbError> {
        let next = next_work(work.state, WorkStep::Claim)?;
        let (sql, values) = claim_statement(work, next, holder, lease)?;
        let claimed = match reservation {
            // One statement. It is safe to repeat on another connection: what it claimed has another fence.
            None => self.select("claim work", &sql, &values, read_row)?.pop(),
            Some(request) => {
                let key = &work.key;
                let reserved = self.change("claim work", |tx| {
                    if !tx.lock_unchanged(work)? {
                        return Ok(Err(WorkClaim::Gone));
                    }
                    tx.release_unstarted(key)?;
                    if let Some(refusal) = tx.reserve(key, (None, host_of(holder)), request)? {
                        return Ok(Err(WorkClaim::Refused(refusal)));
                    }
                    let claimed = tx.rows("claim work", &sql, &values, read_row)?.pop();
                    if claimed.is_none() {
                        tx.release_unstarted(key)?;
                    }
                    Ok(Ok(claimed))
                });
                match reserved? {
                    Ok(claimed) => claimed,
                    Err(other) => return Ok(other),
                }
            }
        };
        match (claimed, host_of(holder)) {
            (Some(work), _) => Ok(WorkClaim::Claimed(Box::new(work))),
            (None, Some(host)) => self.check_bottle_host(&work.key, host).map(|()| WorkClaim::Gone),
            (None, None) => Ok(WorkClaim::Gone),
        }
    }

    fn take_over_host(&self, holder: &str, lease: Duration) -> Result<Vec<WorkItem>, DbError> {
        // A holder without a host is one of the host that has the database.
        let rest = r#"WHERE holder <> $1 AND ($2::text IS NULL OR strpos(holder, '/') = 0
            OR split_part(holder, '/', 1) = $2)
            ORDER BY owner COLLATE "C", repo COLLATE "C", issue_number FOR UPDATE"#;
        self.change("take over work", |tx| {
            let free = tx.read_works(rest, &[holder.into(), host_of(holder).into()])?;
            free.iter().map(|work| tx.hold(work, holder, lease)).collect()
        })
    }

    fn take_over_expired(&self, holder: &str, lease: Duration) -> Result<Vec<WorkItem>, DbError> {
        // Mostly there is none, and to know that needs no transaction.
        let sql = "SELECT count(*) FROM (SELECT 1 FROM work WHERE holder IS NOT NULL AND holder <> $1 \
                   AND lease_until <= statement_timestamp() LIMIT 1) AS expired";
        if self.count("find expired leases", sql, &[holder.into()])? == 0 {
            return Ok(Vec::new());
        }
        let rest = "WHERE holder IS NOT NULL AND holder <> $1 \
                    AND lease_until <= statement_timestamp() \
                    ORDER BY lease_until LIMIT $2 FOR UPDATE SKIP LOCKED";
        self.change("take over work", |tx| {
            let expired = tx.read_works(rest, &[holder.into(), TAKE_OVER_MAX.into()])?;
            expired.iter().map(|work| tx.hold(work, holder, lease)).collect()
        })
    }

    fn reclaim_work(
        &self,
        key: &IssueKey,
        fence: Fence,
        holder: &str,
        lease: Duration,
    ) -> Result<Option<WorkItem>, DbError> {
        self.change("claim work", |tx| {
            let rest = format!("{OF_ISSUE} FOR UPDATE");
            let found = tx.read_works(&rest, &key_values(key))?.pop();
            let is_held =
                |work: &WorkItem| work.fence == fence && work.holder.as_deref() == Some(holder);
            match found.filter(is_held) {
                Some(work) => tx.hold(&work, holder, lease).map(Some),
                None => Ok(None),
            }
        })
    }

    fn raise_claim(
        &self,
        key: &IssueKey,
        fence: Fence,
        above: u64,
    ) -> Result<Option<Fence>, DbError> {
        let number = fence.number.max(above + 1);
        let sql = format!("UPDATE work SET fence = $4 {OF_ISSUE} AND fence = $5 AND claim_id = $6");
        let more = [number.into(), fence.number.into(), fence.claim.into()];
        let raised = self.execute("raise a claim", &sql, &of_key(key, more))?;
        Ok((raised > 0).then_some(Fence { number, ..fence }))
    }

    fn renew_leases(&self, holder: &str, lease: Duration) -> Result<Vec<HeldLease>, DbError> {
        let sql = "UPDATE work SET lease_until = clock_timestamp() + make_interval(secs => $2) \
                   WHERE holder = $1 AND lease_until > clock_timestamp() \
                   RETURNING owner, repo, issue_number, fence, claim_id";
        let values = [holder.into(), lease.as_secs_f64().into()];
        self.change("renew the leases", |tx| {
            tx.rows("renew the leases", sql, &values, |row: &Cells<'_>| {
                let fence = Fence { number: row.number(3)?, claim: row.number(4)? };
                Ok(HeldLease { key: row.key(0)?, fence })
            })
        })
    }
}

/// Claims an item that is as it was read, and records the event. A row that another transaction has locked is being changed
/// by that one, and is passed over.
fn claim_statement(
    work: &WorkItem,
    next: WorkState,
    holder: &str,
    lease: Duration,
) -> Result<(String, Vec<Value>), DbError> {
    let within_reach = WITHIN_REACH.replace("$1", "$11");
    let sql = format!(
        "WITH found AS (SELECT owner, repo, issue_number FROM work \
             {OF_ISSUE} AND state = $4 AND fence = $5 AND claim_id = $6 \
             AND {within_reach} \
             FOR UPDATE SKIP LOCKED), \
         claimed AS (UPDATE work SET state = $7, fence = fence + 1, claim_id = $8, \
             claims = claims + 1, waits_for = NULL, not_before = NULL, holder = $9, \
             lease_until = clock_timestamp() + make_interval(secs => $10), \
             updated_at = clock_timestamp() FROM found \
             WHERE work.owner = found.owner AND work.repo = found.repo \
             AND work.issue_number = found.issue_number RETURNING work.*), \
         event AS (INSERT INTO work_event (seq, owner, repo, issue_number, at, state, reason) \
             SELECT {FIRST_PLACE}, owner, repo, issue_number, clock_timestamp(), state, \
             'a slot is free' FROM claimed) \
         SELECT {COLUMNS} FROM claimed"
    );
    let values = of_key(
        &work.key,
        [
            work.state.name().into(),
            work.fence.number.into(),
            work.fence.claim.into(),
            next.name().into(),
            new_claim()?.into(),
            holder.into(),
            lease.as_secs_f64().into(),
            host_of(holder).into(),
        ],
    );
    Ok((sql, values))
}

impl PostgresStore {
    /// Refuses a host that does not have the bottle of an issue.
    fn check_bottle_host(&self, key: &IssueKey, host: &str) -> Result<(), DbError> {
        self.change("read a state", |tx| {
            tx.locked_state(key)?.map_or(Ok(()), |known| known.check_claimable(host))
        })
    }
}

impl Tx<'_> {
    /// Locks an item; false if it is not as it was read, or another transaction has locked it.
    fn lock_unchanged(&mut self, work: &WorkItem) -> Result<bool, DbError> {
        let sql = format!(
            "SELECT 1::bigint FROM work {OF_ISSUE} AND state = $4 AND fence = $5 AND claim_id = $6 \
             FOR UPDATE SKIP LOCKED"
        );
        let Fence { number, claim } = work.fence;
        let values = of_key(&work.key, [work.state.name().into(), number.into(), claim.into()]);
        Ok(!self.rows("find work", &sql, &values, |_| Ok(()))?.is_empty())
    }

    /// Gives an item to a holder, under a new claim.
    fn hold(
        &mut self,
        work: &WorkItem,
        holder: &str,
        lease: Duration,
    ) -> Result<WorkItem, DbError> {
        let sql = format!(
            "UPDATE work SET fence = fence + 1, claim_id = $4, holder = $5, \
             lease_until = clock_timestamp() + make_interval(secs => $6), not_before = NULL, \
             updated_at = clock_timestamp() {OF_ISSUE} RETURNING {COLUMNS}"
        );
        let more = [new_claim()?.into(), holder.into(), lease.as_secs_f64().into()];
        let held = self.rows("claim work", &sql, &of_key(&work.key, more), read_row)?.pop();
        held.ok_or_else(|| DbError::Unknown { key: work.key.clone() })
    }
}
