//! Commands of members in comments, in every state of the work: carried out, or answered.

use host::lock::{FileLock, LockKind};
use testkit::fake_forge::Room;
use testkit::wait::wait_for;

use crate::chaos::{GATE, SELDOM, open_gate, shim_of, wait_until_it_works};
use crate::operation::{MORE, answers, comment, statuses, wait_for_status};
use crate::serving::Serving;
use crate::support::{COMMIT, DONE, SLUG, Scene};

fn serving(script: &str) -> Option<Serving> {
    let scene = Scene::new()?;
    scene.person.script(script);
    Some(Serving::start(scene, SELDOM))
}

fn claims(serving: &Serving) -> i64 {
    serving.count("SELECT count(*) FROM work_event WHERE state = 'claimed'")
}

/// Looks at the issue once more, as after any webhook.
fn look(serving: &Serving) {
    assert_eq!(serving.label(), Some(202));
    serving.wait_handled();
}

/// Waits until nothing runs any more after this number of claims.
fn wait_for_failure(serving: &Serving, count: i64) -> String {
    wait_for("the failure", || {
        let (state, reason) = serving.work()?;
        (claims(serving) == count && state == "needs-attention").then_some(reason)
    })
}

#[test]
fn what_failed_before_it_had_a_bottle_is_resumed_by_comments_and_commands() {
    let Some(scene) = Scene::new() else { return };
    scene.person.script(&format!("{COMMIT}{DONE}"));
    scene.person.agent("worker", "bottle = \"missing\"\n");
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    let reason = wait_for_failure(&serving, 1);
    assert!(reason.contains("missing"), "{reason}");
    comment(&serving, "alice", "/status");
    let said = answers(&serving);
    assert!(said.len() == 1 && said[0].contains("**Needs you**"), "{said:?}");
    comment(&serving, "carol", "Try again.");
    comment(&serving, "carol", "/retry");
    assert_eq!(claims(&serving), 1, "outsiders start nothing");
    comment(&serving, "alice", "Try again.");
    wait_for_failure(&serving, 2);
    look(&serving);
    assert_eq!(claims(&serving), 2, "one try for one comment");
    serving.scene.person.agent("worker", "");
    comment(&serving, "alice", "/retry");
    let reason = serving.wait("frozen");
    assert!(reason.contains("up for review"), "{reason}");
    assert_eq!((claims(&serving), serving.pulls()), (3, 1));
}

#[test]
fn what_failed_before_it_had_a_bottle_starts_again_with_its_label() {
    let Some(scene) = Scene::new() else { return };
    scene.person.script(&format!("{COMMIT}{DONE}"));
    scene.person.agent("worker", "bottle = \"missing\"\n");
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    wait_for_failure(&serving, 1);
    let (forge, issue) = (&serving.scene.forge, serving.scene.issue);
    let labels = std::cell::RefCell::new(Vec::new());
    forge.change_issue(issue, |issue| labels.replace(std::mem::take(&mut issue.labels)).clear());
    look(&serving);
    look(&serving);
    serving.scene.person.agent("worker", "");
    forge.change_issue(issue, |issue| issue.labels = labels.take());
    serving.label();
    serving.wait("frozen");
}

#[test]
fn a_comment_starts_an_issue_whose_turn_cannot_come() {
    let Some(serving) = serving(&format!("{COMMIT}{DONE}")) else { return };
    let (forge, issue) = (&serving.scene.forge, serving.scene.issue);
    forge.change_issue(issue, |issue| "After #999".clone_into(&mut issue.body));
    serving.label();
    let reason = serving.wait("needs-attention");
    assert!(reason.contains("#999"), "{reason}");
    comment(&serving, "alice", "Never mind, begin.");
    serving.wait("frozen");
    assert_eq!(serving.pulls(), 1);
}

#[test]
fn an_issue_that_waits_is_stopped_and_started_all_the_same() {
    let Some(serving) = serving(&format!("{COMMIT}{DONE}")) else { return };
    let (forge, issue) = (&serving.scene.forge, serving.scene.issue);
    let first = forge.add_issue("First", "", &[], &[]);
    forge.change_issue(issue, |issue| issue.body = format!("After #{first}"));
    serving.label();
    serving.wait("waiting");
    comment(&serving, "alice", "/model another/one");
    assert!(answers(&serving).concat().contains("no model was chosen"), "{:?}", answers(&serving));
    comment(&serving, "alice", "/stop");
    assert_eq!(serving.wait("needs-attention"), "alice stopped it");
    look(&serving);
    assert_eq!(
        (serving.work().expect("work").0.as_str(), claims(&serving)),
        ("needs-attention", 0)
    );
    comment(&serving, "alice", "/retry");
    serving.wait("frozen");
}

