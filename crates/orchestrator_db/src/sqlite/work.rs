//! Work items: every step is guarded by the state machine and by the holder's fence.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::SqliteForgeStateStore;
use crate::error::DbError;
use crate::forge_state::IssueKey;
use crate::rules::lifecycle::{WorkState, WorkStep, next_work};
use crate::work::{WorkEvent, WorkItem, WorkNote, WorkRequest};

const COLUMNS: &str = "owner, repo, issue_number, state, request, trigger, title, slug, fence, claims, holder, \
                       lease_until, not_before, destroy_at, attempts, reason, created_at, updated_at";

/// The database's clock, in seconds. Leases use no other clock.
const NOW: &str = "CAST(strftime('%s', 'now') AS INTEGER)";

impl SqliteForgeStateStore {
    /// All work items, by owner, repository and number.
    pub fn works(&self) -> Result<Vec<WorkItem>, DbError> {
        self.read_works("ORDER BY owner, repo, issue_number", params![])
    }

    pub fn work(&self, key: &IssueKey) -> Result<Option<WorkItem>, DbError> {
        let IssueKey { owner, repo, issue_number } = key;
        let which = "WHERE owner = ?1 AND repo = ?2 AND issue_number = ?3";
        Ok(self.read_works(which, params![owner, repo, issue_number])?.pop())
    }

    /// Queues an issue that has no work item, or whose bottle is removed. Any other work item is returned unchanged.
    pub fn add_work(
        &self,
        key: &IssueKey,
        title: &str,
        request: &WorkRequest,
        note: &WorkNote,
    ) -> Result<WorkItem, DbError> {
        let IssueKey { owner, repo, issue_number } = key;
        self.change(|transaction| {
            let sql = "INSERT INTO work (owner, repo, issue_number, state, request, title, fence, claims, trigger, \
                 attempts, reason, created_at, updated_at) \
                 VALUES (?1, ?2, ?3, 'queued', ?4, ?5, 1, 0, ?8, 0, ?6, ?7, ?7) \
                 ON CONFLICT (owner, repo, issue_number) DO UPDATE SET state = 'queued', \
                 request = ?4, title = ?5, trigger = ?8, slug = NULL, fence = fence + 1, attempts = 0, \
                 reason = ?6, not_before = NULL, destroy_at = NULL, updated_at = ?7 \
                 WHERE work.state = 'destroyed'";
            let now = host::clock::now().to_string();
            let request = render_request(request);
            let WorkNote { reason, trigger, .. } = note;
            let changed = transaction
                .execute(sql, params![owner, repo, issue_number, request, title, reason, now, trigger])
                .map_err(self.failed("queue work"))?;
            match changed {
                0 => Ok(()),
                _ => self.record_event(transaction, key, WorkState::Queued, &note.reason),
            }
        })?;
        self.work(key)?.ok_or_else(|| unknown(key))
    }

    /// Takes a step. A holder whose claim was taken over is refused.
    pub fn step_work(
        &self,
        key: &IssueKey,
        fence: u64,
        step: WorkStep,
        note: &WorkNote,
    ) -> Result<WorkState, DbError> {
        self.change(|transaction| {
            let (from, held) = self.issue_row(transaction, key)?;
            if held != fence {
                let IssueKey { owner, repo, issue_number } = key.clone();
                return Err(DbError::Fenced { owner, repo, issue_number, held, came: fence });
            }
            let next = next_work(from, step)?;
            let sql = "UPDATE work SET state = ?4, reason = ?5, slug = COALESCE(?6, slug), \
                 request = COALESCE(?7, request), trigger = COALESCE(?12, trigger), not_before = ?8, \
                 attempts = COALESCE(?9, attempts), updated_at = ?10, \
                 holder = CASE WHEN ?11 THEN holder END, \
                 lease_until = CASE WHEN ?11 THEN lease_until END \
                 WHERE owner = ?1 AND repo = ?2 AND issue_number = ?3";
            let IssueKey { owner, repo, issue_number } = key;
            transaction
                .execute(
                    sql,
                    params![
                        owner,
                        repo,
                        issue_number,
                        next.name(),
                        note.reason,
                        note.slug,
                        note.request.as_ref().map(render_request),
                        note.not_before.map(|at| at.to_string()),
                        note.attempts,
                        host::clock::now().to_string(),
                        next.is_held(),
                        note.trigger,
                    ],
                )
                .map_err(self.failed("take a step"))?;
            self.record_event(transaction, key, next, &note.reason)?;
            Ok(next)
        })
    }

