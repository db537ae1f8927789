//! Work items: every write is guarded by the fence, and every step by the state machine.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::{
    OF_ISSUE, SqliteStore, invalid, key_values, parse_time, parsed, parsed_option, read_key,
};
use crate::error::DbError;
use crate::fence::{Fence, new_claim};
use crate::forge_state::IssueKey;
use crate::rules::lifecycle::{WorkState, WorkStep, next_work};
use crate::store::WorkStore;
use crate::work::{StatusComment, WorkEvent, WorkHold, WorkItem, WorkNote, WorkOrder, WorkRequest};

const COLUMNS: &str = "owner, repo, issue_number, state, request, trigger, title, slug, fence, claims, holder, \
                       lease_until, not_before, destroy_at, attempts, reason, created_at, updated_at, \
                       waits_for, after, priority_mins, queued_at, claim_id";

impl WorkStore for SqliteStore {
    fn works(&self) -> Result<Vec<WorkItem>, DbError> {
        self.read_works("ORDER BY owner, repo, issue_number", params![])
    }

    fn work(&self, key: &IssueKey) -> Result<Option<WorkItem>, DbError> {
        Ok(self.read_works(OF_ISSUE, key_values(key))?.pop())
    }

    fn add_work(
        &self,
        key: &IssueKey,
        title: &str,
        request: &WorkRequest,
        note: &WorkNote,
    ) -> Result<WorkItem, DbError> {
        let IssueKey { owner, repo, issue_number } = key;
        self.change("store work", |transaction| {
            let sql = "INSERT INTO work (owner, repo, issue_number, state, request, title, fence, claim_id, \
                 claims, trigger, attempts, reason, created_at, updated_at, queued_at, waits_for, after, \
                 priority_mins) \
                 VALUES (?1, ?2, ?3, ?9, ?4, ?5, ?13, ?14, 0, ?8, 0, ?6, ?7, ?7, ?7, ?10, ?11, ?12) \
                 ON CONFLICT (owner, repo, issue_number) DO UPDATE SET state = ?9, request = ?4, \
                 title = ?5, trigger = ?8, slug = NULL, fence = fence + 1, claim_id = ?14, attempts = 0, \
                 reason = ?6, not_before = NULL, destroy_at = NULL, updated_at = ?7, queued_at = ?7, \
                 waits_for = ?10, after = ?11, priority_mins = ?12 \
                 WHERE work.state = 'destroyed'";
            let now = host::clock::now().to_string();
            let request = serde_json::json!(request).to_string();
            let first = self.current_fence(transaction, key)?.number + 1;
            let WorkNote { reason, trigger, waits_for, .. } = note;
            let order = note.order.clone().unwrap_or_default();
            let state = note.first_state();
            let values = params![
                owner,
                repo,
                issue_number,
                request,
                title,
                reason,
                now,
                trigger,
                state.name(),
                waits_for.map(WorkHold::name),
                order.after_json(),
                order.priority_mins,
                first,
                new_claim()?,
            ];
            let changed =
                transaction.execute(sql, values).map_err(self.failed("queue work"))?;
            if changed > 0 {
                self.record_event(transaction, key, state, &note.reason)?;
            }
            self.known_work(transaction, key)
        })
    }

