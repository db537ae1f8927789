//! Chores that one process at a time does.

use std::time::Duration;

use rusqlite::params;

use super::SqliteStore;
use super::lease::{NOW, whole_secs};
use crate::error::DbError;
use crate::rules::holder::host_of;
use crate::store::ProcessStore;

impl ProcessStore for SqliteStore {
    fn hold_chore(&self, name: &str, holder: &str, lease: Duration) -> Result<bool, DbError> {
        let sql = format!(
            "INSERT INTO chore (name, holder, until) VALUES (?1, ?2, {NOW} + ?3) \
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until \
             WHERE chore.holder = excluded.holder OR chore.until <= {NOW}"
        );
        let changed =
            self.execute("hold a chore", &sql, params![name, holder, whole_secs(lease)])?;
        Ok(changed > 0)
    }

    fn release_chore(&self, name: &str, holder: &str) -> Result<(), DbError> {
        let sql = "DELETE FROM chore WHERE name = ?1 AND holder = ?2";
        self.execute("release a chore", sql, params![name, holder]).map(drop)
    }

    fn release_host_chores(&self, holder: &str) -> Result<(), DbError> {
        let sql = "DELETE FROM chore WHERE holder <> ?1 \
                   AND substr(holder, 1, instr(holder, '/') - 1) = ?2";
        self.execute("release the chores", sql, params![holder, host_of(holder)]).map(drop)
    }

    fn listen(&self, _wake: Box<dyn Fn() + Send>) {}
}
