//! The fault matrix: whatever is killed, lost, doubled or broken, what was acknowledged is there afterwards, each effect is
//! there once, nothing runs that nobody holds, and every log's chain holds. `CHAOS_ROUNDS` makes the random part longer.

use std::path::Path;
use std::time::Duration;

use testkit::fake_gitea::hooks::{Hook, SECRET};
use testkit::fake_gitea::{Mishap, Room};
use testkit::part::{Part, require};

use crate::serving::Serving;
use crate::support::{COMMIT, DONE, FIRST_STEP_DONE, SLUG, Scene, wait_for};

/// One comment, one commit, one word.
fn work() -> String {
    format!("[[step]]\nrun = [\"forge\", \"comment\", \"1\", \"I have begun.\"]\n{COMMIT}{DONE}")
}

const SELDOM: &str = "sweep_secs = 3600\n";

fn scene() -> Option<Scene> {
    let scene = Scene::new()?;
    scene.person.script(&work());
    Some(scene)
}

/// What must hold at rest, whatever happened before.
#[track_caller]
fn check(serving: &Serving, what: &str) {
    assert_eq!(serving.pulls(), 1, "{what}: pull requests");
    let comments = serving.scene.forge.comments();
    let begun = comments.iter().filter(|comment| comment.body.contains("I have begun")).count();
    assert_eq!(begun, 1, "{what}: comments");
    check_house(serving, what);
}

/// The same without the forge.
#[track_caller]
fn check_house(serving: &Serving, what: &str) {
    let database = serving.database();
    let verdict: String =
        database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a word");
    assert_eq!(verdict, "ok", "{what}");
    let held =
        "SELECT count(*) FROM work WHERE (holder IS NOT NULL) != (state IN ('claimed', 'running'))";
    assert_eq!(serving.count(held), 0, "{what}: a lease without an owner");
    let orphans = "SELECT count(*) FROM forge_state WHERE status = 'running' AND NOT EXISTS \
        (SELECT 1 FROM work WHERE work.issue_number = forge_state.issue_number \
         AND work.state IN ('claimed', 'running'))";
    assert_eq!(serving.count(orphans), 0, "{what}: a bottle without a lease");
    for run in runs(&serving.scene.person.bottle(SLUG)) {
        let document = serving.scene.person.provenance(&run);
        assert_eq!(document["complete"], true, "{what}: {run}: {document:#}");
    }
}

fn runs(bottle: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(bottle.join("runs")) else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Row 1: dies at a named moment, is started again, and comes to the same end.
#[track_caller]
fn converges_after(moment: &str) {
    let Some(scene) = scene() else { return };
    let mut serving = Serving::start_to_die_at(scene, moment, SELDOM);
    let acknowledged = serving.label();
    serving.wait_for_death();
    serving.restart();
    if acknowledged.is_none() {
        // Nobody was told that it was kept; the first look over the repository finds it all the same.
        assert!(["received", "verified", "inserted"].contains(&moment), "{moment}");
    }
    let reason = serving.wait("frozen");
    assert!(reason.contains("up for review"), "after {moment}: {reason}");
    check(&serving, moment);
    assert_eq!(
        runs(&serving.scene.person.bottle(SLUG)).len(),
        1,
        "after {moment}: it was not started again"
    );
}

macro_rules! row_1_killed {
    ($($name:ident at $moment:literal),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                converges_after($moment);
            }
        )*
    };
}

row_1_killed! {
    row_1_killed_after_a_webhook_was_received at "received",
    row_1_killed_after_a_webhook_was_verified at "verified",
    row_1_killed_after_a_webhook_was_inserted at "inserted",
    row_1_killed_after_the_claim at "claimed",
    row_1_killed_after_the_bottle_was_begun at "begun",
    row_1_killed_after_the_commits_were_pinned at "pinned",
    row_1_killed_after_the_workspace_was_made at "prepared",
    row_1_killed_after_the_box_was_launched at "launched",
    row_1_killed_after_the_box_ended at "ended",
    row_1_killed_after_the_import at "imported",
    row_1_killed_after_the_verdict at "judged",
    row_1_killed_after_the_push at "pushed",
    row_1_killed_after_the_pull_request_was_opened at "opened",
    row_1_killed_after_publishing at "published",
    row_1_killed_after_it_was_frozen at "settled",
}

