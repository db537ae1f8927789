//! kill -9 of bot-bottle at every phase: whoever comes next finishes the run, and nothing is done twice.

use crate::support::{COMMIT, DONE, SLUG, Scene};

fn finishes_after(phase: &str) {
    let Some(scene) = Scene::new() else { return };
    let mut command = scene.start_command(&format!("{COMMIT}{DONE}"));
    let output = scene.person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", phase));
    assert_eq!(output.signal, Some(9), "not killed at {phase}: {}", output.snapshot());
    let first = scene.person.last_run(SLUG);
    let output = scene.resume(DONE);
    assert_eq!(output.status, Some(0), "after {phase}: {}\n{}", output.snapshot(), scene.log());
    assert!(output.stderr.contains("finishing"), "{}", output.stderr);
    assert_eq!(scene.forge.pulls().len(), 1, "after {phase}");
    let text = std::fs::read_to_string(first.join("operations.jsonl")).expect("a log");
    let pushed = |line: &&str| line.contains("\"push\"") && line.contains("\"done\"");
    assert_eq!(text.lines().filter(pushed).count(), 1, "{text}");
    let name = first.file_name().expect("a name").to_string_lossy().into_owned();
    let document = scene.person.provenance(&name);
    assert_eq!(document["complete"], true, "{document:#}");
    assert_eq!(scene.person.json(&["orchestrate", "status"])[0]["status"], "frozen");
}

#[test]
fn killed_after_the_commits_were_pinned() {
    finishes_after("pinned");
}

#[test]
fn killed_after_the_workspace_was_made() {
    finishes_after("prepared");
}

#[test]
fn killed_after_the_box_was_launched() {
    finishes_after("launched");
}

#[test]
fn killed_after_the_box_ended() {
    finishes_after("ended");
}

#[test]
fn killed_after_the_import() {
    finishes_after("imported");
}

#[test]
fn killed_after_the_verdict() {
    finishes_after("judged");
}

#[test]
fn killed_after_publishing() {
    finishes_after("published");
}

#[test]
fn killed_before_there_was_a_run_the_bottle_can_be_resumed() {
    let Some(scene) = Scene::new() else { return };
    let mut command = scene.start_command(DONE);
    let output = scene.person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", "begun"));
    assert_eq!(output.signal, Some(9), "{}", output.snapshot());
    let output = scene.resume(&format!("{COMMIT}{DONE}"));
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    assert_eq!(scene.forge.pulls().len(), 1);
}
