//! kill -9 of wf in every stage, then `wf run` again: no commit is lost, none is made twice, the status is right.

use std::path::Path;

use testkit::part::{Part, require};

use crate::play::{APPROVE, GOOD, person_with_one};
use crate::support::{Person, read, result};

/// An agent that takes its time.
fn slow() -> String {
    format!("[[step]]\nsleep = 1\n{GOOD}")
}

fn killed_at(person: &Person, point: &str) {
    let mut command = person.command(&["run", "tf"]);
    command.env("BOTTLEWORKS_FAILPOINT", point);
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.signal, Some(9), "not killed at {point}: {}", output.snapshot());
}

/// Whatever happened before, this is how it must look in the end.
#[track_caller]
fn is_done_once(person: &Person, point: &str) {
    let made: Vec<String> =
        person.subjects().into_iter().filter(|line| line.starts_with("COMMIT-TF-001:")).collect();
    assert_eq!(made.len(), 1, "{point}: {made:?}");
    assert!(read(&person.workstream_dir("tf").join("plan.md")).contains("Done: [x]"), "{point}");
    assert_eq!(person.meta("tf", "STATUS"), "uat:pending", "{point}");
    assert_eq!(person.meta("tf", "LAST_COMMIT_SHA"), person.worktree("tf").head(), "{point}");
    assert_eq!(person.worktree("tf").git(&["status", "--porcelain"]).trim(), "", "{point}");
    let uats =
        std::fs::read_dir(person.workstream_dir("tf").join("uat/pending")).expect("a folder");
    let uats = uats.flatten().filter(|it| it.path().extension().is_some_and(|kind| kind == "json"));
    assert_eq!(uats.count(), 1, "{point}");
    for run in person.runs() {
        assert!(!run.to_string_lossy().ends_with("_pending"), "{point}: {run:?}");
        assert!(result(&run)["status"].is_string(), "{point}");
        no_box_is_left(&run, point);
    }
}

#[track_caller]
fn no_box_is_left(run: &Path, point: &str) {
    let Ok(boxes) = std::fs::read_dir(run.join("boxes")) else { return };
    for place in boxes.flatten() {
        assert!(place.path().join("exit.json").is_file(), "{point}: {:?}", place.path());
    }
}

/// Dies at each of these moments and is run again, which must end with this status.
fn survives(points: &[&str], status: i32) {
    for point in points {
        let Some(person) = person_with_one() else { return };
        person.cast(&slow(), APPROVE);
        killed_at(&person, point);
        let output = person.wf(&["run", "tf"]);
        assert_eq!(output.status, Some(status), "after {point}: {}", output.snapshot());
        is_done_once(&person, point);
    }
}

#[test]
fn killed_before_the_agent_is_sent() {
    survives(&["wf-lock", "wf-load", "wf-select", "wf-clarification", "wf-implement"], 0);
}

#[test]
fn killed_while_the_agent_works_or_before_its_work_is_judged() {
    survives(&["wf-implement-box", "wf-answered"], 0);
}

#[test]
fn killed_around_the_move_of_the_branch() {
    survives(&["wf-judged", "wf-landed"], 0);
}

#[test]
fn killed_in_test_and_review() {
    survives(&["wf-test", "wf-test-box", "wf-review", "wf-review-box"], 0);
}

#[test]
fn killed_at_the_gates() {
    survives(&["wf-qa_gate", "wf-docs", "wf-update_state"], 0);
}

#[test]
fn killed_after_acceptance() {
    survives(
        &[
            "wf-accepted",
            "wf-plan-marked",
            "wf-uat-made",
            "wf-meta-written",
            "wf-refresh",
            "wf-result-written",
        ],
        8,
    );
}

#[test]
fn a_commit_that_was_taken_up_needs_no_agent() {
    let Some(person) = person_with_one() else { return };
    killed_at(&person, "wf-judged");
    assert!(!person.subjects()[0].starts_with("COMMIT-TF-001:"));
    person.cast("[[step]]\nexit = 9\n", APPROVE);
    person.run_once(0);
    is_done_once(&person, "wf-judged");
}

#[test]
fn a_run_of_the_same_second_is_not_taken_for_the_dead_one() {
    if require(Part::Faketime).is_none() {
        return;
    }
    let person = Person::with_plan("# Plan\n");
    let run_at_noon = |point: &str| {
        let mut command = person.hermetic.command("faketime");
        command.current_dir(person.repo.dir()).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command.args(["-f", "2026-01-01 12:00:00"]).arg(env!("CARGO_BIN_EXE_wf"));
        command.args(["run", "tf"]).env("BOTTLEWORKS_FAILPOINT", point);
        person.hermetic.run(&mut command)
    };
    // The journal still has the name that the directory had before it was renamed.
    run_at_noon("wf-refresh");
    assert_eq!(person.runs().len(), 1);
    let output = run_at_noon("");
    assert_eq!(output.status, Some(4), "{}", output.snapshot());
    assert!(!output.stdout.contains("could not"), "{}", output.snapshot());
    assert_eq!(person.runs().len(), 2);
    for run in person.runs() {
        assert!(result(&run)["status"].is_string(), "{run:?}");
    }
}

#[test]
fn a_run_that_died_before_it_had_its_lock_leaves_no_directory() {
    let person = Person::with_plan("# Plan\n");
    let runs = person.ops().join("runs");
    for (name, lock) in [
        ("20260101-120000_app_tf_pending", None),
        ("20260101-120001_app_tf_pending", Some("")),
        ("20260101-120002_app_other_pending", None),
        ("20260101-120003_app_tf_pending", Some("1 app.other\n")),
    ] {
        std::fs::create_dir_all(runs.join(name)).expect("a folder");
        if let Some(note) = lock {
            crate::support::write(&runs.join(name).join("run.lock"), note);
        }
    }
    person.wf(&["run", "tf"]);
    let left: Vec<String> = person
        .runs()
        .iter()
        .filter_map(|run| run.to_str()?.split_once("runs/20260101-").map(|it| it.1.to_owned()))
        .collect();
    // What is another workstream's stays.
    assert_eq!(left, ["120002_app_other_pending", "120003_app_tf_pending"]);
}
