//! A bottle from its start to its end, in each state: what every command says.

use super::transcript;
use crate::support::{COMMIT, Person};

/// A person with one frozen bottle, `plain`.
fn with_frozen() -> Option<Person> {
    let person = Person::new()?;
    let output = person.start(COMMIT, &["--label", "plain"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    Some(person)
}

#[test]
fn a_frozen_bottle_in_the_list() {
    let Some(person) = with_frozen() else { return };
    insta::assert_snapshot!(transcript(&person, &[&["list"], &["list", "--json"]]), @"");
}

#[test]
fn a_frozen_bottle_has_nothing_to_end() {
    let Some(person) = with_frozen() else { return };
    let lines: [&[&str]; 3] =
        [&["freeze", "plain"], &["stop", "plain"], &["freeze", "plain", "--json"]];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

#[test]
fn the_log_of_a_frozen_bottle() {
    let Some(person) = with_frozen() else { return };
    insta::assert_snapshot!(transcript(&person, &[&["logs", "plain"]]), @"");
}

#[test]
fn commands_in_a_frozen_bottle() {
    let Some(person) = with_frozen() else { return };
    let lines: [&[&str]; 4] = [
        &["exec", "plain", "cat", "work.txt"],
        &["exec", "plain", "sh", "-c", "echo to-err >&2; exit 5"],
        &["exec", "plain", "git", "log", "--format=%s by %an"],
        &["exec", "plain", "no-such-program"],
    ];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

#[test]
fn a_bottle_is_resumed() {
    let Some(person) = with_frozen() else { return };
    insta::assert_snapshot!(person.resume("plain", COMMIT).snapshot(), @"");
}

#[test]
fn a_bottle_is_resumed_by_an_unknown_backend() {
    let Some(person) = with_frozen() else { return };
    let args = ["resume", "plain", "--headless", "--prompt", "x", "--backend", "lxc"];
    insta::assert_snapshot!(person.run(&args).snapshot(), @"");
}

#[test]
fn a_bottle_whose_agent_has_lost_its_manifest() {
    let Some(person) = with_frozen() else { return };
    std::fs::remove_file(person.home().join("agents/worker.toml")).expect("removed");
    let lines: [&[&str]; 2] =
        [&["resume", "plain", "--headless", "--prompt", "x"], &["exec", "plain", "true"]];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

#[test]
fn work_that_is_not_published_is_not_destroyed_by_accident() {
    let Some(person) = with_frozen() else { return };
    let lines: [&[&str]; 3] =
        [&["destroy", "plain"], &["destroy", "plain", "--force"], &["destroy", "plain"]];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

#[test]
fn a_destroyed_bottle() {
    let Some(person) = with_frozen() else { return };
    assert_eq!(person.run(&["destroy", "plain", "--force"]).status, Some(0));
    let lines: [&[&str]; 6] = [
        &["list"],
        &["freeze", "plain"],
        &["stop", "plain"],
        &["resume", "plain", "--headless", "--prompt", "x"],
        &["exec", "plain", "true"],
        &["logs", "plain"],
    ];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

#[test]
fn a_record_that_cannot_be_read() {
    let Some(person) = Person::new() else { return };
    std::fs::create_dir_all(person.bottle("broken")).expect("a folder");
    std::fs::write(person.bottle("broken").join("record.json"), "{").expect("written");
    let lines: [&[&str]; 5] = [
        &["list"],
        &["list", "--json"],
        &["freeze", "broken"],
        &["logs", "broken"],
        &["destroy", "broken"],
    ];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

#[test]
fn a_second_bottle_of_the_same_name() {
    let Some(person) = with_frozen() else { return };
    let output = person.start("[[step]]\nprint = \"hello\\n\"\n", &["--label", "plain"]);
    insta::assert_snapshot!(format!("{}\n{}", output.snapshot(), transcript(&person, &[&["list"]])), @"");
}
