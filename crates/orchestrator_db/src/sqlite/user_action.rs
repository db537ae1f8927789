//! The record of who asked for which action.

use rusqlite::params;

use super::{SqliteStore, parse_time, parsed, read_key};
use crate::error::DbError;
use crate::store::UserActionStore;
use crate::user_action::UserActionRecord;

impl UserActionStore for SqliteStore {
    fn record_action(&self, record: &UserActionRecord) -> Result<(), DbError> {
        let sql = "INSERT OR IGNORE INTO user_action \
                   (delivery_id, actor, action, owner, repo, issue_number, at) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let UserActionRecord { id, actor, action, key, at } = record;
        let at = at.to_string();
        let values = params![id, actor, action, key.owner, key.repo, key.issue_number, at];
        self.execute("record an action", sql, values).map(drop)
    }

    fn actor_of(&self, delivery_id: &str) -> Result<Option<String>, DbError> {
        let sql = "SELECT actor FROM user_action WHERE delivery_id = ?1";
        let read = |row: &rusqlite::Row<'_>| row.get(0);
        Ok(self.select("read an action", sql, params![delivery_id], read)?.pop())
    }

    fn last_actions(&self, limit: usize) -> Result<Vec<UserActionRecord>, DbError> {
        let sql = "SELECT delivery_id, actor, action, owner, repo, issue_number, at \
                   FROM user_action ORDER BY at DESC, delivery_id LIMIT ?1";
        self.select("read the actions", sql, params![limit], |row| {
            Ok(UserActionRecord {
                id: row.get(0)?,
                actor: row.get(1)?,
                action: row.get(2)?,
                key: read_key(row, 3)?,
                at: parsed(row, 6, parse_time)?,
            })
        })
    }
}
