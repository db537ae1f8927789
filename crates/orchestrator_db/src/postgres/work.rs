//! Work items: every write is guarded by the fence, and every step by the state machine.

use jiff::Timestamp;

use super::value::{Cells, Value};
use super::{FIRST_PLACE, OF_ISSUE, OPEN_PLACE, PostgresStore, Tx, key_values, of_key};
use crate::error::DbError;
use crate::fence::{Fence, new_claim};
use crate::forge_state::IssueKey;
use crate::rules::lifecycle::{WorkState, WorkStep, next_work};
use crate::store::WorkStore;
use crate::work::{StatusComment, WorkEvent, WorkHold, WorkItem, WorkNote, WorkOrder, WorkRequest};

pub(super) const COLUMNS: &str = "owner, repo, issue_number, state, request, trigger, title, slug, fence, claim_id, claims, \
                       holder, lease_until, not_before, destroy_at, attempts, reason, created_at, updated_at, \
                       waits_for, after, priority_mins, queued_at";

const ORDER: &str = r#"ORDER BY owner COLLATE "C", repo COLLATE "C", issue_number"#;

impl WorkStore for PostgresStore {
    fn works(&self) -> Result<Vec<WorkItem>, DbError> {
        self.read_works(ORDER, &[])
    }

    fn work(&self, key: &IssueKey) -> Result<Option<WorkItem>, DbError> {
        Ok(self.read_works(OF_ISSUE, &key_values(key))?.pop())
    }

    fn add_work(
        &self,
        key: &IssueKey,
        title: &str,
        request: &WorkRequest,
        note: &WorkNote,
    ) -> Result<WorkItem, DbError> {
        let state = note.first_state();
        let order = note.order.clone().unwrap_or_default();
        self.change("store work", |tx| {
            let sql = "INSERT INTO work (owner, repo, issue_number, state, request, title, fence, claim_id, \
                 claims, trigger, attempts, reason, created_at, updated_at, queued_at, waits_for, after, \
                 priority_mins) \
                 VALUES ($1, $2, $3, $4, $5, $6, 1, $7, 0, $8, 0, $9, clock_timestamp(), \
                 clock_timestamp(), clock_timestamp(), $10, $11, $12) \
                 ON CONFLICT (owner, repo, issue_number) DO UPDATE SET state = $4, request = $5, \
                 title = $6, trigger = $8, slug = NULL, fence = work.fence + 1, claim_id = $7, \
                 attempts = 0, reason = $9, not_before = NULL, destroy_at = NULL, \
                 updated_at = clock_timestamp(), queued_at = clock_timestamp(), waits_for = $10, \
                 after = $11, priority_mins = $12 WHERE work.state = 'destroyed'";
            let values = of_key(
                key,
                [
                    state.name().into(),
                    serde_json::json!(request).to_string().into(),
                    title.into(),
                    new_claim()?.into(),
                    (&note.trigger).into(),
                    (&note.reason).into(),
                    note.waits_for.map(WorkHold::name).into(),
                    order.after_json().into(),
                    order.priority_mins.into(),
                ],
            );
            if tx.execute("queue work", sql, &values)? > 0 {
                tx.raise_fence(key)?;
                tx.record_event(key, state, &note.reason)?;
            }
            tx.known_work(key)
        })
    }

    fn step_work(
        &self,
        key: &IssueKey,
        fence: Fence,
        step: WorkStep,
        note: &WorkNote,
    ) -> Result<WorkState, DbError> {
        self.change("store work", |tx| {
            let rest = format!("{OF_ISSUE} FOR UPDATE");
            let found = tx.read_works(&rest, &key_values(key))?.pop();
            let work = found.ok_or_else(|| DbError::Unknown { key: key.clone() })?;
            if work.fence != fence {
                let (key, held) = (key.clone(), work.fence);
                return Err(DbError::Fenced { key, held, came: fence });
            }
            let from = work.state;
            let next = next_work(from, step)?;
            if from.is_held() && !next.is_held() {
                tx.release_unstarted(key)?;
            }
            tx.write_step(key, next, note)?;
            if let Some(order) = &note.order {
                tx.write_order(key, order)?;
            }
            tx.record_event(key, next, &note.reason)?;
            Ok(next)
        })
    }

    fn set_order(&self, key: &IssueKey, fence: Fence, order: &WorkOrder) -> Result<(), DbError> {
        self.change("store work", |tx| {
            tx.check_fence(key, fence)?;
            tx.write_order(key, order)
        })
    }

