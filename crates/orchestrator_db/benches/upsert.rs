//! Keeping a state, beside the same statement on plain SQLite with the same durability.

use std::path::Path;
use std::time::Duration;

use orchestrator_db::{BottleState, ForgeState, IssueKey, Writer, open_file};
use rusqlite::{Connection, params};
use testkit::measure::{compare, row, time};

/// In one turn, so that a single slow write to disk decides nothing.
const UPSERTS: u64 = 20;
const ROUNDS: usize = 40;

fn sample(issue_number: u64) -> ForgeState {
    ForgeState {
        key: IssueKey { owner: "alice".to_owned(), repo: "hooks".to_owned(), issue_number },
        slug: "fix-the-hooks".to_owned(),
        agent_name: "implementer".to_owned(),
        bottle_names: vec!["base".to_owned()],
        backend_name: "bwrap".to_owned(),
        host: Some("here".to_owned()),
        saved: None,
        agent_git_user: "bot1".to_owned(),
        pr_number: Some(318),
        status: BottleState::Running,
        last_checkin_at: host::clock::now(),
    }
}

fn open_plain(path: &Path) -> Connection {
    let plain = Connection::open(path).expect("a database");
    plain
        .execute_batch(
            "PRAGMA journal_mode = wal; PRAGMA synchronous = full;
             CREATE TABLE t (a TEXT, b TEXT, n INTEGER, c TEXT, d TEXT, e TEXT, f TEXT, g TEXT,
                 p INTEGER, s TEXT, l TEXT, PRIMARY KEY (a, b, n)) STRICT, WITHOUT ROWID;",
        )
        .expect("a table");
    plain
}

fn main() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = open_file(&dir.path().join("ours.db")).expect("a store");
    let writer = Writer { host: "here", claim: None };
    for number in 0..UPSERTS {
        store.add_forge_state(&sample(number), writer).expect("stored");
    }
    let plain = open_plain(&dir.path().join("plain.db"));
    let sql = "INSERT OR REPLACE INTO t VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    let mut statement = plain.prepare(sql).expect("a statement");
    let result = compare(
        ROUNDS,
        || {
            time(|| {
                for number in 0..UPSERTS {
                    let key = sample(number).key;
                    store.check_in(&key, "fix-the-hooks", Some(318), writer).expect("kept");
                }
            })
        },
        || {
            time(|| {
                for number in 0..UPSERTS {
                    let now = host::clock::now().to_string();
                    let row = params![
                        "alice",
                        "hooks",
                        number,
                        "fix-the-hooks",
                        "implementer",
                        "[\"base\"]",
                        "bwrap",
                        "bot1",
                        318,
                        "running",
                        now
                    ];
                    statement.execute(row).expect("kept");
                }
            })
        },
    );
    // At least 0.8 times as many in the same time.
    result.print("state: 20 upserts, WAL, full sync", "plain SQLite", 1.25, Duration::ZERO);
    let per_second = |time: Duration| UPSERTS as f64 / time.as_secs_f64();
    row(&format!(
        "state: {:.0} upserts per second, plain SQLite {:.0}",
        per_second(result.ours),
        per_second(result.yardstick)
    ));
}
