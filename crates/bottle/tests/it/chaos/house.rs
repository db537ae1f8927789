//! Rows 13 to 17 and 26: the disk, the database, the clock and the settings of the machine.

use std::time::Duration;

use testkit::fake_forge::Room;
use testkit::fake_forge::hooks::{Hook, SECRET};
use testkit::part::{Part, require};
use testkit::wait::wait_for;

use super::{GATE, SELDOM, check, check_house, open_gate, runs, scene, wait_until_it_works, work};
use crate::serving::Serving;
use crate::support::{COMMIT, DONE, SLUG};

/// Row 13: the disk that holds everything is full for a while. Nothing is acknowledged then, nothing that was is lost, and
/// it goes on by itself.
#[test]
fn row_13_a_full_disk_refuses_what_it_cannot_keep_and_recovers() {
    let Some(scene) = scene() else { return };
    let quiet = scene.forge.add_issue("Quiet", "Nobody's.", &[], &[]);
    let Some(serving) = Serving::start_on_small_disk(scene, "sweep_secs = 3600\n") else { return };
    // SQLite follows every link of a path, so it is given copies of what only the orchestrator sees. A copy that was made
    // in the middle of a write cannot be read, or is older.
    let copy = serving.scene.person.hermetic.work();
    let count = |sql: &str| -> Option<i64> {
        for name in ["bot-bottle.db", "bot-bottle.db-wal"] {
            let inside = serving.seen_inside(&serving.scene.person.home().join(name));
            std::fs::copy(inside, copy.join(name)).ok()?;
        }
        let database = rusqlite::Connection::open(copy.join("bot-bottle.db")).ok()?;
        database.query_row(sql, [], |row| row.get(0)).ok()
    };
    let send = || serving.tell("issue_comment_created", Room::Issue, quiet);
    assert_eq!(send(), Some(202));
    let ballast = serving.seen_inside(&serving.scene.person.home().join("ballast"));
    drop(std::fs::write(&ballast, vec![0_u8; 64 * 1024 * 1024]));
    let mut acknowledged = 1;
    let refused = (0..400).any(|_| match send() {
        Some(202) => {
            acknowledged += 1;
            false
        }
        other => {
            assert_eq!(other, Some(503), "refused before it was acknowledged");
            true
        }
    });
    assert!(refused, "the disk was never full");
    // What was acknowledged just before is looked at now, and cannot be marked as handled while the disk is full.
    let log = serving.scene.person.hermetic.work().join("serve.log");
    let unhandled = "SELECT count(*) FROM delivery WHERE handled_at IS NULL";
    wait_for("a failed attempt", || {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        (said.contains("reconciling failed") || count(unhandled) == Some(0)).then_some(())
    });
    std::fs::remove_file(&ballast).expect("room again");
    wait_for("it to go on", || (send() == Some(202)).then_some(()));
    wait_for("every delivery, none lost", || {
        (count("SELECT count(*) FROM delivery") == Some(acknowledged + 1)).then_some(())
    });
    wait_for("the inbox to be empty", || (count(unhandled) == Some(0)).then_some(()));
}

#[test]
fn row_14_a_database_that_another_one_holds_is_waited_for() {
    let Some(scene) = scene() else { return };
    let serving = Serving::start(scene, SELDOM);
    let database = serving.database();
    database.execute_batch("BEGIN IMMEDIATE").expect("held");
    let address = serving.address;
    let sent = std::thread::spawn(move || {
        Hook::about("issue_opened_labeled_assigned-opened", Room::Issue, 1, SECRET)
            .send(address, "/webhooks/gitea")
    });
    std::thread::sleep(Duration::from_secs(2));
    database.execute_batch("COMMIT").expect("let go");
    assert_eq!(sent.join().expect("sent"), Some(202));
    serving.wait("frozen");
}