/// Once for each comment, a resume that fails before its run exists is tried.
#[test]
fn a_resume_that_fails_before_its_run_is_not_repeated_by_itself() {
    let Some(serving) =
        serving("[[step]]\nrun = [\"forge\", \"done\", \"blocked\", \"SQLite or PostgreSQL?\"]\n")
    else {
        return;
    };
    serving.label();
    serving.wait("needs-attention");
    wait_for_status(&serving, "SQLite or PostgreSQL?");
    let manifest = serving.scene.person.home().join("agents/worker.toml");
    let away = manifest.with_extension("away");
    std::fs::rename(&manifest, &away).expect("moved");
    comment(&serving, "alice", "SQLite.");
    wait_for_failure(&serving, 2);
    for _ in 0..3 {
        look(&serving);
    }
    assert_eq!((claims(&serving), serving.runs()), (2, 1));
    // The question is answered, so it is not what a person is needed for.
    wait_for("the new reason", || {
        let status = statuses(&serving).concat();
        (status.contains("**Needs you**") && !status.contains("the agent asks")).then_some(())
    });
    assert!(!statuses(&serving).concat().contains("> SQLite"), "{:?}", statuses(&serving));
    std::fs::rename(&away, &manifest).expect("moved");
    serving.scene.person.script(&format!("{COMMIT}{DONE}"));
    comment(&serving, "alice", "Again, please.");
    serving.wait("frozen");
    assert_eq!((claims(&serving), serving.runs()), (3, 2));
}

#[test]
fn a_stop_outlasts_the_comments_before_it_and_says_who_and_how_to_go_on() {
    let Some(serving) = serving(&format!("{COMMIT}{GATE}{DONE}")) else { return };
    serving.label();
    wait_until_it_works(&serving);
    comment(&serving, "alice", "By the way, sort by age.");
    comment(&serving, "alice", "/stop");
    assert_eq!(serving.wait("needs-attention"), "alice stopped it");
    serving.wait_handled();
    for _ in 0..2 {
        look(&serving);
    }
    assert_eq!((serving.runs(), claims(&serving), serving.pulls()), (1, 1, 0));
    wait_for_status(&serving, "alice stopped it");
    assert!(statuses(&serving).concat().contains("so does `/retry`"), "{:?}", statuses(&serving));
    let document = serving.scene.provenance();
    assert_eq!(document["watchdog_fired"], false, "{document:#}");
    let shown = serving.scene.person.run(&["show", SLUG]);
    assert!(shown.stdout.contains("not finished: alice stopped it"), "{}", shown.snapshot());
    comment(&serving, "alice", "/stop");
    assert!(answers(&serving).concat().contains("Nothing runs"), "{:?}", answers(&serving));
    serving.scene.person.script(&format!("{MORE}{DONE}"));
    comment(&serving, "alice", "Go on.");
    serving.wait("frozen");
    assert_eq!((serving.runs(), serving.pulls()), (2, 1));
    assert!(serving.last_prompt().contains("sort by age"), "{}", serving.last_prompt());
}

#[test]
fn a_stop_ends_the_check_and_nothing_is_published() {
    let Some(scene) = Scene::new() else { return };
    scene.person.script(&format!("{COMMIT}{DONE}"));
    scene.person.agent("worker", "check = \"sleep 600\"\n");
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    wait_for("the check", || {
        let run = serving.scene.person.newest_run(SLUG)?;
        run.join("boxes/check/shim.json").exists().then_some(())
    });
    comment(&serving, "alice", "/stop");
    assert_eq!(serving.wait("needs-attention"), "alice stopped it");
    assert_eq!((serving.pulls(), serving.scene.published()), (0, None));
    serving.scene.person.agent("worker", "check = \"true\"\n");
    serving.scene.person.script(&format!("{MORE}{DONE}"));
    comment(&serving, "alice", "/retry");
    serving.wait("frozen");
    assert_eq!((serving.runs(), serving.pulls()), (2, 1));
}

#[test]
fn a_bottle_that_waits_for_something_is_stopped() {
    let Some(serving) = serving(&format!("{COMMIT}{DONE}")) else { return };
    serving.label();
    serving.wait("frozen");
    let path = serving.scene.person.bottle(SLUG).join("lock");
    let lock = FileLock::try_acquire(&path, LockKind::Exclusive { note: "a user" }).expect("free");
    comment(&serving, "alice", "More, please.");
    serving.wait("waiting");
    comment(&serving, "alice", "/stop");
    let reason = serving.wait("needs-attention");
    assert_eq!(reason, "alice stopped it");
    drop(lock);
    look(&serving);
    assert_eq!((serving.work().expect("work").0.as_str(), serving.runs()), ("needs-attention", 1));
}

