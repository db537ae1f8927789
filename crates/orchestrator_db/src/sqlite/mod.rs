//! The database in SQLite: one file, a write-ahead log, and every commit on disk before a call returns.

mod inbox;
mod migrate;
mod work;

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use crate::error::DbError;
use crate::forge_state::{ForgeState, IssueKey};
use crate::rules::status::{BottleState, BottleStep, next_status};
use crate::store::ForgeStateStore;

/// Longest wait for another process that holds the database.
const BUSY_LIMIT: Duration = Duration::from_secs(10);

const COLUMNS: &str = "owner, repo, issue_number, slug, agent_name, bottle_names, backend_name, \
                       agent_git_user, pr_number, status, last_checkin_at";

/// The orchestrator's database in SQLite.
#[derive(Debug)]
pub struct SqliteForgeStateStore {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl SqliteForgeStateStore {
    /// Opens the database, or creates it with access for its owner alone. An older schema is migrated after a backup; a
    /// newer one is refused.
    pub fn open(path: &Path) -> Result<Self, DbError> {
        create_private(path)
            .map_err(|source| DbError::Create { path: path.to_path_buf(), source })?;
        let failed = |action| database(path, action);
        let mut connection = Connection::open(path).map_err(failed("open"))?;
        connection.busy_timeout(BUSY_LIMIT).map_err(failed("set up"))?;
        migrate::check_version(&connection, path, migrate::MIGRATIONS)?;
        connection
            .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0))
            .and_then(|_| connection.pragma_update(None, "synchronous", "full"))
            .and_then(|()| connection.pragma_update(None, "foreign_keys", "on"))
            .map_err(failed("set up"))?;
        migrate::migrate(&mut connection, path, migrate::MIGRATIONS)?;
        Ok(Self { path: path.to_path_buf(), connection: Mutex::new(connection) })
    }

    /// A panic leaves no transaction open: each one ends with its guard, so a poisoned lock is safe to use.
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, action: &'static str) -> impl FnOnce(rusqlite::Error) -> DbError {
        database(&self.path, action)
    }

    fn invalid(&self, field: &'static str, value: &str) -> DbError {
        DbError::Row { path: self.path.clone(), field, value: value.to_owned() }
    }

    fn time(&self, field: &'static str, text: &str) -> Result<Timestamp, DbError> {
        text.parse().or(Err(self.invalid(field, text)))
    }

    fn read(&self, raw: RawState) -> Result<ForgeState, DbError> {
        let bottle_names = serde_json::from_str(&raw.bottle_names);
        let bottle_names = bottle_names.or(Err(self.invalid("bottle_names", &raw.bottle_names)))?;
        let status =
            BottleState::parse(&raw.status).ok_or_else(|| self.invalid("status", &raw.status))?;
        let last_checkin_at = self.time("last_checkin_at", &raw.last_checkin_at)?;
        Ok(ForgeState {
            key: raw.key,
            slug: raw.slug,
            agent_name: raw.agent_name,
            bottle_names,
            backend_name: raw.backend_name,
            agent_git_user: raw.agent_git_user,
            pr_number: raw.pr_number,
            status,
            last_checkin_at,
        })
    }
}

impl ForgeStateStore for SqliteForgeStateStore {
    fn upsert(&self, state: &ForgeState) -> Result<(), DbError> {
        let sql = format!(
            "INSERT OR REPLACE INTO forge_state ({COLUMNS}) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
        );
        let ForgeState { key, slug, agent_name, backend_name, agent_git_user, .. } = state;
        let bottle_names = serde_json::json!(state.bottle_names).to_string();
        let connection = self.lock();
        let mut statement = connection.prepare_cached(&sql).map_err(self.failed("prepare"))?;
        statement
            .execute(params![
                key.owner,
                key.repo,
                key.issue_number,
                slug,
                agent_name,
                bottle_names,
                backend_name,
                agent_git_user,
                state.pr_number,
                state.status.name(),
                state.last_checkin_at.to_string(),
            ])
            .map_err(self.failed("store a state"))?;
        Ok(())
    }

