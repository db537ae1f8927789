//! The database in PostgreSQL, for several hosts. Correct without notifications, behind a pooler of transactions, and after a
//! fail-over: nothing is kept in a session, and every write compares the fence in its own transaction.

mod chore;
mod dispatch;
mod health;
mod host_row;
mod inbox;
mod issue;
mod lease;
mod listen;
mod migrate;
mod notice;
mod pool;
mod saved;
mod spending;
mod user_action;
mod value;
mod work;
mod worker_role;

use std::path::PathBuf;
use std::sync::Arc;

use model::secret::Secret;
use postgres::Client;

pub use self::health::{DatabaseHealth, ReplicationState};
use self::listen::NoticeListener;
use self::pool::{ConnectionPool, outside_runtime};
use self::value::{Cells, Value};
pub use self::worker_role::worker_role_sql;
use crate::error::DbError;
use crate::fence::Fence;
use crate::forge_state::IssueKey;
use crate::store::Store;

/// The rows of one issue, by the first three values.
const OF_ISSUE: &str = "WHERE owner = $1 AND repo = $2 AND issue_number = $3";

/// The first place of this transaction: its number times the places that one has. Rows are numbered by it because the numbers
/// of a sequence are not in the order of commits, and a reader would pass over what is committed late.
const FIRST_PLACE: &str =
    "(SELECT base FROM place_base) + pg_current_xact_id()::text::bigint * 1024";

/// The first place of the oldest transaction that may still commit: every row before it can be seen.
const OPEN_PLACE: &str =
    "(SELECT base FROM place_base) + pg_snapshot_xmin(pg_current_snapshot())::text::bigint * 1024";

/// Way to a database in PostgreSQL.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// `postgres://user@host[,host]/database`, without a password.
    pub address: String,
    pub password: Option<Secret>,
    /// Certificates to trust besides the system's.
    pub ca_file: Option<PathBuf>,
}

/// Connects to a database, and creates or migrates its tables. Of several hosts in the address the one that accepts writes
/// is taken.
pub fn open_postgres(options: &PostgresOptions) -> Result<Arc<dyn Store>, DbError> {
    let pool = Arc::new(ConnectionPool::new(options)?);
    let store = PostgresStore { pool, listener: NoticeListener::default() };
    store.migrate()?;
    Ok(Arc::new(store))
}

/// Says what a fleet needs to know about a database, without changing it.
pub fn check_postgres(options: &PostgresOptions) -> Result<DatabaseHealth, DbError> {
    health::observe(&ConnectionPool::new(options)?)
}

#[derive(Debug)]
struct PostgresStore {
    pool: Arc<ConnectionPool>,
    listener: NoticeListener,
}

impl PostgresStore {
    fn failed(&self, action: &'static str) -> impl FnOnce(postgres::Error) -> DbError {
        self.pool.failed(action)
    }

    /// Reads with one statement.
    fn select<T: Send>(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value],
        read: fn(&Cells<'_>) -> Result<T, DbError>,
    ) -> Result<Vec<T>, DbError> {
        outside_runtime(|| {
            let rows = self.pool.retry(|client| client.query_typed(sql, &Value::params(values)))?;
            let rows = rows.map_err(self.failed(action))?;
            rows.iter().map(|row| read(&Cells { row, database: self.pool.name() })).collect()
        })
    }

    /// Changes the rows of one statement, in a transaction of its own.
    fn execute(&self, action: &'static str, sql: &str, values: &[Value]) -> Result<u64, DbError> {
        self.change(action, |tx| tx.execute(action, sql, values))
    }

    /// Changes rows in one transaction. If the connection ends while it is committed, it is not known whether it was: the
    /// caller reads again.
    fn change<T: Send>(
        &self,
        action: &'static str,
        act: impl FnOnce(&mut Tx<'_>) -> Result<T, DbError> + Send,
    ) -> Result<T, DbError> {
        outside_runtime(|| {
            let mut client = self.pool.begin()?;
            let mut tx = Tx { client: client.get(), store: self };
            let acted = act(&mut tx);
            let end = if acted.is_ok() { "COMMIT" } else { "ROLLBACK" };
            let ended = client.get().batch_execute(end);
            // A server that fails a statement may have become one that is read only: the next call looks for the other.
            let is_sound = !matches!(acted, Err(DbError::Database { .. }));
            if ended.is_ok() && is_sound {
                client.keep();
            }
            let acted = acted?;
            ended.map_err(self.failed(action))?;
            Ok(acted)
        })
    }
}

/// A transaction.
struct Tx<'a> {
    client: &'a mut Client,
    store: &'a PostgresStore,
}

impl Tx<'_> {
    fn rows<T>(
        &mut self,
        action: &'static str,
        sql: &str,
        values: &[Value],
        read: fn(&Cells<'_>) -> Result<T, DbError>,
    ) -> Result<Vec<T>, DbError> {
        let rows = self.client.query_typed(sql, &Value::params(values));
        let rows = rows.map_err(self.store.failed(action))?;
        let database = self.store.pool.name();
        rows.iter().map(|row| read(&Cells { row, database })).collect()
    }

    fn execute(
        &mut self,
        action: &'static str,
        sql: &str,
        values: &[Value],
    ) -> Result<u64, DbError> {
        let done = self.client.execute_typed(sql, &Value::params(values));
        done.map_err(self.store.failed(action))
    }

    fn batch(&mut self, action: &'static str, sql: &str) -> Result<(), DbError> {
        self.client.batch_execute(sql).map_err(self.store.failed(action))
    }

    /// Wakes the other processes when the transaction is committed.
    fn notify(&mut self) -> Result<(), DbError> {
        self.rows("notify", "SELECT pg_notify('bot_bottle_news', '')", &[], |_| Ok(())).map(drop)
    }

    /// Refuses a writer whose claim is not the newest one. The row stays locked, so that no claim comes before the commit.
    fn check_fence(&mut self, key: &IssueKey, came: Fence) -> Result<(), DbError> {
        let held = self.current_fence(key)?;
        match held == came {
            true => Ok(()),
            false => Err(DbError::Fenced { key: key.clone(), held, came }),
        }
    }

    /// The newest claim on an issue; that of a deleted work item is remembered.
    fn current_fence(&mut self, key: &IssueKey) -> Result<Fence, DbError> {
        let values = key_values(key);
        let sql = format!("SELECT fence, claim_id FROM work {OF_ISSUE} FOR UPDATE");
        if let Some(fence) = self.rows("read a fence", &sql, &values, read_fence)?.pop() {
            return Ok(fence);
        }
        let sql = format!("SELECT fence, claim_id FROM past_fence {OF_ISSUE}");
        let past = self.rows("read a fence", &sql, &values, read_fence)?.pop();
        Ok(past.unwrap_or_default())
    }
}

fn read_fence(row: &Cells<'_>) -> Result<Fence, DbError> {
    Ok(Fence { number: row.number(0)?, claim: row.number(1)? })
}

/// The values of [`OF_ISSUE`].
fn key_values(key: &IssueKey) -> Vec<Value> {
    vec![(&key.owner).into(), (&key.repo).into(), key.issue_number.into()]
}

/// The values of [`OF_ISSUE`], and more.
fn of_key<const N: usize>(key: &IssueKey, more: [Value; N]) -> Vec<Value> {
    let mut values = key_values(key);
    values.extend(more);
    values
}
