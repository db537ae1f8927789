//! `orchestrate`: start, resume and status on behalf of a forge, with right and wrong variables.

use super::transcript;
use crate::support::{COMMIT, DONE, Person, SLUG, Scene};

const START: [&str; 8] =
    ["orchestrate", "start", "--agent", "worker", "--prompt", "Do it.", "--backend", "bwrap"];

/// Output with the forge's address struck out.
fn shown(scene: &Scene, output: &testkit::Output) -> String {
    output.snapshot().replace(&scene.forge.url(), "[FORGE]")
}

/// Output of a start with one variable changed; an empty value takes it away.
fn start_with(variable: &str, value: &str) -> Option<String> {
    let scene = Scene::new()?;
    scene.person.script(COMMIT);
    let mut command = scene.command(&START);
    match value {
        "" => command.env_remove(variable),
        value => command.env(variable, value),
    };
    Some(shown(&scene, &scene.person.hermetic.run(&mut command)))
}

/// The same for several changes, each under its name.
fn starts_with(changes: &[(&str, &str)]) -> Option<String> {
    let texts: Option<Vec<String>> = changes
        .iter()
        .map(|(variable, value)| {
            Some(format!("{variable}={value}\n{}", start_with(variable, value)?))
        })
        .collect();
    Some(texts?.join("\n"))
}

#[test]
fn no_variables_at_all() {
    let Some(person) = Person::new() else { return };
    let lines: [&[&str]; 3] = [
        &START,
        &["orchestrate", "resume", "--slug", "ghost", "--prompt", "x"],
        &["orchestrate", "status"],
    ];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

#[test]
fn variables_that_are_missing() {
    let names = [
        ("FORGE_GITEA_API", ""),
        ("FORGE_OWNER", ""),
        ("FORGE_REPO", ""),
        ("FORGE_ISSUE_NUMBER", ""),
        ("FORGE_TOKEN", ""),
    ];
    let Some(shown) = starts_with(&names) else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn variables_that_cannot_be() {
    let names = [
        ("FORGE_GITEA_API", "ftp://h/api/v1"),
        ("FORGE_GITEA_API", "https://u:p@h/api/v1"),
        ("FORGE_OWNER", "../x"),
        ("FORGE_REPO", "a b"),
        ("FORGE_ISSUE_NUMBER", "zero"),
        ("FORGE_PR_NUMBER", "0"),
        ("FORGE_KIND", "svn"),
        ("FORGE_WATCHDOG_TIMEOUT", "soon"),
    ];
    let Some(shown) = starts_with(&names) else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn a_token_that_the_forge_refuses() {
    let Some(shown) = start_with("FORGE_TOKEN", "wrong") else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn an_issue_that_the_forge_does_not_have() {
    let Some(shown) = start_with("FORGE_ISSUE_NUMBER", "99") else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn an_organisation_without_members() {
    let Some(shown) = start_with("FORGE_ORG", "strangers") else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn an_agent_that_the_issue_does_not_name() {
    let Some(scene) = Scene::new() else { return };
    scene.person.agent("other", "");
    let args = ["orchestrate", "start", "--agent", "other", "--prompt", "x", "--backend", "bwrap"];
    let output = scene.person.hermetic.run(&mut scene.command(&args));
    insta::assert_snapshot!(shown(&scene, &output), @"");
}

#[test]
fn an_issue_becomes_a_pull_request() {
    let Some(scene) = Scene::new() else { return };
    let output = scene.start(&format!("{COMMIT}{DONE}"));
    insta::assert_snapshot!(shown(&scene, &output), @"");
}

#[test]
fn the_pull_request_of_an_issue() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let pulls = scene.forge.pulls();
    let pull = pulls.first().expect("a pull request");
    let text = format!("{}\n\n{}", pull.title, pull.body);
    insta::assert_snapshot!(scene.person.hermetic.redact(&text), @"");
}

#[test]
fn the_operations_of_a_forge_run() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let text = scene.sentences().join("\n");
    insta::assert_snapshot!(scene.person.hermetic.redact(&text), @"");
}

#[test]
fn the_status_after_a_run() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let lines: [&[&str]; 2] = [&["orchestrate", "status"], &["orchestrate", "status", "--json"]];
    let text = transcript(&scene.person, &lines);
    insta::assert_snapshot!(text.replace(&scene.forge.url(), "[FORGE]"), @"");
}

#[test]
fn a_bottle_of_an_issue_is_resumed() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let output = scene.resume(&format!("{COMMIT}{DONE}"));
    insta::assert_snapshot!(shown(&scene, &output), @"");
}

#[test]
fn a_bottle_is_not_resumed_for_another_issue() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let args = ["orchestrate", "resume", "--slug", SLUG, "--prompt", "x"];
    let mut command = scene.command(&args);
    let output = scene.person.hermetic.run(command.env("FORGE_ISSUE_NUMBER", "99"));
    insta::assert_snapshot!(shown(&scene, &output), @"");
}

#[test]
fn an_agent_that_is_blocked() {
    let Some(scene) = Scene::new() else { return };
    let blocked = "[[step]]\nrun = [\"forge\", \"done\", \"blocked\", \"which flow is meant?\"]\n";
    let output = scene.start(&format!("{COMMIT}{blocked}"));
    insta::assert_snapshot!(shown(&scene, &output), @"");
}

#[test]
fn an_agent_that_does_not_report() {
    let Some(scene) = Scene::new() else { return };
    let output = scene.start(COMMIT);
    insta::assert_snapshot!(shown(&scene, &output), @"");
}
