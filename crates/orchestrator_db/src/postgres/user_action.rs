//! The record of who asked for which action.

use super::PostgresStore;
use crate::error::DbError;
use crate::store::UserActionStore;
use crate::user_action::UserActionRecord;

impl UserActionStore for PostgresStore {
    fn record_action(&self, record: &UserActionRecord) -> Result<(), DbError> {
        let sql = "INSERT INTO user_action \
                   (delivery_id, actor, action, owner, repo, issue_number, at) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (delivery_id) DO NOTHING";
        let UserActionRecord { id, actor, action, key, at } = record;
        let values = [
            id.into(),
            actor.into(),
            action.into(),
            (&key.owner).into(),
            (&key.repo).into(),
            key.issue_number.into(),
            (*at).into(),
        ];
        self.execute("record an action", sql, &values).map(drop)
    }

    fn actor_of(&self, delivery_id: &str) -> Result<Option<String>, DbError> {
        let sql = "SELECT actor FROM user_action WHERE delivery_id = $1";
        Ok(self.select("read an action", sql, &[delivery_id.into()], |row| row.get(0))?.pop())
    }

    fn last_actions(&self, limit: usize) -> Result<Vec<UserActionRecord>, DbError> {
        let sql = "SELECT delivery_id, actor, action, owner, repo, issue_number, at \
                   FROM user_action ORDER BY at DESC, delivery_id LIMIT $1";
        self.select("read the actions", sql, &[limit.into()], |row| {
            Ok(UserActionRecord {
                id: row.get(0)?,
                actor: row.get(1)?,
                action: row.get(2)?,
                key: row.key(3)?,
                at: row.get(6)?,
            })
        })
    }
}