    /// Claims the oldest item that is queued, or waiting and due. The claim is on disk before anything starts.
    pub fn claim_work(&self, holder: &str, lease: Duration) -> Result<Option<WorkItem>, DbError> {
        let key = self.change(|transaction| {
            let sql = "SELECT owner, repo, issue_number, state FROM work \
                 WHERE state = 'queued' OR (state = 'waiting' AND not_before <= ?1) \
                 ORDER BY updated_at, owner, repo, issue_number LIMIT 1";
            let found = transaction
                .query_row(sql, params![host::clock::now().to_string()], |row| {
                    let key = IssueKey {
                        owner: row.get(0)?,
                        repo: row.get(1)?,
                        issue_number: row.get(2)?,
                    };
                    Ok((key, row.get::<_, String>(3)?))
                })
                .optional()
                .map_err(self.failed("find work"))?;
            let Some((key, word)) = found else { return Ok(None) };
            let from = WorkState::parse(&word).ok_or_else(|| self.invalid("state", &word))?;
            let next = next_work(from, WorkStep::Claim)?;
            let IssueKey { owner, repo, issue_number } = &key;
            let sql = "UPDATE work SET claims = claims + 1 \
                       WHERE owner = ?1 AND repo = ?2 AND issue_number = ?3";
            transaction
                .execute(sql, params![owner, repo, issue_number])
                .map_err(self.failed("claim work"))?;
            self.hold(transaction, &key, next, holder, lease)?;
            self.record_event(transaction, &key, next, "a slot is free")?;
            Ok(Some(key))
        })?;
        key.map(|key| self.work(&key)?.ok_or_else(|| unknown(&key))).transpose()
    }

    /// Takes over the items of all other holders and raises their fences. The caller must know that those holders are gone.
    pub fn take_over_work(&self, holder: &str, lease: Duration) -> Result<Vec<WorkItem>, DbError> {
        let held = self.read_works("WHERE holder IS NOT NULL", params![])?;
        let others: Vec<WorkItem> =
            held.into_iter().filter(|work| work.holder.as_deref() != Some(holder)).collect();
        self.change(|transaction| {
            others
                .iter()
                .try_for_each(|work| self.hold(transaction, &work.key, work.state, holder, lease))
        })?;
        let reload = |work: &WorkItem| self.work(&work.key)?.ok_or_else(|| unknown(&work.key));
        others.iter().map(reload).collect()
    }

    pub fn renew_leases(&self, holder: &str, lease: Duration) -> Result<usize, DbError> {
        let sql = format!("UPDATE work SET lease_until = {NOW} + ?2 WHERE holder = ?1");
        let renewed = self.lock().execute(&sql, params![holder, lease.as_secs()]);
        renewed.map_err(self.failed("renew the leases"))
    }

    /// Sets when the bottle is destroyed; `None` clears it.
    pub fn set_destroy_at(&self, key: &IssueKey, at: Option<Timestamp>) -> Result<(), DbError> {
        let IssueKey { owner, repo, issue_number } = key;
        let sql = "UPDATE work SET destroy_at = ?4 \
                   WHERE owner = ?1 AND repo = ?2 AND issue_number = ?3";
        let at = at.map(|at| at.to_string());
        let updated = self.lock().execute(sql, params![owner, repo, issue_number, at]);
        updated.map_err(self.failed("schedule the destruction")).map(drop)
    }

