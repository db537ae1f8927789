//! Chores that one process of a database does at a time, and the news from one to another.

use std::sync::Arc;
use std::time::Duration;

use super::PostgresStore;
use crate::error::DbError;
use crate::rules::holder::host_of;
use crate::store::ProcessStore;

impl ProcessStore for PostgresStore {
    fn hold_chore(&self, name: &str, holder: &str, lease: Duration) -> Result<bool, DbError> {
        let sql = "INSERT INTO chore (name, holder, until) \
                   VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3)) \
                   ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until \
                   WHERE chore.holder = excluded.holder OR chore.until <= clock_timestamp()";
        let values = [name.into(), holder.into(), lease.as_secs_f64().into()];
        Ok(self.execute("hold a chore", sql, &values)? > 0)
    }

    fn release_chore(&self, name: &str, holder: &str) -> Result<(), DbError> {
        let sql = "DELETE FROM chore WHERE name = $1 AND holder = $2";
        self.execute("release a chore", sql, &[name.into(), holder.into()]).map(drop)
    }

    fn release_host_chores(&self, holder: &str) -> Result<(), DbError> {
        let sql = "DELETE FROM chore WHERE holder <> $1 AND split_part(holder, '/', 1) = $2";
        let values = [holder.into(), host_of(holder).into()];
        self.execute("release the chores", sql, &values).map(drop)
    }

    fn listen(&self, wake: Box<dyn Fn() + Send>) {
        self.listener.start(Arc::clone(&self.pool), wake);
    }
}
