//! The inbox: deliveries are stored before they are acknowledged, many of them in one commit.

use jiff::Timestamp;
use rusqlite::{Row, TransactionBehavior, params};

use super::SqliteForgeStateStore;
use crate::delivery::{About, Delivery, DeliveryInsert, NewDelivery};
use crate::error::DbError;

const COLUMNS: &str =
    "seq, source, delivery_id, event, owner, repo, thread, number, received_at, handled_at";

impl SqliteForgeStateStore {
    /// Stores deliveries in one commit, and returns for each whether it is new.
    pub fn insert_deliveries(&self, list: &[NewDelivery]) -> Result<Vec<DeliveryInsert>, DbError> {
        let mut connection = self.lock();
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(self.failed("begin"))?;
        let mut kept = Vec::with_capacity(list.len());
        {
            let sql = "INSERT INTO delivery \
                (source, delivery_id, event, owner, repo, thread, number, body, received_at) \
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
                ON CONFLICT (source, delivery_id) DO NOTHING";
            let mut insert = transaction.prepare_cached(sql).map_err(self.failed("prepare"))?;
            let now = host::clock::now().to_string();
            for one in list {
                let (thread, number) = columns_of(one.about);
                let rows = insert
                    .execute(params![
                        one.source, one.id, one.event, one.owner, one.repo, thread, number,
                        one.body, now
                    ])
                    .map_err(self.failed("keep a delivery"))?;
                kept.push(if rows == 0 { DeliveryInsert::Duplicate } else { DeliveryInsert::New });
            }
        }
        transaction.commit().map_err(self.failed("keep a delivery"))?;
        Ok(kept)
    }

    /// What was not acted on yet, in the order in which it came.
    pub fn unhandled_deliveries(&self, limit: usize) -> Result<Vec<Delivery>, DbError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM delivery WHERE handled_at IS NULL ORDER BY seq LIMIT ?1"
        );
        self.read_deliveries(&sql, limit)
    }

    /// What came last, newest first.
    pub fn last_deliveries(&self, limit: usize) -> Result<Vec<Delivery>, DbError> {
        self.read_deliveries(
            &format!("SELECT {COLUMNS} FROM delivery ORDER BY seq DESC LIMIT ?1"),
            limit,
        )
    }

    /// What came after `seq`, in the order in which it came.
    pub fn deliveries_since(&self, seq: u64, limit: usize) -> Result<Vec<Delivery>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM delivery WHERE seq > ?1 ORDER BY seq LIMIT ?2");
        self.select_deliveries(&sql, params![seq, limit])
    }

    /// Number of unhandled deliveries.
    pub fn count_unhandled(&self) -> Result<u64, DbError> {
        let sql = "SELECT count(*) FROM delivery WHERE handled_at IS NULL";
        let counted = self.lock().query_row(sql, [], |row| row.get(0));
        counted.map_err(self.failed("count the deliveries"))
    }

    /// The unchanged body of a delivery.
    pub fn delivery_body(&self, seq: u64) -> Result<Vec<u8>, DbError> {
        let sql = "SELECT body FROM delivery WHERE seq = ?1";
        self.lock()
            .query_row(sql, params![seq], |row| row.get(0))
            .map_err(self.failed("read a delivery"))
    }

    /// Marks deliveries as handled.
    pub fn mark_handled(&self, list: &[u64]) -> Result<(), DbError> {
        let mut connection = self.lock();
        let transaction = connection.transaction().map_err(self.failed("begin"))?;
        {
            let sql = "UPDATE delivery SET handled_at = ?2 WHERE seq = ?1 AND handled_at IS NULL";
            let mut update = transaction.prepare_cached(sql).map_err(self.failed("prepare"))?;
            let now = host::clock::now().to_string();
            for seq in list {
                update.execute(params![seq, now]).map_err(self.failed("mark a delivery"))?;
            }
        }
        transaction.commit().map_err(self.failed("mark a delivery"))
    }

    /// Deletes deliveries that were handled before `before`. Redelivering one of them only causes another reconciliation.
    pub fn forget_deliveries(&self, before: Timestamp) -> Result<usize, DbError> {
        let sql = "DELETE FROM delivery WHERE handled_at IS NOT NULL AND handled_at < ?1";
        let deleted = self.lock().execute(sql, params![before.to_string()]);
        deleted.map_err(self.failed("delete deliveries"))
    }

    fn read_deliveries(&self, sql: &str, limit: usize) -> Result<Vec<Delivery>, DbError> {
        self.select_deliveries(sql, params![limit])
    }

    fn select_deliveries(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<Delivery>, DbError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(sql).map_err(self.failed("prepare"))?;
        let rows = statement.query_map(values, read_row);
        let rows = rows.map_err(self.failed("read the deliveries"))?;
        rows.map(|raw| self.delivery(raw.map_err(self.failed("read the deliveries"))?)).collect()
    }

    fn delivery(&self, raw: RawDelivery) -> Result<Delivery, DbError> {
        let about = match raw.thread.as_str() {
            "issue" => About::Issue(raw.number),
            "pull" => About::Pull(raw.number),
            other => return Err(self.invalid("thread", other)),
        };
        Ok(Delivery {
            seq: raw.seq,
            source: raw.source,
            id: raw.id,
            event: raw.event,
            owner: raw.owner,
            repo: raw.repo,
            about,
            received_at: self.time("received_at", &raw.received_at)?,
            handled_at: raw.handled_at.map(|at| self.time("handled_at", &at)).transpose()?,
        })
    }
}

/// Columns of a thread.
fn columns_of(about: About) -> (&'static str, u64) {
    match about {
        About::Issue(number) => ("issue", number),
        About::Pull(number) => ("pull", number),
    }
}

struct RawDelivery {
    seq: u64,
    source: String,
    id: String,
    event: String,
    owner: String,
    repo: String,
    thread: String,
    number: u64,
    received_at: String,
    handled_at: Option<String>,
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Row<'_>) -> rusqlite::Result<RawDelivery> {
    Ok(RawDelivery {
        seq: row.get(0)?,
        source: row.get(1)?,
        id: row.get(2)?,
        event: row.get(3)?,
        owner: row.get(4)?,
        repo: row.get(5)?,
        thread: row.get(6)?,
        number: row.get(7)?,
        received_at: row.get(8)?,
        handled_at: row.get(9)?,
    })
}