    /// Deletes the item of an issue whose bottle is removed, so that the issue can start again.
    pub fn forget_work(&self, key: &IssueKey) -> Result<(), DbError> {
        let IssueKey { owner, repo, issue_number } = key;
        let sql = "DELETE FROM work WHERE owner = ?1 AND repo = ?2 AND issue_number = ?3 \
                   AND state = 'destroyed'";
        let deleted = self.lock().execute(sql, params![owner, repo, issue_number]);
        deleted.map_err(self.failed("delete work")).map(drop)
    }

    /// The events of an issue, oldest first.
    pub fn work_events(&self, key: &IssueKey) -> Result<Vec<WorkEvent>, DbError> {
        let IssueKey { owner, repo, issue_number } = key;
        let which = "WHERE owner = ?1 AND repo = ?2 AND issue_number = ?3 ORDER BY seq";
        self.read_events(which, params![owner, repo, issue_number])
    }

    /// The events of all issues after `seq`, oldest first.
    pub fn events_since(&self, seq: u64, limit: usize) -> Result<Vec<WorkEvent>, DbError> {
        self.read_events("WHERE seq > ?1 ORDER BY seq LIMIT ?2", params![seq, limit])
    }

    /// The number of the newest event; 0 without any.
    pub fn last_event(&self) -> Result<u64, DbError> {
        let sql = "SELECT coalesce(max(seq), 0) FROM work_event";
        self.lock().query_row(sql, [], |row| row.get(0)).map_err(self.failed("read the events"))
    }