    fn step_work(
        &self,
        key: &IssueKey,
        fence: Fence,
        step: WorkStep,
        note: &WorkNote,
    ) -> Result<WorkState, DbError> {
        self.change("store work", |transaction| {
            let sql = format!("SELECT state FROM work {OF_ISSUE}");
            let from = transaction
                .query_row(&sql, key_values(key), |row| parsed(row, 0, WorkState::parse))
                .optional()
                .map_err(self.failed("read work"))?
                .ok_or_else(|| DbError::Unknown { key: key.clone() })?;
            self.check_fence(transaction, key, fence)?;
            let next = next_work(from, step)?;
            let sql = format!(
                "UPDATE work SET state = ?4, reason = ?5, slug = COALESCE(?6, slug), \
                 request = COALESCE(?7, request), trigger = COALESCE(?12, trigger), not_before = ?8, \
                 attempts = COALESCE(?9, attempts), updated_at = ?10, waits_for = ?13, \
                 queued_at = CASE WHEN ?14 THEN ?10 ELSE queued_at END, \
                 holder = CASE WHEN ?11 THEN holder END, \
                 lease_until = CASE WHEN ?11 THEN lease_until END {OF_ISSUE}"
            );
            if from.is_held() && !next.is_held() {
                self.release_unstarted(transaction, key)?;
            }
            let values = params![
                key.owner,
                key.repo,
                key.issue_number,
                next.name(),
                note.reason,
                note.slug,
                note.request.as_ref().map(|request| serde_json::json!(request).to_string()),
                note.not_before.map(|at| at.to_string()),
                note.attempts,
                host::clock::now().to_string(),
                next.is_held(),
                note.trigger,
                note.hold_in(next).map(WorkHold::name),
                note.is_queued_anew(next),
            ];
            transaction.execute(&sql, values).map_err(self.failed("take a step"))?;
            if let Some(order) = &note.order {
                self.write_order(transaction, key, order)?;
            }
            self.record_event(transaction, key, next, &note.reason)?;
            Ok(next)
        })
    }

    fn set_order(&self, key: &IssueKey, fence: Fence, order: &WorkOrder) -> Result<(), DbError> {
        self.change("store work", |transaction| {
            self.check_fence(transaction, key, fence)?;
            self.write_order(transaction, key, order)
        })
    }

    fn set_destroy_at(
        &self,
        key: &IssueKey,
        fence: Fence,
        at: Option<Timestamp>,
    ) -> Result<(), DbError> {
        self.change("schedule the destruction", |transaction| {
            self.check_fence(transaction, key, fence)?;
            let sql = format!("UPDATE work SET destroy_at = ?4 {OF_ISSUE}");
            let at = at.map(|at| at.to_string());
            let values = params![key.owner, key.repo, key.issue_number, at];
            let written = transaction.execute(&sql, values);
            written.map_err(self.failed("schedule the destruction")).map(drop)
        })
    }

    fn forget_work(&self, key: &IssueKey, fence: Fence) -> Result<(), DbError> {
        self.change("delete work", |transaction| {
            self.check_fence(transaction, key, fence)?;
            let of_destroyed = format!("{OF_ISSUE} AND state = 'destroyed'");
            let sql = format!(
                "INSERT OR REPLACE INTO past_fence (owner, repo, issue_number, fence, claim_id) \
                 SELECT owner, repo, issue_number, fence, claim_id FROM work {of_destroyed}"
            );
            transaction.execute(&sql, key_values(key)).map_err(self.failed("delete work"))?;
            let sql = format!("DELETE FROM work {of_destroyed}");
            transaction.execute(&sql, key_values(key)).map_err(self.failed("delete work")).map(drop)
        })
    }

    fn work_events(&self, key: &IssueKey) -> Result<Vec<WorkEvent>, DbError> {
        self.read_events(&format!("{OF_ISSUE} ORDER BY seq"), key_values(key))
    }

    fn status_comment(&self, key: &IssueKey) -> Result<Option<StatusComment>, DbError> {
        let sql = format!("SELECT comment_id, digest FROM status_comment {OF_ISSUE}");
        let read = |row: &Row<'_>| Ok(StatusComment { comment: row.get(0)?, digest: row.get(1)? });
        Ok(self.select("read a status comment", &sql, key_values(key), read)?.pop())
    }

    fn save_status_comment(
        &self,
        key: &IssueKey,
        fence: Fence,
        comment: &StatusComment,
    ) -> Result<(), DbError> {
        self.change("store a status comment", |transaction| {
            self.check_fence(transaction, key, fence)?;
            let sql = "INSERT OR REPLACE INTO status_comment \
                       (owner, repo, issue_number, comment_id, digest) VALUES (?1, ?2, ?3, ?4, ?5)";
            let StatusComment { comment, digest } = comment;
            let values = params![key.owner, key.repo, key.issue_number, comment, digest];
            let written = transaction.execute(sql, values);
            written.map_err(self.failed("store a status comment")).map(drop)
        })
    }