#[test]
fn words_for_an_agent_at_work_are_answered_and_kept_for_its_next_run() {
    let Some(serving) = serving(&format!("{COMMIT}{GATE}{DONE}")) else { return };
    serving.label();
    wait_until_it_works(&serving);
    comment_unhandled(&serving, "/resume Sort by age.");
    wait_for("an answer", || answers(&serving).concat().contains("gets these words").then_some(()));
    comment_unhandled(&serving, "/retry");
    wait_for("an answer", || answers(&serving).concat().contains("at work already").then_some(()));
    open_gate(&serving);
    wait_for("the second run", || (serving.runs() == 2).then_some(()));
    serving.wait("frozen");
    assert!(serving.last_prompt().contains("Sort by age."), "{}", serving.last_prompt());
    look(&serving);
    assert_eq!((serving.runs(), answers(&serving).len()), (2, 2));
}

/// A comment of a member whose command stays in the inbox for a while.
fn comment_unhandled(serving: &Serving, text: &str) {
    let issue = serving.scene.issue;
    serving.scene.forge.add_comment(Room::Issue, issue, "alice", text);
    assert_eq!(serving.tell("issue_comment_created", Room::Issue, issue), Some(202));
}

#[test]
fn a_member_chooses_the_model_and_runs_the_agent_again() {
    let Some(serving) = serving(&format!("{COMMIT}{DONE}")) else { return };
    serving.label();
    serving.wait("frozen");
    serving.scene.person.script(&format!("{MORE}{DONE}"));
    comment(&serving, "alice", "/model another/one");
    assert_eq!(serving.runs(), 1, "a model alone starts nothing");
    comment(&serving, "alice", "/retry");
    wait_for("the second run", || (serving.runs() == 2).then_some(()));
    serving.wait("frozen");
    let run = serving.scene.person.last_run(SLUG).join("metadata.json");
    let text = std::fs::read_to_string(run).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&text).expect("a record");
    assert_eq!(record["manifest"]["model"], "another/one", "{record:#}");
    assert!(!serving.last_prompt().contains("People have answered"), "{}", serving.last_prompt());
}

/// What a machine cut off is done again with the same prompt, and counts once.
#[test]
fn a_wake_up_that_the_machine_cut_off_gets_its_log_again() {
    let Some(serving) = serving(&format!("{COMMIT}{DONE}")) else { return };
    serving.label();
    serving.wait("frozen");
    let (forge, branch) = (&serving.scene.forge, format!("bot-bottle/{SLUG}"));
    let head = serving.scene.published().expect("a branch").trim().to_owned();
    forge.set_branch(&branch, &head);
    forge.add_check(&head, "test", "failure", "assert 1 == 2\n");
    serving.scene.person.script("[[step]]\nrun = \"true\"\n[[step]]\nsleep = 600\n");
    look(&serving);
    wait_for("the second run", || (serving.runs() == 2).then_some(()));
    wait_until_it_works(&serving);
    serving.scene.person.script(DONE);
    serving.signal("-KILL", &shim_of(&serving));
    wait_for("the third run", || (serving.runs() == 3).then_some(()));
    assert!(serving.last_prompt().contains("assert 1 == 2"), "{}", serving.last_prompt());
    let path = serving.scene.person.bottle(SLUG).join("record.json");
    wait_for("one wake-up", || {
        let text = std::fs::read_to_string(&path).ok()?;
        let record: serde_json::Value = serde_json::from_str(&text).ok()?;
        (record["wakeups"].as_array().map(Vec::len) == Some(1)).then_some(())
    });
}

/// Killed at each moment after a stop, it stays stopped and nothing is published.
#[track_caller]
fn stopped_although_killed_at(moment: &str) {
    let Some(scene) = Scene::new() else { return };
    scene.person.script(&format!("{COMMIT}{GATE}{DONE}"));
    let mut serving = Serving::start_to_die_at(scene, moment, SELDOM);
    serving.label();
    wait_until_it_works(&serving);
    comment_unhandled(&serving, "By the way, sort by age.");
    comment_unhandled(&serving, "/stop");
    serving.wait_for_death();
    serving.restart();
    let reason = serving.wait("needs-attention");
    assert_eq!(reason, "alice stopped it", "after {moment}");
    serving.wait_handled();
    look(&serving);
    assert_eq!(
        (serving.runs(), claims(&serving), serving.pulls(), serving.scene.published()),
        (1, 1, 0, None),
        "after {moment}"
    );
}

macro_rules! stopped_and_killed {
    ($($name:ident at $moment:literal),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                stopped_although_killed_at($moment);
            }
        )*
    };
}

stopped_and_killed! {
    a_stop_outlasts_a_kill_after_the_box_ended at "ended",
    a_stop_outlasts_a_kill_after_the_import at "imported",
    a_stop_outlasts_a_kill_after_the_verdict at "judged",
    a_stop_outlasts_a_kill_before_publishing at "checked",
    a_stop_outlasts_a_kill_after_the_run_was_closed at "closed",
    a_stop_outlasts_a_kill_after_it_was_recorded at "recorded",
}