    fn change<T>(
        &self,
        act: impl FnOnce(&Transaction<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let mut connection = self.lock();
        // Takes the write lock at once: a transaction that reads first can be overtaken before it writes.
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(self.failed("begin"))?;
        let outcome = act(&transaction)?;
        transaction.commit().map_err(self.failed("store work"))?;
        Ok(outcome)
    }

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
            "UPDATE work SET state = ?4, fence = fence + 1, holder = ?5, \
             lease_until = {NOW} + ?6, not_before = NULL, updated_at = ?7 \
             WHERE owner = ?1 AND repo = ?2 AND issue_number = ?3"
        );
        let now = host::clock::now().to_string();
        let lease = lease.as_secs();
        transaction
            .execute(&sql, params![owner, repo, issue_number, state.name(), holder, lease, now])
            .map_err(self.failed("claim work"))
            .map(drop)
    }

    fn issue_row(
        &self,
        transaction: &Transaction<'_>,
        key: &IssueKey,
    ) -> Result<(WorkState, u64), DbError> {
        let IssueKey { owner, repo, issue_number } = key;
        let sql = "SELECT state, fence FROM work \
                   WHERE owner = ?1 AND repo = ?2 AND issue_number = ?3";
        let found: Option<(String, u64)> = transaction
            .query_row(sql, params![owner, repo, issue_number], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
            .map_err(self.failed("read work"))?;
        let (word, fence) = found.ok_or_else(|| unknown(key))?;
        let state = WorkState::parse(&word).ok_or_else(|| self.invalid("state", &word))?;
        Ok((state, fence))
    }

    fn record_event(
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

    fn read_works(
        &self,
        rest: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<WorkItem>, DbError> {
        let connection = self.lock();
        let sql = format!("SELECT {COLUMNS} FROM work {rest}");
        let mut statement = connection.prepare_cached(&sql).map_err(self.failed("prepare"))?;
        let rows = statement.query_map(values, read_row).map_err(self.failed("read work"))?;
        rows.map(|raw| self.work_of(raw.map_err(self.failed("read work"))?)).collect()
    }

    fn work_of(&self, raw: RawWork) -> Result<WorkItem, DbError> {
        let time =
            |field, text: Option<String>| text.map(|text| self.time(field, &text)).transpose();
        let lease_until = match raw.lease_until {
            Some(secs) => Some(
                Timestamp::from_second(secs)
                    .or(Err(self.invalid("lease_until", &secs.to_string())))?,
            ),
            None => None,
        };
        Ok(WorkItem {
            state: WorkState::parse(&raw.state).ok_or_else(|| self.invalid("state", &raw.state))?,
            request: parse_request(&raw.request)
                .ok_or_else(|| self.invalid("request", &raw.request))?,
            key: raw.key,
            trigger: raw.trigger,
            title: raw.title,
            slug: raw.slug,
            fence: raw.fence,
            claims: raw.claims,
            holder: raw.holder,
            lease_until,
            not_before: time("not_before", raw.not_before)?,
            destroy_at: time("destroy_at", raw.destroy_at)?,
            attempts: raw.attempts,
            reason: raw.reason,
            created_at: self.time("created_at", &raw.created_at)?,
            updated_at: self.time("updated_at", &raw.updated_at)?,
        })
    }

    fn read_events(
        &self,
        rest: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<WorkEvent>, DbError> {
        let connection = self.lock();
        let sql = format!(
            "SELECT seq, owner, repo, issue_number, at, state, reason FROM work_event {rest}"
        );
        let mut statement = connection.prepare_cached(&sql).map_err(self.failed("prepare"))?;
        let rows = statement.query_map(values, |row| {
            let key = IssueKey { owner: row.get(1)?, repo: row.get(2)?, issue_number: row.get(3)? };
            let (at, state): (String, String) = (row.get(4)?, row.get(5)?);
            Ok((row.get::<_, u64>(0)?, key, at, state, row.get::<_, String>(6)?))
        });
        let rows = rows.map_err(self.failed("read the events"))?;
        rows.map(|raw| {
            let (seq, key, at, word, reason) = raw.map_err(self.failed("read the events"))?;
            let state = WorkState::parse(&word).ok_or_else(|| self.invalid("state", &word))?;
            Ok(WorkEvent { seq, key, at: self.time("at", &at)?, state, reason })
        })
        .collect()
    }
}

fn unknown(key: &IssueKey) -> DbError {
    let IssueKey { owner, repo, issue_number } = key.clone();
    DbError::Unknown { owner, repo, issue_number }
}

fn render_request(request: &WorkRequest) -> String {
    match request {
        WorkRequest::Start { agent, bottles } => {
            serde_json::json!({ "start": { "agent": agent, "bottles": bottles } })
        }
        WorkRequest::Resume { prompt } => serde_json::json!({ "resume": { "prompt": prompt } }),
    }
    .to_string()
}

fn parse_request(text: &str) -> Option<WorkRequest> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    if let Some(start) = value.get("start") {
        let agent = start.get("agent")?.as_str()?.to_owned();
        let names = start.get("bottles")?.as_array()?.iter();
        let bottles = names.map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?;
        return Some(WorkRequest::Start { agent, bottles });
    }
    let prompt = value.get("resume")?.get("prompt")?.as_str().map(str::to_owned);
    Some(WorkRequest::Resume { prompt })
}

struct RawWork {
    key: IssueKey,
    state: String,
    request: String,
    trigger: Option<String>,
    title: String,
    slug: Option<String>,
    fence: u64,
    claims: u64,
    holder: Option<String>,
    lease_until: Option<i64>,
    not_before: Option<String>,
    destroy_at: Option<String>,
    attempts: u32,
    reason: String,
    created_at: String,
    updated_at: String,
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Row<'_>) -> rusqlite::Result<RawWork> {
    let key = IssueKey { owner: row.get(0)?, repo: row.get(1)?, issue_number: row.get(2)? };
    Ok(RawWork {
        key,
        state: row.get(3)?,
        request: row.get(4)?,
        trigger: row.get(5)?,
        title: row.get(6)?,
        slug: row.get(7)?,
        fence: row.get(8)?,
        claims: row.get(9)?,
        holder: row.get(10)?,
        lease_until: row.get(11)?,
        not_before: row.get(12)?,
        destroy_at: row.get(13)?,
        attempts: row.get(14)?,
        reason: row.get(15)?,
        created_at: row.get(16)?,
        updated_at: row.get(17)?,
    })
}