    fn set_destroy_at(
        &self,
        key: &IssueKey,
        fence: Fence,
        at: Option<Timestamp>,
    ) -> Result<(), DbError> {
        self.change("schedule the destruction", |tx| {
            tx.check_fence(key, fence)?;
            let sql = format!("UPDATE work SET destroy_at = $4 {OF_ISSUE}");
            tx.execute("schedule the destruction", &sql, &of_key(key, [at.into()])).map(drop)
        })
    }

    fn forget_work(&self, key: &IssueKey, fence: Fence) -> Result<(), DbError> {
        self.change("delete work", |tx| {
            tx.check_fence(key, fence)?;
            let of_destroyed = format!("{OF_ISSUE} AND state = 'destroyed'");
            let sql = format!(
                "INSERT INTO past_fence (owner, repo, issue_number, fence, claim_id) \
                 SELECT owner, repo, issue_number, fence, claim_id FROM work {of_destroyed} \
                 ON CONFLICT (owner, repo, issue_number) \
                 DO UPDATE SET fence = excluded.fence, claim_id = excluded.claim_id"
            );
            tx.execute("delete work", &sql, &key_values(key))?;
            let sql = format!("DELETE FROM work {of_destroyed}");
            tx.execute("delete work", &sql, &key_values(key)).map(drop)
        })
    }

    fn work_events(&self, key: &IssueKey) -> Result<Vec<WorkEvent>, DbError> {
        self.read_events(&format!("{OF_ISSUE} ORDER BY seq"), &key_values(key))
    }

    fn events_since(&self, seq: u64, limit: usize) -> Result<Vec<WorkEvent>, DbError> {
        let rest = format!("WHERE seq > $1 AND seq < {OPEN_PLACE} ORDER BY seq LIMIT $2");
        self.read_events(&rest, &[seq.into(), limit.into()])
    }

    fn last_event(&self) -> Result<u64, DbError> {
        let sql = format!("SELECT coalesce(max(seq), 0) FROM work_event WHERE seq < {OPEN_PLACE}");
        self.count("read the events", &sql, &[])
    }

    fn status_comment(&self, key: &IssueKey) -> Result<Option<StatusComment>, DbError> {
        let sql = format!("SELECT comment_id, digest FROM status_comment {OF_ISSUE}");
        let read = |row: &Cells<'_>| {
            Ok(StatusComment { comment: row.number_option(0)?, digest: row.get(1)? })
        };
        Ok(self.select("read a status comment", &sql, &key_values(key), read)?.pop())
    }

    fn save_status_comment(
        &self,
        key: &IssueKey,
        fence: Fence,
        comment: &StatusComment,
    ) -> Result<(), DbError> {
        self.change("store a status comment", |tx| {
            tx.check_fence(key, fence)?;
            let sql = "INSERT INTO status_comment (owner, repo, issue_number, comment_id, digest) \
                       VALUES ($1, $2, $3, $4, $5) ON CONFLICT (owner, repo, issue_number) \
                       DO UPDATE SET comment_id = $4, digest = $5";
            let StatusComment { comment, digest } = comment;
            let values = of_key(key, [(*comment).into(), digest.into()]);
            tx.execute("store a status comment", sql, &values).map(drop)
        })
    }
}

impl PostgresStore {
    pub(super) fn read_works(
        &self,
        rest: &str,
        values: &[Value],
    ) -> Result<Vec<WorkItem>, DbError> {
        self.select("read work", &format!("SELECT {COLUMNS} FROM work {rest}"), values, read_row)
    }

    fn read_events(&self, rest: &str, values: &[Value]) -> Result<Vec<WorkEvent>, DbError> {
        let sql = format!(
            "SELECT seq, owner, repo, issue_number, at, state, reason FROM work_event {rest}"
        );
        self.select("read the events", &sql, values, |row| {
            Ok(WorkEvent {
                seq: row.number(0)?,
                key: row.key(1)?,
                at: row.get(4)?,
                state: row.parsed(5, WorkState::parse)?,
                reason: row.get(6)?,
            })
        })
    }
}

