//! The rows of the hosts.

use std::time::Duration;

use super::PostgresStore;
use super::value::Cells;
use crate::error::DbError;
use crate::host_row::{HeldLeases, HostClaim, HostReport, HostRow};
use crate::store::HostStore;

impl HostStore for PostgresStore {
    fn report_host(&self, report: &HostReport, lease: Duration) -> Result<HostClaim, DbError> {
        let HostReport { name, process, place, version, role, slots, busy, disk_free_bytes } =
            report;
        let sql = "INSERT INTO host (name, process, place, version, role, slots, busy, \
                   disk_free_bytes, seen_at, until) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp(), \
                   clock_timestamp() + make_interval(secs => $9)) \
                   ON CONFLICT (name) DO UPDATE SET process = $2, place = $3, version = $4, \
                   role = $5, slots = $6, busy = $7, disk_free_bytes = $8, \
                   seen_at = excluded.seen_at, until = excluded.until \
                   WHERE host.process = $2 OR host.place = $3 OR host.until <= clock_timestamp()";
        let values = [
            name.into(),
            process.into(),
            place.into(),
            version.into(),
            role.into(),
            (*slots).into(),
            (*busy).into(),
            (*disk_free_bytes).into(),
            lease.as_secs_f64().into(),
        ];
        if self.execute("report a host", sql, &values)? > 0 {
            return Ok(HostClaim::Held);
        }
        let sql = "SELECT process, until FROM host WHERE name = $1";
        let read =
            |row: &Cells<'_>| Ok(HostClaim::Taken { process: row.get(0)?, until: row.get(1)? });
        let taken = self.select("read a host", sql, &[name.into()], read)?.pop();
        taken.ok_or_else(|| self.pool.refused("report a host", "its row cannot be written"))
    }

    fn leave_host(&self, name: &str, process: &str) -> Result<(), DbError> {
        let sql = "UPDATE host SET until = clock_timestamp(), busy = 0 \
                   WHERE name = $1 AND process = $2";
        self.execute("report the end of a host", sql, &[name.into(), process.into()]).map(drop)
    }

    fn hosts(&self) -> Result<Vec<HostRow>, DbError> {
        let sql = r#"SELECT name, process, place, version, role, slots, busy, disk_free_bytes,
            seen_at, until > clock_timestamp() FROM host ORDER BY name COLLATE "C""#;
        self.select("read the hosts", sql, &[], |row| {
            let report = HostReport {
                name: row.get(0)?,
                process: row.get(1)?,
                place: row.get(2)?,
                version: row.get(3)?,
                role: row.get(4)?,
                slots: row.number(5)?,
                busy: row.number(6)?,
                disk_free_bytes: row.number_option(7)?,
            };
            Ok(HostRow { report, seen_at: row.get(8)?, is_live: row.get(9)? })
        })
    }

    fn held_leases(&self) -> Result<HeldLeases, DbError> {
        let sql = "SELECT count(*), count(*) FILTER (WHERE lease_until <= clock_timestamp()), \
                   greatest(0, floor(extract(epoch FROM clock_timestamp() - min(lease_until))))::bigint, \
                   count(*) FILTER (WHERE NOT EXISTS (SELECT 1 FROM host \
                       WHERE host.name = split_part(holder, '/', 1) \
                       AND host.until > clock_timestamp())) \
                   FROM work WHERE holder IS NOT NULL";
        let leases = self.select("read the leases", sql, &[], |row| {
            Ok(HeldLeases {
                held: row.number(0)?,
                expired: row.number(1)?,
                longest_expired_secs: row.number_option(2)?.unwrap_or_default(),
                without_host: row.number(3)?,
            })
        })?;
        Ok(leases.into_iter().next().unwrap_or_default())
    }
}