#[test]
fn row_14_a_database_that_is_none_stops_everything_and_is_left_alone() {
    let Some(scene) = scene() else { return };
    let mut serving = Serving::start(scene, SELDOM);
    serving.kill();
    let path = serving.scene.person.home().join("bot-bottle.db");
    for beside in ["bot-bottle.db-wal", "bot-bottle.db-shm"] {
        drop(std::fs::remove_file(serving.scene.person.home().join(beside)));
    }
    let rubbish = vec![b'x'; 8192];
    std::fs::write(&path, &rubbish).expect("written");
    let config = crate::serving::config_path(&serving.scene);
    let output = serving.scene.person.run(&["serve", "--config", config.to_str().expect("a path")]);
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    assert!(output.stderr.contains("bot-bottle.db"), "{}", output.stderr);
    assert_eq!(std::fs::read(&path).expect("it is there"), rubbish);
}

/// Row 15: the clock is put forward or back while an agent works.
#[track_caller]
fn does_not_mind_a_clock_that_jumps(jump: &str) {
    let (Some(scene), Some(_)) = (scene(), require(Part::Faketime)) else { return };
    scene.person.script(&format!("[[step]]\nrun = \"true\"\n{GATE}{COMMIT}{DONE}"));
    let mut serving = Serving::start(scene, &format!("{SELDOM}watchdog_secs = 600\n"));
    serving.label();
    wait_until_it_works(&serving);
    serving.restart_with_clock(jump);
    open_gate(&serving);
    let reason = serving.wait("frozen");
    assert!(reason.contains("up for review"), "{jump}: {reason}");
    assert_eq!(runs(&serving.scene.person.bottle(SLUG)).len(), 1, "{jump}");
    check_house(&serving, jump);
}

#[test]
fn row_15_a_clock_put_forward_ends_nobody() {
    does_not_mind_a_clock_that_jumps("+1h");
}

#[test]
fn row_15_a_clock_put_back_keeps_nobody() {
    does_not_mind_a_clock_that_jumps("-1h");
}

#[test]
fn row_17_what_cannot_be_started_is_said_at_once() {
    let Some(scene) = scene() else { return };
    scene.person.manifest("bottles", "broken", "root = \"/no/such/folder\"\n");
    scene.person.agent("worker", "bottle = \"broken\"\n");
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    let reason = serving.wait("needs-attention");
    assert!(reason.contains("/no/such/folder"), "{reason}");
    check_house(&serving, "nothing was begun");
}

/// Tables that the first version of the database did not have.
const TABLES_SINCE_1: [&str; 14] = [
    "past_fence",
    "delivery",
    "work",
    "work_event",
    "status_comment",
    "spending",
    "dispatch",
    "schedule",
    "found_repository",
    "notice",
    "notice_delivery",
    "user_action",
    "cursor",
    "chore",
];

#[test]
fn row_26_a_database_of_an_older_version_is_brought_up_to_date_in_the_middle_of_a_run() {
    let Some(scene) = scene() else { return };
    let mut command = scene.start_command(&work());
    let output = scene.person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", "launched"));
    assert_eq!(output.signal, Some(9), "{}", output.snapshot());
    let home = scene.person.home();
    let database = rusqlite::Connection::open(home.join("bot-bottle.db")).expect("a database");
    for table in TABLES_SINCE_1 {
        database.execute_batch(&format!("DROP TABLE {table};")).expect("a table");
    }
    for column in ["host", "saved", "saved_at", "summary"] {
        let sql = format!("ALTER TABLE forge_state DROP COLUMN {column};");
        database.execute_batch(&sql).expect("a column");
    }
    database.execute_batch("PRAGMA user_version = 1;").expect("as it was before");
    drop(database);
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    serving.wait("frozen");
    check(&serving, "after the migration");
    assert_eq!(runs(&serving.scene.person.bottle(SLUG)).len(), 1, "the run was finished");
    let copies = std::fs::read_dir(home).expect("a folder").flatten();
    let copies = copies.filter(|it| it.file_name().to_string_lossy().contains(".db.v1-")).count();
    assert_eq!(copies, 1, "a copy was put aside first");
}