/// A small generator: the same seed, the same faults.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Row 2: killed at random times while several issues are worked on and webhooks come in.
#[test]
fn row_2_killed_at_random_times_under_load() {
    let Some(scene) = scene() else { return };
    let rounds: u64 =
        host::env::var("CHAOS_ROUNDS").map_or(4, |text| text.parse().expect("a number"));
    let mut issues = vec![scene.issue];
    for _ in 0..3 {
        issues.push(scene.forge.add_issue("Another", "Too.", &["bot-bottle:worker"], &["bot1"]));
    }
    scene.person.script(&format!("[[step]]\nsleep = 1\n{COMMIT}{DONE}"));
    let mut serving = Serving::start(scene, "sweep_secs = 2\nmax_bottles = 2\n");
    let (mut dice, mut acknowledged, mut kills) = (Dice(20_261_115), 0, 0);
    for round in 0..rounds {
        for issue in &issues {
            let event = "issue_opened_labeled_assigned-label_updated";
            if serving.tell(event, Room::Issue, *issue) == Some(202) {
                acknowledged += 1;
            }
        }
        std::thread::sleep(Duration::from_millis(dice.roll(2500)));
        serving.kill();
        kills += 1;
        let kept = serving.count("SELECT count(*) FROM delivery");
        assert!(kept >= acknowledged, "round {round}: {kept} of {acknowledged} are left");
        serving.restart();
    }
    serving.wait_for_all(&issues);
    let unhandled = "SELECT count(*) FROM delivery WHERE handled_at IS NULL";
    wait_for("the inbox to be empty", || (serving.count(unhandled) == 0).then_some(()));
    assert_eq!(serving.pulls(), issues.len(), "one each");
    check_house(&serving, "after the storm");
    println!("chaos: {rounds} rounds, {kills} kills, {acknowledged} acknowledged, 0 lost");
}

/// The process ids of the shims of a bottle's newest run.
fn shim_of(serving: &Serving) -> String {
    let run = serving.scene.person.last_run(SLUG);
    let text = std::fs::read_to_string(run.join("boxes/agent/shim.json")).expect("a shim");
    let record: serde_json::Value = serde_json::from_str(&text).expect("a record");
    record["process"]["pid"].to_string()
}

fn wait_until_it_works(serving: &Serving) {
    wait_for("the agent", || {
        if !serving.scene.person.bottle(SLUG).join("runs").exists() {
            return None;
        }
        serving.scene.log().contains(FIRST_STEP_DONE).then_some(())
    });
}

