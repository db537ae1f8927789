//! The fault matrix: whatever is killed, lost, doubled or broken, what was acknowledged is there afterwards, each effect is
//! there once, nothing runs that nobody holds, and every log's chain holds. `CHAOS_ROUNDS` makes the random part longer.

mod forge;
mod house;
mod series;

use std::path::Path;
use std::time::Duration;

use testkit::fake_forge::Room;
use testkit::wait::wait_for;

use crate::serving::Serving;
use crate::support::{COMMIT, DONE, FIRST_STEP_DONE, SLUG, Scene};

/// One comment, one commit, one word.
fn work() -> String {
    format!("[[step]]\nrun = [\"forge\", \"comment\", \"1\", \"I have begun.\"]\n{COMMIT}{DONE}")
}

pub(crate) const SELDOM: &str = "sweep_secs = 3600\n";

/// A step at which an agent waits until [`open_gate`].
pub(crate) const GATE: &str =
    "[[step]]\nrun = \"until [ -e /harness-state/go ]; do sleep 0.05; done\"\n";

pub(crate) fn open_gate(serving: &Serving) {
    let bottle = serving.scene.person.bottle(SLUG);
    std::fs::write(bottle.join("harness-state/go"), "").expect("the gate");
}

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
    row_1_killed_after_the_run_was_created at "created",
    row_1_killed_after_the_commits_were_pinned at "pinned",
    row_1_killed_after_the_workspace_was_made at "prepared",
    row_1_killed_after_the_sidecar_was_started at "served",
    row_1_killed_after_the_box_was_launched at "launched",
    row_1_killed_after_the_box_ended at "ended",
    row_1_killed_after_the_import at "imported",
    row_1_killed_after_the_verdict at "judged",
    row_1_killed_after_the_push at "pushed",
    row_1_killed_after_the_pull_request_was_opened at "opened",
    row_1_killed_after_publishing at "published",
    row_1_killed_after_it_was_frozen at "recorded",
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
pub(crate) fn shim_of(serving: &Serving) -> String {
    let run = serving.scene.person.last_run(SLUG);
    let text = std::fs::read_to_string(run.join("boxes/agent/shim.json")).expect("a shim");
    let record: serde_json::Value = serde_json::from_str(&text).expect("a record");
    record["process"]["pid"].to_string()
}

pub(crate) fn wait_until_it_works(serving: &Serving) {
    wait_for("the agent", || serving.scene.log().contains(FIRST_STEP_DONE).then_some(()));
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
    scene.person.script(&format!("[[step]]\nrun = \"true\"\n{GATE}"));
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    wait_until_it_works(&serving);
    let ready = serving.scene.person.last_run(SLUG).join("sidecar/ready.json");
    let text = std::fs::read_to_string(ready).expect("a sidecar");
    let process: serde_json::Value = serde_json::from_str(&text).expect("a process");
    serving.signal("-KILL", &process["pid"].to_string());
    open_gate(&serving);
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
    scene.person.script(&format!("[[step]]\nrun = \"true\"\n{GATE}{COMMIT}{DONE}"));
    let mut serving = Serving::start(scene, SELDOM);
    serving.label();
    wait_until_it_works(&serving);
    assert_eq!(serving.stop(), Some(0), "it ends in good order");
    let shim = shim_of(&serving);
    assert!(Path::new("/proc").join(shim).exists(), "nothing was killed before its time");
    serving.restart();
    open_gate(&serving);
    serving.wait("frozen");
    assert_eq!(serving.pulls(), 1);
    assert_eq!(runs(&serving.scene.person.bottle(SLUG)).len(), 1);
}
