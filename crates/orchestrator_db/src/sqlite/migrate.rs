//! Migrations of the schema, one version at a time, after a backup.

use std::path::{Path, PathBuf};

use host::clock;
use rusqlite::backup::Progress;
use rusqlite::{Connection, TransactionBehavior};

use super::{database, name_of};
use crate::error::DbError;

/// Statements from each version to the next; the first creates version 1.
pub(super) const MIGRATIONS: &[&str] = &[
    FORGE_STATE,
    ORCHESTRATOR,
    RENAME_REQUEST,
    DELIVERIES_OF_ISSUE,
    STATUS_COMMENT,
    SPENDING,
    DISPATCHES_AND_NOTICES,
    HOSTS_AND_CLAIMS,
    CHORES,
    SAVED_BOTTLES,
    SUMMARIES,
];

const FORGE_STATE: &str = "
    CREATE TABLE forge_state (
        owner TEXT NOT NULL,
        repo TEXT NOT NULL,
        issue_number INTEGER NOT NULL,
        slug TEXT NOT NULL,
        agent_name TEXT NOT NULL,
        bottle_names TEXT NOT NULL,
        backend_name TEXT NOT NULL,
        agent_git_user TEXT NOT NULL,
        pr_number INTEGER,
        status TEXT NOT NULL CHECK (status IN ('running', 'frozen', 'destroyed')),
        last_checkin_at TEXT NOT NULL,
        PRIMARY KEY (owner, repo, issue_number)
    ) STRICT, WITHOUT ROWID;
";

