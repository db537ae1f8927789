//! The database in SQLite: one file, a write-ahead log, and every commit on disk before a call returns.

mod chore;
mod dispatch;
mod fence;
mod host_row;
mod inbox;
mod issue;
mod lease;
mod migrate;
mod notice;
mod saved;
mod spending;
mod user_action;
mod work;

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior};

use crate::error::DbError;
use crate::forge_state::IssueKey;
use crate::store::Store;

/// Longest wait for another process that holds the database.
const BUSY_LIMIT: Duration = Duration::from_secs(10);

/// The rows of one issue, by [`key_values`].
const OF_ISSUE: &str = "WHERE owner = ?1 AND repo = ?2 AND issue_number = ?3";

/// Opens a database in SQLite, or creates it with access for its owner alone. An older schema is migrated after a backup; a
/// newer one is refused.
pub fn open_file(path: &Path) -> Result<Arc<dyn Store>, DbError> {
    Ok(Arc::new(SqliteStore::open(path)?))
}

#[derive(Debug)]
struct SqliteStore {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl SqliteStore {
    fn open(path: &Path) -> Result<Self, DbError> {
        create_private(path)
            .map_err(|source| DbError::Create { database: name_of(path), source })?;
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
        self.rows(&self.lock(), action, sql, values, read)
    }

    fn rows<T>(
        &self,
        connection: &Connection,
        action: &'static str,
        sql: &str,
        values: impl rusqlite::Params,
        read: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, DbError> {
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
    let database = name_of(path);
    move |source| {
        if let rusqlite::Error::FromSqlConversionFailure(_, _, cause) = &source
            && let Some(InvalidColumn { field, value }) = cause.downcast_ref()
        {
            return DbError::Row { database, field: field.clone(), value: value.clone() };
        }
        DbError::Database { action, database, source: Box::new(source) }
    }
}

/// Name of a database in messages.
fn name_of(path: &Path) -> String {
    path.display().to_string()
}
