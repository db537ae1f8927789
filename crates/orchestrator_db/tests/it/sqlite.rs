//! SQLite: the promises of every engine, and its own about files and versions.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use std::sync::Arc;

use orchestrator_db::{BottleState, DbError, Store, WorkRequest, open_file};
use tempfile::TempDir;

use crate::conformance::issue::{HERE, state};
use crate::conformance::{Engine, conformance, key};

struct Sqlite(TempDir);

impl Sqlite {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("bot-bottle/bot-bottle.db")
    }
}

impl Engine for Sqlite {
    fn open(&self) -> Arc<dyn Store> {
        open_file(&self.path()).unwrap()
    }

    fn execute(&self, sql: &str) {
        rusqlite::Connection::open(self.path()).unwrap().execute(sql, []).unwrap();
    }

    fn expire_leases(&self) {
        self.execute("UPDATE work SET lease_until = 0 WHERE holder IS NOT NULL");
        self.execute("UPDATE chore SET until = 0");
    }
}

conformance!(Sqlite::new());

#[test]
fn the_database_is_its_owners_alone() {
    let engine = Sqlite::new();
    let store = engine.open();
    store.add_forge_state(&state(key("alice", "hooks", 1)), HERE).unwrap();
    for entry in std::fs::read_dir(engine.path().parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
}

/// A program that reads the database while no process has a lock on it deletes the write-ahead log when it closes.
#[test]
fn opening_the_database_again_keeps_the_locks_of_the_first_connection() {
    let engine = Sqlite::new();
    let first = engine.open();
    first.add_forge_state(&state(key("alice", "hooks", 1)), HERE).unwrap();
    let before = own_locks(&engine);
    assert!(before > 0, "an open connection has a lock");
    let second = engine.open();
    assert!(own_locks(&engine) >= before, "the locks of the first connection are gone");
    drop(second);
    assert_eq!(own_locks(&engine), before);
}

/// The kernel's list of the locks that this process has on the database.
fn own_locks(engine: &Sqlite) -> usize {
    let inode = format!(":{}", std::fs::metadata(engine.path()).unwrap().ino());
    let pid = std::process::id().to_string();
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    let is_own = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.contains(&pid.as_str()) && words.iter().any(|word| word.ends_with(&inode))
    };
    locks.lines().filter(is_own).count()
}

#[test]
fn a_database_of_a_newer_version_is_left_alone() {
    let engine = Sqlite::new();
    drop(engine.open());
    let raw = rusqlite::Connection::open(engine.path()).unwrap();
    raw.pragma_update(None, "user_version", 99).unwrap();
    drop(raw);
    let before = std::fs::read(engine.path()).unwrap();
    let error = open_file(&engine.path()).unwrap_err();
    assert!(matches!(error, DbError::Newer { found: 99, known: 11, .. }), "{error}");
    assert_eq!(std::fs::read(engine.path()).unwrap(), before);
}

#[test]
fn what_is_no_database_is_said_to_be_none() {
    let engine = Sqlite::new();
    std::fs::create_dir_all(engine.path().parent().unwrap()).unwrap();
    std::fs::write(engine.path(), "this is a text file, and a long one at that".repeat(50))
        .unwrap();
    let error = open_file(&engine.path()).unwrap_err();
    assert!(matches!(error, DbError::Database { .. }), "{error}");
}

#[test]
fn a_status_that_nobody_knows_is_not_kept() {
    let engine = Sqlite::new();
    engine.open().add_forge_state(&state(key("alice", "hooks", 1)), HERE).unwrap();
    let raw = rusqlite::Connection::open(engine.path()).unwrap();
    raw.execute("UPDATE forge_state SET status = 'melted'", []).unwrap_err();
    raw.execute("UPDATE forge_state SET bottle_names = 'none'", []).unwrap();
    let error = engine.open().forge_states().unwrap_err();
    assert!(error.to_string().contains("holds an invalid bottle_names"), "{error}");
}

#[test]
fn a_database_of_the_version_before_opens_with_everything_in_it() {
    let engine = Sqlite::new();
    std::fs::create_dir_all(engine.path().parent().unwrap()).unwrap();
    let raw = rusqlite::Connection::open(engine.path()).unwrap();
    raw.execute_batch(include_str!("../fixture/v2.sql")).unwrap();
    drop(raw);
    let store = engine.open();
    let known = store.forge_state(&key("alice", "hooks", 7)).unwrap().unwrap();
    assert_eq!((known.status, known.pr_number), (BottleState::Frozen, Some(12)));
    let requests: Vec<_> = store.works().unwrap().into_iter().map(|work| work.request).collect();
    let resume = WorkRequest::resume(Some("Once more.".to_owned()));
    let start = WorkRequest::start("worker", vec!["rust".to_owned()], None);
    assert_eq!(requests, [resume, start]);
    assert_eq!(store.work_events(&key("alice", "hooks", 7)).unwrap().len(), 1);
    assert_eq!(store.delivery_body(1).unwrap(), b"{}");
    let names = std::fs::read_dir(engine.path().parent().unwrap()).unwrap().flatten();
    let backup = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().contains(".v2-");
    assert_eq!(names.filter(backup).count(), 1, "a backup of the older version");
}