const ORCHESTRATOR: &str = "
    CREATE TABLE delivery (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        source TEXT NOT NULL,
        delivery_id TEXT NOT NULL,
        event TEXT NOT NULL,
        owner TEXT NOT NULL,
        repo TEXT NOT NULL,
        thread TEXT NOT NULL CHECK (thread IN ('issue', 'pull')),
        number INTEGER NOT NULL,
        body BLOB NOT NULL,
        received_at TEXT NOT NULL,
        handled_at TEXT,
        UNIQUE (source, delivery_id)
    ) STRICT;
    CREATE INDEX delivery_unhandled ON delivery (seq) WHERE handled_at IS NULL;
    CREATE TABLE work (
        owner TEXT NOT NULL,
        repo TEXT NOT NULL,
        issue_number INTEGER NOT NULL,
        state TEXT NOT NULL CHECK (state IN (
            'queued', 'claimed', 'running', 'frozen', 'waiting', 'needs-attention', 'destroyed')),
        errand TEXT NOT NULL,
        trigger TEXT,
        title TEXT NOT NULL,
        slug TEXT,
        fence INTEGER NOT NULL,
        claims INTEGER NOT NULL,
        holder TEXT,
        lease_until INTEGER,
        not_before TEXT,
        destroy_at TEXT,
        attempts INTEGER NOT NULL,
        reason TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        CHECK ((holder IS NOT NULL) = (state IN ('claimed', 'running'))),
        PRIMARY KEY (owner, repo, issue_number)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE work_event (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        owner TEXT NOT NULL,
        repo TEXT NOT NULL,
        issue_number INTEGER NOT NULL,
        at TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT NOT NULL
    ) STRICT;
    CREATE INDEX work_event_of ON work_event (owner, repo, issue_number);
";

const RENAME_REQUEST: &str = "ALTER TABLE work RENAME COLUMN errand TO request;";

const DELIVERIES_OF_ISSUE: &str = "CREATE INDEX delivery_of ON delivery (owner, repo, number);";

const STATUS_COMMENT: &str = "
    CREATE TABLE status_comment (
        owner TEXT NOT NULL,
        repo TEXT NOT NULL,
        issue_number INTEGER NOT NULL,
        comment_id INTEGER,
        digest TEXT NOT NULL,
        PRIMARY KEY (owner, repo, issue_number)
    ) STRICT, WITHOUT ROWID;
";

/// Spending of runs; and of work its place in the queue, what it waits for besides a time, and the issues that it comes
/// after, as JSON.
const SPENDING: &str = "
    CREATE TABLE spending (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        owner TEXT NOT NULL,
        repo TEXT NOT NULL,
        issue_number INTEGER NOT NULL,
        agent TEXT NOT NULL,
        run TEXT UNIQUE,
        day TEXT NOT NULL,
        reserved_at TEXT NOT NULL,
        reserved_tokens INTEGER,
        reserved_micro_usd INTEGER,
        settled_at TEXT,
        tokens INTEGER,
        micro_usd INTEGER,
        CHECK (run IS NOT NULL OR settled_at IS NULL)
    ) STRICT;
    CREATE INDEX spending_of ON spending (owner, repo, issue_number);
    CREATE INDEX spending_on ON spending (day);
    CREATE UNIQUE INDEX spending_unstarted ON spending (owner, repo, issue_number) WHERE run IS NULL;
    ALTER TABLE work ADD COLUMN queued_at TEXT NOT NULL DEFAULT '';
    UPDATE work SET queued_at = updated_at;
    ALTER TABLE work ADD COLUMN priority_mins INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE work ADD COLUMN waits_for TEXT CHECK (waits_for IN ('budget', 'issues'));
    ALTER TABLE work ADD COLUMN after TEXT NOT NULL DEFAULT '[]';
";

const DISPATCHES_AND_NOTICES: &str = "
    CREATE TABLE dispatch (
        id TEXT PRIMARY KEY,
        origin TEXT NOT NULL,
        schedule TEXT,
        owner TEXT NOT NULL,
        repo TEXT NOT NULL,
        agent TEXT NOT NULL,
        bottles TEXT NOT NULL,
        assignee TEXT,
        title TEXT NOT NULL,
        prompt TEXT NOT NULL,
        created_at TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('pending', 'opening', 'opened', 'failed')),
        issue_number INTEGER,
        attempts INTEGER NOT NULL,
        not_before TEXT,
        problem TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX dispatch_open ON dispatch (created_at) WHERE state IN ('pending', 'opening');
    CREATE INDEX dispatch_of ON dispatch (owner, repo, issue_number);
    CREATE TABLE schedule (
        name TEXT PRIMARY KEY,
        definition TEXT NOT NULL,
        last_due TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE found_repository (
        source TEXT NOT NULL,
        full_name TEXT NOT NULL,
        PRIMARY KEY (source, full_name)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE notice (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        subject TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        created_at TEXT NOT NULL
    ) STRICT;
    CREATE TABLE notice_delivery (
        notice_id TEXT NOT NULL,
        channel TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'failed')),
        attempts INTEGER NOT NULL,
        not_before TEXT,
        problem TEXT NOT NULL,
        PRIMARY KEY (notice_id, channel)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX notice_open ON notice_delivery (notice_id) WHERE state IN ('pending', 'sending');
    CREATE TABLE user_action (
        delivery_id TEXT PRIMARY KEY,
        actor TEXT NOT NULL,
        action TEXT NOT NULL,
        owner TEXT NOT NULL,
        repo TEXT NOT NULL,
        issue_number INTEGER NOT NULL,
        at TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE cursor (
        name TEXT PRIMARY KEY,
        seq INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// The host of each bottle and of each run that spends; the random id of each claim; and the fences of work items that were
/// deleted, so that no number is given out twice.
const HOSTS_AND_CLAIMS: &str = "
    ALTER TABLE forge_state ADD COLUMN host TEXT;
    ALTER TABLE spending ADD COLUMN host TEXT;
    ALTER TABLE work ADD COLUMN claim_id INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX work_held ON work (lease_until) WHERE holder IS NOT NULL;
    CREATE TABLE past_fence (
        owner TEXT NOT NULL,
        repo TEXT NOT NULL,
        issue_number INTEGER NOT NULL,
        fence INTEGER NOT NULL,
        claim_id INTEGER NOT NULL,
        PRIMARY KEY (owner, repo, issue_number)
    ) STRICT, WITHOUT ROWID;
";

/// Chores that one process at a time does, until a time in seconds.
const CHORES: &str = "
    CREATE TABLE chore (
        name TEXT PRIMARY KEY,
        holder TEXT NOT NULL,
        until INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// The newest state of each bottle in the store of bottles.
const SAVED_BOTTLES: &str = "
    ALTER TABLE forge_state ADD COLUMN saved TEXT;
    ALTER TABLE forge_state ADD COLUMN saved_at TEXT;
";

/// Summaries of bottles for other hosts, and indexes for what is to be maintained.
const SUMMARIES: &str = "
    ALTER TABLE forge_state ADD COLUMN summary TEXT;
    CREATE INDEX work_to_destroy ON work (destroy_at) WHERE destroy_at IS NOT NULL;
    CREATE INDEX work_of_holder ON work (holder) WHERE holder IS NOT NULL;
";

/// Refuses a newer schema before anything in the database changes.
pub(super) fn check_version(
    connection: &Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<u32, DbError> {
    let found: u32 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(database(path, "read the version"))?;
    let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    if found > known {
        return Err(DbError::Newer { database: name_of(path), found, known });
    }
    Ok(found)
}

/// Migrates to the newest version in one transaction.
pub(super) fn migrate(
    connection: &mut Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<(), DbError> {
    if check_version(connection, path, migrations)? as usize == migrations.len() {
        return Ok(());
    }
    let failed = |action| database(path, action);
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed("begin to migrate"))?;
    // Read again: another process may have migrated in the meantime.
    let from = check_version(&transaction, path, migrations)?;
    if from > 0 && (from as usize) < migrations.len() {
        // The transaction keeps writers out, and a second connection sees what is committed.
        back_up(path, from)?;
    }
    for (sql, version) in migrations.iter().zip(1_u32..).skip(from as usize) {
        transaction
            .execute_batch(sql)
            .and_then(|()| transaction.pragma_update(None, "user_version", version))
            .map_err(failed("migrate"))?;
    }
    transaction.commit().map_err(failed("migrate"))
}

fn back_up(path: &Path, version: u32) -> Result<PathBuf, DbError> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".v{version}-{}", clock::stamp_utc(clock::now())));
    let copy = path.with_file_name(name);
    let failed = |action| database(path, action);
    Connection::open(path)
        .and_then(|source| source.backup("main", &copy, None::<fn(Progress)>))
        .map_err(failed("back up"))?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1);";
    const SECOND: &str = "ALTER TABLE a ADD COLUMN y INTEGER; UPDATE a SET y = x + 1;";

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_older_database_is_back_up_and_brought_up_to_date() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let mut connection = Connection::open(&path).unwrap();
        migrate(&mut connection, &path, &[FIRST]).unwrap();
        assert_eq!(names(dir.path()), ["state.db"]);
        migrate(&mut connection, &path, &[FIRST, SECOND]).unwrap();
        migrate(&mut connection, &path, &[FIRST, SECOND]).unwrap();
        let y: i64 = connection.query_row("SELECT y FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(y, 2);
        let copies: Vec<String> =
            names(dir.path()).into_iter().filter(|name| name.starts_with("state.db.v1-")).collect();
        assert_eq!(copies.len(), 1);
        let copy = Connection::open(dir.path().join(&copies[0])).unwrap();
        assert_eq!(check_version(&copy, &path, &[FIRST]).unwrap(), 1);
        let x: i64 = copy.query_row("SELECT x FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(x, 1);
    }

    #[test]
    fn a_failed_migration_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let mut connection = Connection::open(&path).unwrap();
        migrate(&mut connection, &path, &[FIRST]).unwrap();
        let bad = "UPDATE a SET x = 7; NO SUCH THING;";
        migrate(&mut connection, &path, &[FIRST, bad]).unwrap_err();
        assert_eq!(check_version(&connection, &path, &[FIRST]).unwrap(), 1);
        let x: i64 = connection.query_row("SELECT x FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(x, 1);
    }

    #[test]
    fn a_newer_database_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let mut connection = Connection::open(&path).unwrap();
        migrate(&mut connection, &path, &[FIRST, SECOND]).unwrap();
        let error = migrate(&mut connection, &path, &[FIRST]).unwrap_err();
        assert!(
            error.to_string().contains("newer version (schema 2, this one knows 1)"),
            "{error}"
        );
    }
}
