//! Notices and their deliveries, and how far the events of work items have been turned into notices.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::{SqliteStore, parse_time, parsed, parsed_option};
use crate::error::DbError;
use crate::notice::{Notice, NoticeDelivery, NoticeState};
use crate::store::NoticeStore;

/// Name of the cursor of the notices about work items.
const WORK_CURSOR: &str = "work-notices";

const COLUMNS: &str = "notice.id, notice.subject, notice.kind, notice.body, notice.created_at, \
                       delivery.channel, delivery.state, delivery.attempts, delivery.not_before, \
                       delivery.problem";

impl NoticeStore for SqliteStore {
    fn notice_cursor(&self) -> Result<Option<u64>, DbError> {
        let sql = "SELECT seq FROM cursor WHERE name = ?1";
        let read = self.lock().query_row(sql, params![WORK_CURSOR], |row| row.get(0)).optional();
        read.map_err(self.failed("read a cursor"))
    }

    fn add_notices(
        &self,
        notices: &[Notice],
        channels: &[&str],
        cursor: Option<u64>,
    ) -> Result<(), DbError> {
        self.change("store notices", |transaction| {
            for notice in notices {
                self.insert_notice(transaction, notice, channels)?;
            }
            if let Some(seq) = cursor {
                let sql = "INSERT OR REPLACE INTO cursor (name, seq) VALUES (?1, ?2)";
                transaction
                    .execute(sql, params![WORK_CURSOR, seq])
                    .map_err(self.failed("move a cursor"))?;
            }
            Ok(())
        })
    }

    fn open_notices(&self, limit: usize) -> Result<Vec<NoticeDelivery>, DbError> {
        let rest = "WHERE delivery.state IN ('pending', 'sending') \
                    ORDER BY notice.seq, delivery.channel LIMIT ?1";
        self.read_notices(rest, params![limit])
    }

    fn last_notices(&self, limit: usize) -> Result<Vec<NoticeDelivery>, DbError> {
        self.read_notices("ORDER BY notice.seq DESC, delivery.channel LIMIT ?1", params![limit])
    }

    fn save_notice(&self, delivery: &NoticeDelivery) -> Result<(), DbError> {
        let sql = "UPDATE notice_delivery SET state = ?3, attempts = ?4, not_before = ?5, \
                   problem = ?6 WHERE notice_id = ?1 AND channel = ?2";
        let NoticeDelivery { notice, channel, state, attempts, not_before, problem } = delivery;
        let not_before = not_before.map(|at| at.to_string());
        let values = params![notice.id, channel, state.name(), attempts, not_before, problem];
        self.execute("store a notice", sql, values).map(drop)
    }

    fn forget_notices(&self, before: Timestamp) -> Result<(), DbError> {
        let open = "SELECT notice_id FROM notice_delivery WHERE state IN ('pending', 'sending')";
        let sql = format!("DELETE FROM notice WHERE created_at < ?1 AND id NOT IN ({open})");
        self.execute("delete notices", &sql, params![before.to_string()])?;
        let sql = "DELETE FROM notice_delivery WHERE notice_id NOT IN (SELECT id FROM notice)";
        self.execute("delete notices", sql, params![]).map(drop)
    }
}

impl SqliteStore {
    fn insert_notice(
        &self,
        transaction: &Transaction<'_>,
        notice: &Notice,
        channels: &[&str],
    ) -> Result<(), DbError> {
        let sql = "INSERT INTO notice (id, subject, kind, body, created_at) \
                   VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (subject) DO NOTHING";
        let Notice { id, subject, kind, body, created_at } = notice;
        let rows = transaction
            .execute(sql, params![id, subject, kind, body, created_at.to_string()])
            .map_err(self.failed("store a notice"))?;
        if rows == 0 {
            return Ok(());
        }
        let sql = "INSERT INTO notice_delivery (notice_id, channel, state, attempts, problem) \
                   VALUES (?1, ?2, 'pending', 0, '')";
        for channel in channels {
            transaction
                .execute(sql, params![id, channel])
                .map_err(self.failed("store a notice"))?;
        }
        Ok(())
    }

    fn read_notices(
        &self,
        rest: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<NoticeDelivery>, DbError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM notice_delivery AS delivery \
             JOIN notice ON notice.id = delivery.notice_id {rest}"
        );
        self.select("read the notices", &sql, values, read_row)
    }
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Row<'_>) -> rusqlite::Result<NoticeDelivery> {
    Ok(NoticeDelivery {
        notice: Notice {
            id: row.get(0)?,
            subject: row.get(1)?,
            kind: row.get(2)?,
            body: row.get(3)?,
            created_at: parsed(row, 4, parse_time)?,
        },
        channel: row.get(5)?,
        state: parsed(row, 6, NoticeState::parse)?,
        attempts: row.get(7)?,
        not_before: parsed_option(row, 8, parse_time)?,
        problem: row.get(9)?,
    })
}
