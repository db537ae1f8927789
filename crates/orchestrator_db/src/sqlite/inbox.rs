//! The inbox: deliveries are stored before they are acknowledged, many of them in one commit.

use jiff::Timestamp;
use rusqlite::{Row, params};

use super::{SqliteStore, key_values, parse_time, parsed, parsed_option};
use crate::delivery::{About, Delivery, DeliveryInsert};
use crate::error::DbError;
use crate::forge_state::IssueKey;
use crate::store::InboxStore;

const COLUMNS: &str =
    "seq, source, delivery_id, event, owner, repo, number, thread, received_at, handled_at";

impl InboxStore for SqliteStore {
    fn insert_deliveries(&self, list: &[Delivery]) -> Result<Vec<DeliveryInsert>, DbError> {
        self.change("keep a delivery", |transaction| {
            let sql = "INSERT INTO delivery \
                (source, delivery_id, event, owner, repo, thread, number, body, received_at) \
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
                ON CONFLICT (source, delivery_id) DO NOTHING";
            let mut insert = transaction.prepare_cached(sql).map_err(self.failed("prepare"))?;
            let mut inserts = Vec::with_capacity(list.len());
            for one in list {
                let Delivery { source, id, event, owner, repo, body, .. } = one;
                let ((thread, number), at) = (one.about.columns(), one.received_at.to_string());
                let rows = insert
                    .execute(params![source, id, event, owner, repo, thread, number, body, at])
                    .map_err(self.failed("keep a delivery"))?;
                inserts.push(match rows {
                    0 => DeliveryInsert::Duplicate,
                    _ => DeliveryInsert::New,
                });
            }
            Ok(inserts)
        })
    }

    fn unhandled_deliveries(&self, limit: usize) -> Result<Vec<Delivery>, DbError> {
        self.read_deliveries("WHERE handled_at IS NULL ORDER BY seq LIMIT ?1", params![limit])
    }

    fn unhandled_from(&self, sources: &[&str], limit: usize) -> Result<Vec<Delivery>, DbError> {
        let rest = "WHERE handled_at IS NULL AND source IN (SELECT value FROM json_each(?1)) \
                    ORDER BY seq LIMIT ?2";
        self.read_deliveries(rest, params![serde_json::json!(sources).to_string(), limit])
    }

    fn deliveries_since(&self, seq: u64, limit: usize) -> Result<Vec<Delivery>, DbError> {
        self.read_deliveries("WHERE seq > ?1 ORDER BY seq LIMIT ?2", params![seq, limit])
    }

    fn issue_deliveries(&self, key: &IssueKey) -> Result<Vec<(String, Vec<u8>)>, DbError> {
        let sql = "SELECT source, body FROM delivery WHERE owner = ?1 AND repo = ?2 \
                   AND number = ?3 AND thread = 'issue' ORDER BY seq";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        self.select("read the deliveries", sql, key_values(key), read)
    }

    fn count_unhandled(&self) -> Result<u64, DbError> {
        let sql = "SELECT count(*) FROM delivery WHERE handled_at IS NULL";
        let counted = self.lock().query_row(sql, [], |row| row.get(0));
        counted.map_err(self.failed("count the deliveries"))
    }

    fn has_delivery(&self, source: &str, id: &str) -> Result<bool, DbError> {
        let sql = "SELECT count(*) FROM delivery WHERE source = ?1 AND delivery_id = ?2";
        let counted = self.lock().query_row(sql, params![source, id], |row| row.get::<_, u64>(0));
        counted.map(|count| count > 0).map_err(self.failed("read a delivery"))
    }

    fn delivery_body(&self, seq: u64) -> Result<Vec<u8>, DbError> {
        let sql = "SELECT body FROM delivery WHERE seq = ?1";
        let read = self.lock().query_row(sql, params![seq], |row| row.get(0));
        read.map_err(self.failed("read a delivery"))
    }

    fn mark_handled(&self, list: &[u64]) -> Result<(), DbError> {
        self.change("mark a delivery", |transaction| {
            let sql = "UPDATE delivery SET handled_at = ?2 WHERE seq = ?1 AND handled_at IS NULL";
            let mut update = transaction.prepare_cached(sql).map_err(self.failed("prepare"))?;
            let now = host::clock::now().to_string();
            for seq in list {
                update.execute(params![seq, now]).map_err(self.failed("mark a delivery"))?;
            }
            Ok(())
        })
    }

    fn forget_deliveries(&self, before: Timestamp) -> Result<usize, DbError> {
        let sql = "DELETE FROM delivery WHERE handled_at IS NOT NULL AND handled_at < ?1";
        self.execute("delete deliveries", sql, params![before.to_string()])
    }
}

impl SqliteStore {
    fn read_deliveries(
        &self,
        rest: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<Delivery>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM delivery {rest}");
        self.select("read the deliveries", &sql, values, read_row)
    }
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    let number = row.get(6)?;
    Ok(Delivery {
        seq: row.get(0)?,
        source: row.get(1)?,
        id: row.get(2)?,
        event: row.get(3)?,
        owner: row.get(4)?,
        repo: row.get(5)?,
        about: parsed(row, 7, |thread| About::parse(thread, number))?,
        body: Vec::new(),
        received_at: parsed(row, 8, parse_time)?,
        handled_at: parsed_option(row, 9, parse_time)?,
    })
}
