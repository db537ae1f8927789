//! The inbox: deliveries are stored before they are acknowledged, many of them in one commit.

use jiff::Timestamp;

use super::value::{Cells, Value};
use super::{FIRST_PLACE, OF_ISSUE, OPEN_PLACE, PostgresStore, key_values};
use crate::delivery::{About, Delivery, DeliveryInsert};
use crate::error::DbError;
use crate::forge_state::IssueKey;
use crate::store::InboxStore;

const COLUMNS: &str =
    "seq, source, delivery_id, event, owner, repo, number, thread, received_at, handled_at";

/// Rows that one statement deletes.
const DELETE_MAX: u64 = 1000;

/// Deliveries that one statement stores: a transaction has a place for so many.
const INSERT_MAX: usize = 256;

impl InboxStore for PostgresStore {
    fn insert_deliveries(&self, list: &[Delivery]) -> Result<Vec<DeliveryInsert>, DbError> {
        let mut inserts = Vec::with_capacity(list.len());
        for part in list.chunks(INSERT_MAX) {
            inserts.extend(self.insert_part(part)?);
        }
        Ok(inserts)
    }

    fn unhandled_deliveries(&self, limit: usize) -> Result<Vec<Delivery>, DbError> {
        self.read_deliveries("WHERE handled_at IS NULL ORDER BY seq LIMIT $1", &[limit.into()])
    }

    fn unhandled_from(&self, sources: &[&str], limit: usize) -> Result<Vec<Delivery>, DbError> {
        let rest = "WHERE handled_at IS NULL AND source = ANY($1) ORDER BY seq LIMIT $2";
        self.read_deliveries(rest, &[sources.to_vec().into(), limit.into()])
    }

    fn deliveries_since(&self, seq: u64, limit: usize) -> Result<Vec<Delivery>, DbError> {
        let rest = format!("WHERE seq > $1 AND seq < {OPEN_PLACE} ORDER BY seq LIMIT $2");
        self.read_deliveries(&rest, &[seq.into(), limit.into()])
    }

    fn issue_deliveries(&self, key: &IssueKey) -> Result<Vec<(String, Vec<u8>)>, DbError> {
        let of_issue = OF_ISSUE.replace("issue_number", "number");
        let sql = format!(
            "SELECT source, body FROM delivery {of_issue} AND thread = 'issue' ORDER BY seq"
        );
        let read = |row: &Cells<'_>| Ok((row.get(0)?, row.get(1)?));
        self.select("read the deliveries", &sql, &key_values(key), read)
    }

    fn count_unhandled(&self) -> Result<u64, DbError> {
        let sql = "SELECT count(*) FROM delivery WHERE handled_at IS NULL";
        self.count("count the deliveries", sql, &[])
    }

    fn has_delivery(&self, source: &str, id: &str) -> Result<bool, DbError> {
        let sql = "SELECT count(*) FROM delivery WHERE source = $1 AND delivery_id = $2";
        Ok(self.count("read a delivery", sql, &[source.into(), id.into()])? > 0)
    }

    fn delivery_body(&self, seq: u64) -> Result<Vec<u8>, DbError> {
        let sql = "SELECT body FROM delivery WHERE seq = $1";
        let found = self.select("read a delivery", sql, &[seq.into()], |row| row.get(0))?.pop();
        found.ok_or_else(|| DbError::Row {
            database: self.pool.name().to_owned(),
            field: "delivery".to_owned(),
            value: seq.to_string(),
        })
    }

    fn mark_handled(&self, list: &[u64]) -> Result<(), DbError> {
        let sql = "UPDATE delivery SET handled_at = clock_timestamp() \
                   WHERE seq = ANY($1) AND handled_at IS NULL";
        self.execute("mark a delivery", sql, &[list.to_vec().into()]).map(drop)
    }

    fn forget_deliveries(&self, before: Timestamp) -> Result<usize, DbError> {
        let sql = "DELETE FROM delivery WHERE seq IN (SELECT seq FROM delivery \
                   WHERE handled_at IS NOT NULL AND handled_at < $1 LIMIT $2)";
        let mut deleted = 0;
        loop {
            let part =
                self.execute("delete deliveries", sql, &[before.into(), DELETE_MAX.into()])?;
            deleted += part;
            if part < DELETE_MAX {
                return Ok(usize::try_from(deleted).unwrap_or(usize::MAX));
            }
        }
    }
}

impl PostgresStore {
    /// Stores deliveries with one statement, in the order of their ids: two processes that store the same ones wait for one
    /// another and never in a circle.
    fn insert_part(&self, list: &[Delivery]) -> Result<Vec<DeliveryInsert>, DbError> {
        let sql = format!(
            "INSERT INTO delivery (seq, source, delivery_id, event, owner, repo, thread, number, \
             body, received_at) \
             SELECT {FIRST_PLACE} + place - 1, source, id, event, owner, repo, thread, number, \
             body, received_at \
             FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) WITH ORDINALITY \
             AS it (source, id, event, owner, repo, thread, number, body, received_at, place) \
             ORDER BY source, id, place \
             ON CONFLICT (source, delivery_id) DO NOTHING RETURNING seq - ({FIRST_PLACE})"
        );
        let texts = |text: fn(&Delivery) -> &str| -> Value {
            list.iter().map(text).collect::<Vec<_>>().into()
        };
        let values: [Value; 9] = [
            texts(|it| &it.source),
            texts(|it| &it.id),
            texts(|it| &it.event),
            texts(|it| &it.owner),
            texts(|it| &it.repo),
            texts(|it| it.about.columns().0),
            list.iter().map(|it| it.about.columns().1).collect::<Vec<u64>>().into(),
            list.iter().map(|it| it.body.clone()).collect::<Vec<_>>().into(),
            list.iter().map(|it| it.received_at).collect::<Vec<Timestamp>>().into(),
        ];
        self.change("keep a delivery", |tx| {
            let stored = tx.rows("keep a delivery", &sql, &values, |row| row.number::<usize>(0))?;
            if !stored.is_empty() {
                tx.notify()?;
            }
            let mut inserts = vec![DeliveryInsert::Duplicate; list.len()];
            for place in stored {
                if let Some(insert) = inserts.get_mut(place) {
                    *insert = DeliveryInsert::New;
                }
            }
            Ok(inserts)
        })
    }

    pub(super) fn count(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value],
    ) -> Result<u64, DbError> {
        let counted = self.select(action, sql, values, |row| row.number(0))?.pop();
        Ok(counted.unwrap_or_default())
    }

    fn read_deliveries(&self, rest: &str, values: &[Value]) -> Result<Vec<Delivery>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM delivery {rest}");
        self.select("read the deliveries", &sql, values, read_row)
    }
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Cells<'_>) -> Result<Delivery, DbError> {
    let number = row.number(6)?;
    Ok(Delivery {
        seq: row.number(0)?,
        source: row.get(1)?,
        id: row.get(2)?,
        event: row.get(3)?,
        owner: row.get(4)?,
        repo: row.get(5)?,
        about: row.parsed(7, |thread| About::parse(thread, number))?,
        body: Vec::new(),
        received_at: row.get(8)?,
        handled_at: row.get(9)?,
    })
}
