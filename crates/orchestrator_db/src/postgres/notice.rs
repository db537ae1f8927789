//! Notices and their deliveries, and how far the events of work items have been turned into notices.

use jiff::Timestamp;

use super::value::{Cells, Value};
use super::{PostgresStore, Tx};
use crate::error::DbError;
use crate::notice::{Notice, NoticeDelivery, NoticeState};
use crate::store::NoticeStore;

/// Name of the cursor of the notices about work items.
const WORK_CURSOR: &str = "work-notices";

const COLUMNS: &str = "notice.id, notice.subject, notice.kind, notice.body, notice.created_at, \
                       delivery.channel, delivery.state, delivery.attempts, delivery.not_before, \
                       delivery.problem";

impl NoticeStore for PostgresStore {
    fn notice_cursor(&self) -> Result<Option<u64>, DbError> {
        let sql = "SELECT seq FROM cursor WHERE name = $1";
        Ok(self.select("read a cursor", sql, &[WORK_CURSOR.into()], |row| row.number(0))?.pop())
    }

    fn add_notices(
        &self,
        notices: &[Notice],
        channels: &[&str],
        cursor: Option<u64>,
    ) -> Result<(), DbError> {
        self.change("store notices", |tx| {
            for notice in notices {
                tx.insert_notice(notice, channels)?;
            }
            if let Some(seq) = cursor {
                let sql = "INSERT INTO cursor (name, seq) VALUES ($1, $2) \
                           ON CONFLICT (name) DO UPDATE SET seq = $2";
                tx.execute("move a cursor", sql, &[WORK_CURSOR.into(), seq.into()])?;
            }
            Ok(())
        })
    }

    fn open_notices(&self, limit: usize) -> Result<Vec<NoticeDelivery>, DbError> {
        let rest = "WHERE delivery.state IN ('pending', 'sending') \
                    ORDER BY notice.seq, delivery.channel COLLATE \"C\" LIMIT $1";
        self.read_notices(rest, &[limit.into()])
    }

    fn last_notices(&self, limit: usize) -> Result<Vec<NoticeDelivery>, DbError> {
        let rest = "ORDER BY notice.seq DESC, delivery.channel COLLATE \"C\" LIMIT $1";
        self.read_notices(rest, &[limit.into()])
    }

    fn save_notice(&self, delivery: &NoticeDelivery) -> Result<(), DbError> {
        let sql = "UPDATE notice_delivery SET state = $3, attempts = $4, not_before = $5, \
                   problem = $6 WHERE notice_id = $1 AND channel = $2";
        let values = [
            (&delivery.notice.id).into(),
            (&delivery.channel).into(),
            delivery.state.name().into(),
            delivery.attempts.into(),
            delivery.not_before.into(),
            (&delivery.problem).into(),
        ];
        self.execute("store a notice", sql, &values).map(drop)
    }

    fn forget_notices(&self, before: Timestamp) -> Result<(), DbError> {
        self.change("delete notices", |tx| {
            let sql = "DELETE FROM notice WHERE created_at < $1 AND NOT EXISTS (SELECT 1 \
                       FROM notice_delivery AS delivery WHERE delivery.notice_id = notice.id \
                       AND delivery.state IN ('pending', 'sending'))";
            tx.execute("delete notices", sql, &[before.into()])?;
            let sql = "DELETE FROM notice_delivery AS delivery WHERE NOT EXISTS \
                       (SELECT 1 FROM notice WHERE notice.id = delivery.notice_id)";
            tx.execute("delete notices", sql, &[]).map(drop)
        })
    }
}

impl Tx<'_> {
    fn insert_notice(&mut self, notice: &Notice, channels: &[&str]) -> Result<(), DbError> {
        let sql = "INSERT INTO notice (id, subject, kind, body, created_at) \
                   VALUES ($1, $2, $3, $4, $5) ON CONFLICT (subject) DO NOTHING";
        let Notice { id, subject, kind, body, created_at } = notice;
        let values = [id.into(), subject.into(), kind.into(), body.into(), (*created_at).into()];
        if self.execute("store a notice", sql, &values)? == 0 {
            return Ok(());
        }
        let sql = "INSERT INTO notice_delivery (notice_id, channel, state, attempts, problem) \
                   VALUES ($1, $2, 'pending', 0, '')";
        for channel in channels {
            self.execute("store a notice", sql, &[id.into(), (*channel).into()])?;
        }
        Ok(())
    }
}

impl PostgresStore {
    fn read_notices(&self, rest: &str, values: &[Value]) -> Result<Vec<NoticeDelivery>, DbError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM notice_delivery AS delivery \
             JOIN notice ON notice.id = delivery.notice_id {rest}"
        );
        self.select("read the notices", &sql, values, read_row)
    }
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Cells<'_>) -> Result<NoticeDelivery, DbError> {
    Ok(NoticeDelivery {
        notice: Notice {
            id: row.get(0)?,
            subject: row.get(1)?,
            kind: row.get(2)?,
            body: row.get(3)?,
            created_at: row.get(4)?,
        },
        channel: row.get(5)?,
        state: row.parsed(6, NoticeState::parse)?,
        attempts: row.number(7)?,
        not_before: row.get(8)?,
        problem: row.get(9)?,
    })
}
