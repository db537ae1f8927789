//! Migrations in numbered files. Each one only adds: a process of the version before reads and writes what it knows, so that hosts
//! are upgraded one after another. What is no longer used is removed a version later.

use super::{OPEN_PLACE, PostgresStore, Tx};
use crate::error::DbError;

/// Statements from each version to the next; the first creates version 1.
const MIGRATIONS: [&str; 4] = [
    include_str!("migration/0001.sql"),
    include_str!("migration/0002.sql"),
    include_str!("migration/0003.sql"),
    include_str!("migration/0004.sql"),
];

/// The newest schema that this version knows.
pub(super) const KNOWN_SCHEMA: u32 = MIGRATIONS.len() as u32;

/// Key of the lock that lets one process at a time migrate.
const LOCK: &str = "SELECT pg_advisory_xact_lock(4702111234474983745)";

/// Rows are numbered above the present transaction: the database was restored into another server.
const IS_AHEAD: &str = "SELECT greatest((SELECT max(seq) FROM delivery), (SELECT max(seq) FROM work_event), 0) \
                        >= (SELECT base FROM place_base) + pg_snapshot_xmax(pg_current_snapshot())::text::bigint * 1024";

impl PostgresStore {
    /// Brings the database to the newest schema, each version in the one transaction. A newer schema is refused.
    pub(super) fn migrate(&self) -> Result<(), DbError> {
        if self.known_version()? != Some(KNOWN_SCHEMA) {
            self.change("migrate", migrate)?;
        }
        if self.select("read the places", IS_AHEAD, &[], |row| row.get::<bool>(0))? == [true] {
            self.change("raise the places", raise_places)?;
        }
        Ok(())
    }

    /// The version of the schema; `None` for a database without tables.
    fn known_version(&self) -> Result<Option<u32>, DbError> {
        let sql = "SELECT to_regclass('bot_bottle_schema') IS NOT NULL, \
                   current_setting('server_encoding')";
        let found = self.select("read the version", sql, &[], |row| {
            Ok((row.get::<bool>(0)?, row.get::<String>(1)?))
        })?;
        if let Some((_, encoding)) = found.iter().find(|(_, encoding)| encoding != "UTF8") {
            let why = format!("its encoding is {encoding}: create it with ENCODING 'UTF8'");
            return Err(self.pool.refused("store every text", &why));
        }
        if !found.iter().any(|(exists, _)| *exists) {
            return Ok(None);
        }
        let sql = "SELECT coalesce(max(version), 0) FROM bot_bottle_schema";
        let version = self.select("read the version", sql, &[], |row| row.number(0))?.pop();
        version.map(|found| self.check_version(found)).transpose()
    }

    fn check_version(&self, found: u32) -> Result<u32, DbError> {
        match found > KNOWN_SCHEMA {
            true => Err(DbError::Newer {
                database: self.pool.name().to_owned(),
                found,
                known: KNOWN_SCHEMA,
            }),
            false => Ok(found),
        }
    }
}

fn migrate(tx: &mut Tx<'_>) -> Result<(), DbError> {
    tx.batch("lock the schema", LOCK)?;
    let table = "CREATE TABLE IF NOT EXISTS bot_bottle_schema (version BIGINT PRIMARY KEY, \
                 migrated_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())";
    tx.batch("migrate", table)?;
    let sql = "SELECT coalesce(max(version), 0) FROM bot_bottle_schema";
    let found = tx.rows("migrate", sql, &[], |row| row.number::<u32>(0))?.pop();
    let found = tx.store.check_version(found.unwrap_or_default())?;
    for (sql, version) in MIGRATIONS.iter().zip(1_u32..) {
        if version > found {
            tx.batch("migrate", sql)?;
            let sql = "INSERT INTO bot_bottle_schema (version) VALUES ($1)";
            tx.execute("migrate", sql, &[version.into()])?;
        }
    }
    Ok(())
}

/// Raises the base of the places above every row. Whoever read up to the last one before the restore goes on from there.
fn raise_places(tx: &mut Tx<'_>) -> Result<(), DbError> {
    tx.batch("lock the schema", LOCK)?;
    let sql = format!(
        "UPDATE place_base SET base = base + greatest(0, 1024 - ({OPEN_PLACE}) + greatest(\
         (SELECT max(seq) FROM delivery), (SELECT max(seq) FROM work_event)))"
    );
    tx.execute("raise the places", &sql, &[]).map(drop)
}