impl Tx<'_> {
    pub(super) fn read_works(
        &mut self,
        rest: &str,
        values: &[Value],
    ) -> Result<Vec<WorkItem>, DbError> {
        self.rows("read work", &format!("SELECT {COLUMNS} FROM work {rest}"), values, read_row)
    }

    /// The item of an issue that has one.
    pub(super) fn known_work(&mut self, key: &IssueKey) -> Result<WorkItem, DbError> {
        let found = self.read_works(OF_ISSUE, &key_values(key))?.pop();
        found.ok_or_else(|| DbError::Unknown { key: key.clone() })
    }

    /// Records the one event of this transaction, and wakes the other processes if it gives them something to do.
    pub(super) fn record_event(
        &mut self,
        key: &IssueKey,
        state: WorkState,
        reason: &str,
    ) -> Result<(), DbError> {
        let sql = format!(
            "INSERT INTO work_event (owner, repo, issue_number, seq, at, state, reason) \
             VALUES ($1, $2, $3, {FIRST_PLACE}, clock_timestamp(), $4, $5)"
        );
        let values = of_key(key, [state.name().into(), reason.into()]);
        self.execute("store an event", &sql, &values)?;
        match state {
            WorkState::Queued | WorkState::Waiting => self.notify(),
            WorkState::Claimed
            | WorkState::Running
            | WorkState::Frozen
            | WorkState::NeedsAttention
            | WorkState::Destroyed => Ok(()),
        }
    }

    /// Lifts the fence of an item that was just queued above that of the one before it, which was deleted. Its row is locked,
    /// so that the fence of no later one is overlooked.
    fn raise_fence(&mut self, key: &IssueKey) -> Result<(), DbError> {
        let sql = "UPDATE work SET fence = past.fence + 1 FROM past_fence AS past \
                   WHERE work.owner = $1 AND work.repo = $2 AND work.issue_number = $3 \
                   AND past.owner = $1 AND past.repo = $2 AND past.issue_number = $3 \
                   AND past.fence >= work.fence";
        self.execute("queue work", sql, &key_values(key)).map(drop)
    }

    fn write_step(
        &mut self,
        key: &IssueKey,
        next: WorkState,
        note: &WorkNote,
    ) -> Result<(), DbError> {
        let sql = format!(
            "UPDATE work SET state = $4, reason = $5, slug = COALESCE($6, slug), \
             request = COALESCE($7, request), not_before = $8, attempts = COALESCE($9, attempts), \
             updated_at = clock_timestamp(), holder = CASE WHEN $10 THEN holder END, \
             lease_until = CASE WHEN $10 THEN lease_until END, trigger = COALESCE($11, trigger), \
             waits_for = $12, queued_at = CASE WHEN $13 THEN clock_timestamp() ELSE queued_at END \
             {OF_ISSUE}"
        );
        let request = note.request.as_ref().map(|request| serde_json::json!(request).to_string());
        let values = of_key(
            key,
            [
                next.name().into(),
                (&note.reason).into(),
                (&note.slug).into(),
                request.into(),
                note.not_before.into(),
                note.attempts.into(),
                next.is_held().into(),
                (&note.trigger).into(),
                note.hold_in(next).map(WorkHold::name).into(),
                note.is_queued_anew(next).into(),
            ],
        );
        self.execute("take a step", &sql, &values).map(drop)
    }

    fn write_order(&mut self, key: &IssueKey, order: &WorkOrder) -> Result<(), DbError> {
        let sql = format!("UPDATE work SET priority_mins = $4, after = $5 {OF_ISSUE}");
        let values = of_key(key, [order.priority_mins.into(), order.after_json().into()]);
        self.execute("store the order of work", &sql, &values).map(drop)
    }
}

/// In the order of [`COLUMNS`].
pub(super) fn read_row(row: &Cells<'_>) -> Result<WorkItem, DbError> {
    Ok(WorkItem {
        key: row.key(0)?,
        state: row.parsed(3, WorkState::parse)?,
        request: row.parsed(4, |text| serde_json::from_str(text).ok())?,
        trigger: row.get(5)?,
        title: row.get(6)?,
        slug: row.get(7)?,
        fence: Fence { number: row.number(8)?, claim: row.number(9)? },
        claims: row.number(10)?,
        holder: row.get(11)?,
        lease_until: row.get(12)?,
        not_before: row.get(13)?,
        destroy_at: row.get(14)?,
        attempts: row.number(15)?,
        reason: row.get(16)?,
        created_at: row.get(17)?,
        updated_at: row.get(18)?,
        waits_for: row.parsed_option(19, WorkHold::parse)?,
        order: WorkOrder {
            after: row.parsed(20, |text| serde_json::from_str(text).ok())?,
            priority_mins: row.get(21)?,
        },
        queued_at: row.get(22)?,
    })
}