    fn get(&self, key: &IssueKey) -> Result<Option<ForgeState>, DbError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM forge_state WHERE owner = ?1 AND repo = ?2 AND issue_number = ?3"
        );
        let connection = self.lock();
        let mut statement = connection.prepare_cached(&sql).map_err(self.failed("prepare"))?;
        let IssueKey { owner, repo, issue_number } = key;
        let found = statement.query_row(params![owner, repo, issue_number], read_row).optional();
        found.map_err(self.failed("read a state"))?.map(|raw| self.read(raw)).transpose()
    }

    fn delete(&self, key: &IssueKey) -> Result<(), DbError> {
        let sql = "DELETE FROM forge_state WHERE owner = ?1 AND repo = ?2 AND issue_number = ?3";
        let IssueKey { owner, repo, issue_number } = key;
        let deleted = self.lock().execute(sql, params![owner, repo, issue_number]);
        deleted.map_err(self.failed("delete a state"))?;
        Ok(())
    }

    fn all(&self) -> Result<Vec<ForgeState>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM forge_state ORDER BY owner, repo, issue_number");
        let connection = self.lock();
        let mut statement = connection.prepare_cached(&sql).map_err(self.failed("prepare"))?;
        let rows = statement.query_map([], read_row).map_err(self.failed("read the states"))?;
        let read = |raw: rusqlite::Result<RawState>| {
            self.read(raw.map_err(self.failed("read the states"))?)
        };
        rows.map(read).collect()
    }

    fn step(&self, key: &IssueKey, step: BottleStep) -> Result<BottleState, DbError> {
        let IssueKey { owner, repo, issue_number } = key;
        let mut connection = self.lock();
        // Takes the write lock at once: a transaction that reads first can be overtaken before it writes.
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(self.failed("begin"))?;
        let which = "WHERE owner = ?1 AND repo = ?2 AND issue_number = ?3";
        let sql = format!("SELECT status FROM forge_state {which}");
        let place = params![owner, repo, issue_number];
        let word: Option<String> = transaction
            .query_row(&sql, place, |row| row.get(0))
            .optional()
            .map_err(self.failed("read a state"))?;
        let Some(word) = word else {
            let (owner, repo) = (owner.clone(), repo.clone());
            return Err(DbError::Unknown { owner, repo, issue_number: *issue_number });
        };
        let from = BottleState::parse(&word).ok_or_else(|| self.invalid("status", &word))?;
        let next = next_status(from, step)?;
        let sql = format!("UPDATE forge_state SET status = ?4 {which}");
        transaction
            .execute(&sql, params![owner, repo, issue_number, next.name()])
            .and_then(|_| transaction.commit())
            .map_err(self.failed("store a state"))?;
        Ok(next)
    }
}

/// The columns of a row.
struct RawState {
    key: IssueKey,
    slug: String,
    agent_name: String,
    bottle_names: String,
    backend_name: String,
    agent_git_user: String,
    pr_number: Option<u64>,
    status: String,
    last_checkin_at: String,
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Row<'_>) -> rusqlite::Result<RawState> {
    let key = IssueKey { owner: row.get(0)?, repo: row.get(1)?, issue_number: row.get(2)? };
    Ok(RawState {
        key,
        slug: row.get(3)?,
        agent_name: row.get(4)?,
        bottle_names: row.get(5)?,
        backend_name: row.get(6)?,
        agent_git_user: row.get(7)?,
        pr_number: row.get(8)?,
        status: row.get(9)?,
        last_checkin_at: row.get(10)?,
    })
}

/// SQLite gives its other files the permissions of the database.
fn create_private(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
}

fn database(path: &Path, action: &'static str) -> impl FnOnce(rusqlite::Error) -> DbError {
    let path = path.to_path_buf();
    move |source| DbError::Database { action, path, source }
}