#[test]
fn row_3_a_killed_shim_is_the_machines_failure_and_is_tried_again() {
    let Some(scene) = scene() else { return };
    scene.person.script("[[step]]\nrun = \"true\"\n[[step]]\nsleep = 600\n");
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    wait_until_it_works(&serving);
    serving.scene.person.script(&work());
    serving.signal("-KILL", &shim_of(&serving));
    let reason = serving.wait("waiting");
    assert!(!reason.is_empty());
    serving.wait("frozen");
    assert_eq!(serving.pulls(), 1);
    let first = serving.scene.person.json(&["list"]);
    assert_eq!(first[0]["runs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn row_4_a_killed_sidecar_is_noticed_and_said() {
    let Some(scene) = scene() else { return };
    scene.person.script("[[step]]\nrun = \"true\"\n[[step]]\nsleep = 3\n");
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    wait_until_it_works(&serving);
    let ready = serving.scene.person.last_run(SLUG).join("sidecar/ready.json");
    let text = std::fs::read_to_string(ready).expect("a sidecar");
    let process: serde_json::Value = serde_json::from_str(&text).expect("a process");
    serving.signal("-KILL", &process["pid"].to_string());
    serving.wait("needs-attention");
    let document = serving.scene.provenance();
    assert_eq!(document["watchdog_fired"], true, "{document:#}");
    assert_eq!(serving.pulls(), 0);
}

#[test]
fn row_5_an_agent_that_ignores_the_clock_is_ended_by_it() {
    let Some(scene) = scene() else { return };
    scene.person.agent("worker", "[limits]\ntimeout_secs = 3\n");
    scene.person.script("[[step]]\nrun = \"trap '' TERM INT HUP; while :; do sleep 1; done\"\n");
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    let reason = serving.wait("needs-attention");
    assert!(reason.contains("out of time"), "{reason}");
    assert_eq!(serving.scene.provenance()["exit"]["class"], "timeout");
}

#[test]
fn row_6_without_a_word_it_is_frozen_and_the_watchdog_is_named() {
    let Some(scene) = scene() else { return };
    scene.person.script("[[step]]\nrun = \"true\"\n[[step]]\nsleep = 600\n");
    let serving = Serving::start(scene, &format!("{SELDOM}watchdog_secs = 2\n"));
    serving.label();
    let reason = serving.wait("needs-attention");
    assert!(reason.contains("frozen before it said that it is done"), "{reason}");
    assert_eq!(serving.scene.provenance()["watchdog_fired"], true);
}

#[test]
fn row_6_what_computes_is_not_taken_for_dead() {
    let Some(scene) = scene() else { return };
    let busy = "timeout 26 sh -c 'while :; do :; done' || true";
    scene.person.script(&format!("[[step]]\nrun = \"{busy}\"\n{COMMIT}{DONE}"));
    let serving = Serving::start(scene, &format!("{SELDOM}watchdog_secs = 16\n"));
    serving.label();
    let reason = serving.wait("frozen");
    assert!(reason.contains("up for review"), "{reason}");
}

#[test]
fn row_7_done_twice_is_done_once() {
    let Some(scene) = scene() else { return };
    scene.person.script(&format!("{COMMIT}{DONE}{DONE}"));
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    serving.wait("frozen");
    assert_eq!(serving.pulls(), 1);
    assert_eq!(serving.scene.provenance()["watchdog_fired"], false);
}

#[test]
fn row_8_doubled_reordered_and_replayed_webhooks_make_one_job() {
    let Some(scene) = scene() else { return };
    let serving = Serving::start(scene, SELDOM);
    let opened = Hook::about("issue_opened_labeled_assigned-opened", Room::Issue, 1, SECRET);
    let labelled =
        Hook::about("issue_opened_labeled_assigned-label_updated", Room::Issue, 1, SECRET);
    let closed = Hook::about("pull_request_merged-closed", Room::Pull, 2, SECRET);
    for hook in [&closed, &labelled, &opened] {
        for round in 0..10 {
            let expected = if round == 0 { 202 } else { 200 };
            assert_eq!(hook.send(serving.address, "/webhooks/gitea"), Some(expected));
        }
    }
    serving.wait("frozen");
    assert_eq!(labelled.send(serving.address, "/webhooks/gitea"), Some(200), "a day later");
    check(&serving, "after ten of each");
    assert_eq!(serving.count("SELECT count(*) FROM delivery"), 3);
    assert_eq!(serving.count("SELECT count(*) FROM work"), 1);
}

#[test]
fn row_8_forged_oversized_and_slow_webhooks_leave_no_row() {
    let Some(scene) = scene() else { return };
    let serving = Serving::start(scene, SELDOM);
    let path = "/webhooks/gitea";
    let good = Hook::about("issue_opened_labeled_assigned-opened", Room::Issue, 1, SECRET);
    let mut forged = good.clone();
    forged.sign("another secret");
    assert_eq!(forged.send(serving.address, path), Some(401));
    let mut changed = good.clone();
    changed.body.extend_from_slice(b" ");
    assert_eq!(changed.send(serving.address, path), Some(401));
    let mut huge = good.clone();
    huge.body = vec![b' '; 10 * 1024 * 1024];
    huge.sign(SECRET);
    assert_eq!(huge.send(serving.address, path), Some(413));
    assert_eq!(good.send(serving.address, "/webhooks/svn"), Some(404));
    let mut elsewhere = good.clone();
    let body = String::from_utf8(elsewhere.body).expect("text");
    elsewhere.body = body.replace("\"name\": \"hooks\"", "\"name\": \"other\"").into_bytes();
    elsewhere.sign(SECRET);
    assert_eq!(elsewhere.send(serving.address, path), Some(403));
    assert_eq!(slow_loris(serving.address), 0, "a head that never ends");
    assert_eq!(serving.count("SELECT count(*) FROM delivery"), 0);
}

/// Sends a head that never ends, and waits until nobody listens any more; what came back.
fn slow_loris(address: std::net::SocketAddr) -> usize {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    stream.write_all(b"POST /webhooks/gitea HTTP/1.1\r\nHost: x\r\nX-Slow: ").expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it is closed, and not by us");
    answer.len()
}

#[test]
fn row_9_lost_webhooks_are_found_by_looking() {
    let Some(scene) = scene() else { return };
    let mut issues = vec![scene.issue];
    for _ in 0..2 {
        issues.push(scene.forge.add_issue("Another", "Too.", &["bot-bottle:worker"], &["bot1"]));
    }
    scene.person.script(&format!("{COMMIT}{DONE}"));
    let serving = Serving::start(scene, "sweep_secs = 2\n");
    serving.label();
    serving.wait_for_all(&issues);
    assert_eq!(serving.pulls(), issues.len());
}

/// Row 10: the forge misbehaves when the pull request is opened.
#[track_caller]
fn survives(mishap: &Mishap, count: usize) {
    let Some(scene) = scene() else { return };
    scene.person.script(&format!("{COMMIT}{DONE}"));
    scene.forge.fail_next_on("POST", count, mishap);
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    serving.wait("frozen");
    assert_eq!(serving.pulls(), 1, "{mishap:?}");
    check_house(&serving, &format!("{mishap:?}"));
}

#[test]
fn row_10_a_forge_that_fails() {
    survives(&Mishap::status(500, "oops"), 3);
}

#[test]
fn row_10_a_forge_that_wants_fewer_requests() {
    let headers = vec![("Retry-After".to_owned(), "2".to_owned())];
    survives(&Mishap::Status { code: 429, headers, body: "{}".to_owned() }, 2);
}

#[test]
fn row_10_a_write_that_was_done_and_not_answered() {
    survives(&Mishap::DropAfterWrite, 1);
}

#[test]
fn row_10_a_write_that_was_done_and_answered_wrongly() {
    survives(&Mishap::StatusAfterWrite(502), 1);
}

#[test]
fn row_10_an_answer_that_is_no_json() {
    let body = "<html>maintenance</html>".to_owned();
    survives(&Mishap::Status { code: 200, headers: Vec::new(), body }, 1);
}

#[test]
fn row_11_a_forge_that_is_down_for_long_is_waited_for() {
    let Some(scene) = scene() else { return };
    scene.person.script(&format!("[[step]]\nsleep = 2\n{COMMIT}{DONE}"));
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    wait_until_it_works(&serving);
    serving.scene.forge.fail_next(12, &Mishap::DropBefore);
    serving.wait("waiting");
    assert_eq!(serving.pulls(), 0);
    serving.wait("frozen");
    assert_eq!(serving.pulls(), 1);
    check_house(&serving, "after the forge came back");
}

#[test]
fn row_12_a_branch_that_origin_refuses_needs_a_person_and_keeps_the_work() {
    use std::os::unix::fs::PermissionsExt;
    let Some(scene) = scene() else { return };
    let hook = scene.person.fork.origin.dir().join("hooks/pre-receive");
    std::fs::create_dir_all(hook.parent().expect("a folder")).expect("a folder");
    std::fs::write(&hook, "#!/bin/sh\necho protected >&2\nexit 1\n").expect("written");
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).expect("a program");
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    let reason = serving.wait("needs-attention");
    assert!(reason.contains("rejected"), "{reason}");
    assert_eq!(serving.pulls(), 0);
    let document = serving.scene.provenance();
    assert_eq!(document["commits"]["new"].as_array().map(Vec::len), Some(1), "{document:#}");
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
    scene.person.script(&format!("[[step]]\nrun = \"true\"\n[[step]]\nsleep = 5\n{COMMIT}{DONE}"));
    let mut serving = Serving::start(scene, &format!("{SELDOM}watchdog_secs = 600\n"));
    serving.label();
    wait_until_it_works(&serving);
    serving.restart_with_clock(jump);
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

#[test]
fn row_22_a_torn_exit_record_is_the_machines_failure() {
    let Some(scene) = scene() else { return };
    scene.person.script("[[step]]\nrun = \"true\"\n[[step]]\nsleep = 600\n");
    let mut serving = Serving::start(scene, SELDOM);
    serving.label();
    wait_until_it_works(&serving);
    serving.kill();
    let shim = shim_of(&serving);
    serving.signal("-KILL", &shim);
    wait_for("the shim's end", || (!Path::new("/proc").join(&shim).exists()).then_some(()));
    let exit = serving.scene.person.last_run(SLUG).join("boxes/agent/exit.json");
    std::fs::write(&exit, "{\"ended\": {\"kind\": \"exi").expect("torn");
    serving.scene.person.script(&work());
    serving.restart();
    serving.wait("frozen");
    assert_eq!(serving.pulls(), 1);
}

#[test]
fn row_23_killed_while_it_destroys() {
    let Some(scene) = scene() else { return };
    let mut serving = Serving::start(scene, SELDOM);
    serving.label();
    serving.wait("frozen");
    let pull = serving.scene.forge.pulls()[0].number;
    serving.scene.forge.merge_pull(pull);
    serving.restart_to_die_at("destroying");
    serving.wait_for_death();
    serving.restart();
    serving.wait("destroyed");
    assert!(!serving.scene.person.bottle(SLUG).join("workspace").exists());
    check(&serving, "after the end");
}

#[test]
fn row_23_killed_while_it_rehydrates() {
    let Some(scene) = scene() else { return };
    let mut serving = Serving::start(scene, SELDOM);
    serving.label();
    serving.wait("frozen");
    let pull = serving.scene.forge.pulls()[0].number;
    serving.scene.person.script(&format!("{COMMIT}{DONE}"));
    serving.scene.forge.add_comment(Room::Pull, pull, "alice", "More, please.");
    serving.restart_to_die_at("pinned");
    serving.wait_for_death();
    serving.restart();
    wait_for("the second run", || {
        let runs = runs(&serving.scene.person.bottle(SLUG)).len();
        (runs == 2 && serving.work().expect("work").0 == "frozen").then_some(())
    });
    check(&serving, "after the second run");
}

#[test]
fn row_25_a_drain_hands_over_what_runs() {
    let Some(scene) = scene() else { return };
    scene.person.script(&format!("[[step]]\nrun = \"true\"\n[[step]]\nsleep = 6\n{COMMIT}{DONE}"));
    let mut serving = Serving::start(scene, SELDOM);
    serving.label();
    wait_until_it_works(&serving);
    assert_eq!(serving.stop(), Some(0), "it ends in good order");
    let shim = shim_of(&serving);
    assert!(Path::new("/proc").join(shim).exists(), "nothing was killed before its time");
    serving.restart();
    serving.wait("frozen");
    assert_eq!(serving.pulls(), 1);
    assert_eq!(runs(&serving.scene.person.bottle(SLUG)).len(), 1);
}

#[test]
fn row_26_a_database_of_an_older_version_is_brought_up_to_date_in_the_middle_of_a_run() {
    let Some(scene) = scene() else { return };
    let mut command = scene.start_command(&work());
    let output = scene.person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", "launched"));
    assert_eq!(output.signal, Some(9), "{}", output.snapshot());
    let home = scene.person.home();
    let database = rusqlite::Connection::open(home.join("bot-bottle.db")).expect("a database");
    database
        .execute_batch(
            "DROP TABLE delivery; DROP TABLE work; DROP TABLE work_event; PRAGMA user_version = 1;",
        )
        .expect("as it was before");
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

/// Row 13: the disk that holds everything is full for a while. Nothing is acknowledged then, nothing that was is lost, and
/// it goes on by itself.
#[test]
fn row_13_a_full_disk_refuses_what_it_cannot_keep_and_recovers() {
    let Some(scene) = scene() else { return };
    let quiet = scene.forge.add_issue("Quiet", "Nobody's.", &[], &[]);
    let Some(serving) = Serving::start_on_small_disk(scene, "sweep_secs = 3600\n") else { return };
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
    std::fs::remove_file(&ballast).expect("room again");
    wait_for("it to go on", || (send() == Some(202)).then_some(()));
    // SQLite follows every link of a path, so it is given copies of what only the orchestrator sees.
    let copy = serving.scene.person.hermetic.work();
    let count = |sql: &str| {
        for name in ["bot-bottle.db", "bot-bottle.db-wal"] {
            let inside = serving.seen_inside(&serving.scene.person.home().join(name));
            std::fs::copy(inside, copy.join(name)).expect("a copy");
        }
        let database = rusqlite::Connection::open(copy.join("bot-bottle.db")).expect("a database");
        database.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a number")
    };
    assert_eq!(count("SELECT count(*) FROM delivery"), acknowledged + 1, "none is lost");
    wait_for("the inbox to be empty", || {
        (count("SELECT count(*) FROM delivery WHERE handled_at IS NULL") == 0).then_some(())
    });
}