    fn events_since(&self, seq: u64, limit: usize) -> Result<Vec<WorkEvent>, DbError> {
        self.read_events("WHERE seq > ?1 ORDER BY seq LIMIT ?2", params![seq, limit])
    }

    fn last_event(&self) -> Result<u64, DbError> {
        let sql = "SELECT coalesce(max(seq), 0) FROM work_event";
        self.lock().query_row(sql, [], |row| row.get(0)).map_err(self.failed("read the events"))
    }
}

impl SqliteStore {
    fn write_order(
        &self,
        transaction: &Transaction<'_>,
        key: &IssueKey,
        order: &WorkOrder,
    ) -> Result<(), DbError> {
        let sql = format!("UPDATE work SET priority_mins = ?4, after = ?5 {OF_ISSUE}");
        let IssueKey { owner, repo, issue_number } = key;
        let values = params![owner, repo, issue_number, order.priority_mins, order.after_json()];
        let written = transaction.execute(&sql, values);
        written.map_err(self.failed("store the order of work")).map(drop)
    }

    pub(super) fn record_event(
        &self,
        transaction: &Transaction<'_>,
        key: &IssueKey,
        state: WorkState,
        reason: &str,
    ) -> Result<(), DbError> {
        let sql = "INSERT INTO work_event (owner, repo, issue_number, at, state, reason) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let IssueKey { owner, repo, issue_number } = key;
        let now = host::clock::now().to_string();
        transaction
            .execute(sql, params![owner, repo, issue_number, now, state.name(), reason])
            .map_err(self.failed("store an event"))
            .map(drop)
    }

    /// The item of an issue that has one.
    pub(super) fn known_work(
        &self,
        connection: &Connection,
        key: &IssueKey,
    ) -> Result<WorkItem, DbError> {
        let mut found = self.read_works_in(connection, OF_ISSUE, key_values(key))?;
        found.pop().ok_or_else(|| DbError::Unknown { key: key.clone() })
    }

    pub(super) fn read_works(
        &self,
        rest: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<WorkItem>, DbError> {
        self.read_works_in(&self.lock(), rest, values)
    }

    pub(super) fn read_works_in(
        &self,
        connection: &Connection,
        rest: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<WorkItem>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM work {rest}");
        self.rows(connection, "read work", &sql, values, read_row)
    }

    fn read_events(
        &self,
        rest: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<WorkEvent>, DbError> {
        let sql = format!(
            "SELECT seq, owner, repo, issue_number, at, state, reason FROM work_event {rest}"
        );
        self.select("read the events", &sql, values, |row| {
            Ok(WorkEvent {
                seq: row.get(0)?,
                key: read_key(row, 1)?,
                at: parsed(row, 4, parse_time)?,
                state: parsed(row, 5, WorkState::parse)?,
                reason: row.get(6)?,
            })
        })
    }
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Row<'_>) -> rusqlite::Result<WorkItem> {
    let lease_until = row
        .get::<_, Option<i64>>(11)?
        .map(|secs| Timestamp::from_second(secs).or(Err(invalid(row, 11, secs.to_string()))));
    Ok(WorkItem {
        key: read_key(row, 0)?,
        state: parsed(row, 3, WorkState::parse)?,
        request: parsed(row, 4, |text| serde_json::from_str(text).ok())?,
        trigger: row.get(5)?,
        title: row.get(6)?,
        slug: row.get(7)?,
        fence: Fence { number: row.get(8)?, claim: row.get(22)? },
        claims: row.get(9)?,
        holder: row.get(10)?,
        lease_until: lease_until.transpose()?,
        not_before: parsed_option(row, 12, parse_time)?,
        destroy_at: parsed_option(row, 13, parse_time)?,
        attempts: row.get(14)?,
        reason: row.get(15)?,
        created_at: parsed(row, 16, parse_time)?,
        updated_at: parsed(row, 17, parse_time)?,
        waits_for: parsed_option(row, 18, WorkHold::parse)?,
        order: WorkOrder {
            after: parsed(row, 19, |text| serde_json::from_str(text).ok())?,
            priority_mins: row.get(20)?,
        },
        queued_at: parsed(row, 21, parse_time)?,
    })
}
