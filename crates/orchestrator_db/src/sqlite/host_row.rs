//! The one host of a database in a file: it has no rows of hosts, because no other one could read them.

use std::time::Duration;

use super::SqliteStore;
use super::lease::NOW;
use crate::error::DbError;
use crate::host_row::{HeldLeases, HostClaim, HostReport, HostRow};
use crate::store::HostStore;

impl HostStore for SqliteStore {
    /// The lock on the home keeps a second process out.
    fn report_host(&self, _report: &HostReport, _lease: Duration) -> Result<HostClaim, DbError> {
        Ok(HostClaim::Held)
    }

    fn leave_host(&self, _name: &str, _process: &str) -> Result<(), DbError> {
        Ok(())
    }

    fn hosts(&self) -> Result<Vec<HostRow>, DbError> {
        Ok(Vec::new())
    }

    /// An expired lease counts as one without a host: no process reports itself here.
    fn held_leases(&self) -> Result<HeldLeases, DbError> {
        let sql = format!(
            "SELECT count(*), count(CASE WHEN lease_until <= {NOW} THEN 1 END), \
             coalesce(max(max({NOW} - lease_until, 0)), 0) FROM work WHERE holder IS NOT NULL"
        );
        let read = |row: &rusqlite::Row<'_>| {
            let expired = row.get(1)?;
            let longest_expired_secs = row.get(2)?;
            Ok(HeldLeases {
                held: row.get(0)?,
                expired,
                longest_expired_secs,
                without_host: expired,
            })
        };
        Ok(self.select("read the leases", &sql, [], read)?.pop().unwrap_or_default())
    }
}
