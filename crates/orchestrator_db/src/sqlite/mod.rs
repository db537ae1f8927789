//! The database in SQLite: one file, a write-ahead log, and every commit on disk before a call returns.

mod inbox;
mod migrate;
mod spending;
mod work;

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use crate::error::DbError;
use crate::forge_state::{ForgeState, IssueKey};
use crate::rules::status::{BottleState, BottleStep, next_status};
use crate::store::ForgeStateStore;

/// Longest wait for another process that holds the database.
const BUSY_LIMIT: Duration = Duration::from_secs(10);

const COLUMNS: &str = "owner, repo, issue_number, slug, agent_name, bottle_names, backend_name, \
                       agent_git_user, pr_number, status, last_checkin_at";

/// The rows of one issue, by [`key_values`].
const OF_ISSUE: &str = "WHERE owner = ?1 AND repo = ?2 AND issue_number = ?3";

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

    fn execute(
        &self,
        action: &'static str,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> Result<usize, DbError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(sql).map_err(self.failed("prepare"))?;
        statement.execute(values).map_err(self.failed(action))
    }

    fn select<T>(
        &self,
        action: &'static str,
        sql: &str,
        values: impl rusqlite::Params,
        read: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, DbError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(sql).map_err(self.failed("prepare"))?;
        let rows = statement.query_map(values, read).map_err(self.failed(action))?;
        rows.collect::<rusqlite::Result<_>>().map_err(self.failed(action))
    }

    fn change<T>(
        &self,
        action: &'static str,
        act: impl FnOnce(&Transaction<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let mut connection = self.lock();
        // Takes the write lock at once: a transaction that reads first can be overtaken before it writes.
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(self.failed("begin"))?;
        let outcome = act(&transaction)?;
        transaction.commit().map_err(self.failed(action))?;
        Ok(outcome)
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
        let values = params![
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
        ];
        self.execute("store a state", &sql, values).map(drop)
    }

    fn get(&self, key: &IssueKey) -> Result<Option<ForgeState>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM forge_state {OF_ISSUE}");
        Ok(self.select("read a state", &sql, key_values(key), read_row)?.pop())
    }

    fn delete(&self, key: &IssueKey) -> Result<(), DbError> {
        let sql = format!("DELETE FROM forge_state {OF_ISSUE}");
        self.execute("delete a state", &sql, key_values(key)).map(drop)
    }

    fn all(&self) -> Result<Vec<ForgeState>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM forge_state ORDER BY owner, repo, issue_number");
        self.select("read the states", &sql, [], read_row)
    }

    fn step(&self, key: &IssueKey, step: BottleStep) -> Result<BottleState, DbError> {
        self.change("store a state", |transaction| {
            let sql = format!("SELECT status FROM forge_state {OF_ISSUE}");
            let from = transaction
                .query_row(&sql, key_values(key), |row| parsed(row, 0, BottleState::parse))
                .optional()
                .map_err(self.failed("read a state"))?
                .ok_or_else(|| DbError::Unknown { key: key.clone() })?;
            let next = next_status(from, step)?;
            let sql = format!("UPDATE forge_state SET status = ?4 {OF_ISSUE}");
            transaction
                .execute(&sql, params![key.owner, key.repo, key.issue_number, next.name()])
                .map_err(self.failed("store a state"))?;
            Ok(next)
        })
    }
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Row<'_>) -> rusqlite::Result<ForgeState> {
    Ok(ForgeState {
        key: read_key(row, 0)?,
        slug: row.get(3)?,
        agent_name: row.get(4)?,
        bottle_names: parsed(row, 5, |text| serde_json::from_str(text).ok())?,
        backend_name: row.get(6)?,
        agent_git_user: row.get(7)?,
        pr_number: row.get(8)?,
        status: parsed(row, 9, BottleState::parse)?,
        last_checkin_at: parsed(row, 10, parse_time)?,
    })
}

/// The values of [`OF_ISSUE`].
fn key_values(key: &IssueKey) -> (&str, &str, u64) {
    (&key.owner, &key.repo, key.issue_number)
}

/// Reads an issue from three columns.
fn read_key(row: &Row<'_>, first: usize) -> rusqlite::Result<IssueKey> {
    let (owner, repo) = (row.get(first)?, row.get(first + 1)?);
    Ok(IssueKey { owner, repo, issue_number: row.get(first + 2)? })
}

/// Value in a column that this version never writes.
#[derive(Debug, thiserror::Error)]
#[error("invalid {field}: {value:?}")]
struct InvalidColumn {
    field: String,
    value: String,
}

fn parsed<T>(
    row: &Row<'_>,
    index: usize,
    parse: impl Fn(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text: String = row.get(index)?;
    parse(&text).ok_or_else(|| invalid(row, index, text))
}

fn parsed_option<T>(
    row: &Row<'_>,
    index: usize,
    parse: impl Fn(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(index)?;
    text.map(|text| parse(&text).ok_or_else(|| invalid(row, index, text))).transpose()
}

fn invalid(row: &Row<'_>, index: usize, value: String) -> rusqlite::Error {
    let field = row.as_ref().column_name(index).unwrap_or_default().to_owned();
    let cause = Box::new(InvalidColumn { field, value });
    rusqlite::Error::FromSqlConversionFailure(index, Type::Text, cause)
}

fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// Creates the file of a new database. SQLite gives its other files the permissions of the database.
///
/// A database that exists is not opened here: closing any descriptor of a file drops all locks that the process has on
/// it, also those of SQLite's own connections. Another program that reads the database would then count as its last
/// user and delete the write-ahead log. For the same reason one thread at a time creates a file.
fn create_private(path: &Path) -> io::Result<()> {
    static CREATING: Mutex<()> = Mutex::new(());
    let _alone = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created.map(drop),
    }
}

fn database(path: &Path, action: &'static str) -> impl FnOnce(rusqlite::Error) -> DbError {
    let path = path.to_path_buf();
    move |source| {
        if let rusqlite::Error::FromSqlConversionFailure(_, _, cause) = &source
            && let Some(InvalidColumn { field, value }) = cause.downcast_ref()
        {
            return DbError::Row { path, field: field.clone(), value: value.clone() };
        }
        DbError::Database { action, path, source }
    }
}
