//! State of a database, as `doctor` reports it.

use jiff::{SignedDuration, Timestamp};
use postgres::{Client, Row};

use super::migrate::KNOWN_SCHEMA;
use super::pool::ConnectionPool;
use crate::error::DbError;

/// State of a database in PostgreSQL, as `doctor` reports it.
#[derive(Debug, Clone)]
pub struct DatabaseHealth {
    /// Its name and hosts, for people.
    pub database: String,
    /// Version of the server.
    pub version: String,
    /// Version of the schema; `None` before the first `serve`.
    pub schema: Option<u32>,
    /// The newest schema that this program knows.
    pub known_schema: u32,
    /// False for a standby, and for a server that refuses writes.
    pub accepts_writes: bool,
    /// False if a power failure may lose what was acknowledged.
    pub is_durable: bool,
    pub encoding: String,
    pub replication: ReplicationState,
    /// The database's clock, less that of this host.
    pub clock_difference: SignedDuration,
}

/// Copies of a database on other servers, which a fail-over continues with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicationState {
    /// It has no standby.
    Alone,
    /// A commit waits for a standby: nothing that was acknowledged is lost in a fail-over.
    Synchronous,
    /// Commits would wait for a standby, and none is connected.
    Waiting,
    /// A fail-over loses the newest commits: claims are given out twice.
    Asynchronous,
    /// The role may not see the standbys.
    Hidden,
}

const FACTS: &str = "SELECT current_setting('server_version'), \
    current_setting('transaction_read_only') = 'off' AND NOT pg_is_in_recovery(), \
    current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on' \
        AND current_setting('synchronous_commit') <> 'off', \
    current_setting('server_encoding'), \
    current_setting('synchronous_standby_names') <> '' \
        AND current_setting('synchronous_commit') IN ('on', 'remote_apply'), \
    (SELECT count(*) FROM pg_stat_replication), \
    (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')), \
    (SELECT count(*) FROM pg_stat_replication WHERE sync_state IS NULL), \
    to_regclass('bot_bottle_schema') IS NOT NULL, clock_timestamp()";

/// Reads the facts on a connection of its own, also from a server that accepts no writes.
pub(super) fn observe(pool: &ConnectionPool) -> Result<DatabaseHealth, DbError> {
    super::pool::outside_runtime(|| {
        let mut client = pool.connect_to_any()?;
        let before = host::clock::now();
        let facts = client.query_typed(FACTS, &[]).map_err(pool.failed("check"))?;
        let after = host::clock::now();
        let middle = before + before.duration_until(after) / 2;
        let row = facts.first();
        let row = row.ok_or_else(|| pool.refused("check", "it answered without a row"))?;
        read(pool, &mut client, row, middle).map_err(pool.failed("check"))
    })
}

fn read(
    pool: &ConnectionPool,
    client: &mut Client,
    row: &Row,
    middle: Timestamp,
) -> Result<DatabaseHealth, postgres::Error> {
    let schema = match row.try_get::<_, bool>(8)? {
        true => {
            let sql = "SELECT max(version) FROM bot_bottle_schema";
            let versions = client.query_typed(sql, &[])?;
            let newest = versions.first().map(|row| row.try_get::<_, Option<i64>>(0));
            newest.transpose()?.flatten().and_then(|version| u32::try_from(version).ok())
        }
        false => None,
    };
    let replication = replication(
        row.try_get(4)?,
        row.try_get::<_, i64>(5)?,
        row.try_get::<_, i64>(6)?,
        row.try_get::<_, i64>(7)?,
    );
    Ok(DatabaseHealth {
        database: pool.name().to_owned(),
        version: row.try_get(0)?,
        schema,
        known_schema: KNOWN_SCHEMA,
        accepts_writes: row.try_get(1)?,
        is_durable: row.try_get(2)?,
        encoding: row.try_get(3)?,
        replication,
        clock_difference: middle.duration_until(row.try_get::<_, Timestamp>(9)?),
    })
}

fn replication(waits: bool, all: i64, synchronous: i64, hidden: i64) -> ReplicationState {
    match (waits, all) {
        (false, 0) => ReplicationState::Alone,
        (false, _) => ReplicationState::Asynchronous,
        (true, _) if synchronous > 0 => ReplicationState::Synchronous,
        (true, _) if hidden > 0 => ReplicationState::Hidden,
        (true, _) => ReplicationState::Waiting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_commit_that_waits_for_a_standby_is_synchronous() {
        for (waits, all, synchronous, hidden, state) in [
            (false, 0, 0, 0, ReplicationState::Alone),
            (false, 1, 0, 0, ReplicationState::Asynchronous),
            (false, 1, 0, 1, ReplicationState::Asynchronous),
            (true, 1, 1, 0, ReplicationState::Synchronous),
            (true, 0, 0, 0, ReplicationState::Waiting),
            (true, 1, 0, 0, ReplicationState::Waiting),
            (true, 1, 0, 1, ReplicationState::Hidden),
        ] {
            assert_eq!(replication(waits, all, synchronous, hidden), state, "{waits} {all}");
        }
    }
}
