//! `provenance show` and `provenance verify`: for people and as documents, for runs that hold and runs that do not.

use super::transcript;
use crate::support::{COMMIT, DONE, Person, SLUG, Scene};

/// A person with one frozen bottle, `plain`.
fn with_run() -> Option<Person> {
    let person = Person::new()?;
    let output = person.start(COMMIT, &["--label", "plain"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    Some(person)
}

/// Takes out what is measured: milliseconds, bytes, versions.
fn without_measures(text: &str) -> String {
    let measured = ["_ms\":", "_bytes\":", "\"version\": \"", "bytes_up\":", "bytes_down\":"];
    let line = |line: &str| match measured.iter().find_map(|name| line.find(name).zip(Some(name))) {
        Some((at, name)) => format!("{}{name} …", &line[..at]),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

/// These keys of the document of the newest run.
fn part(person: &Person, slug: &str, keys: &[&str]) -> String {
    let document = person.provenance(slug);
    let chosen: serde_json::Map<_, _> =
        keys.iter().map(|key| ((*key).to_owned(), document[*key].clone())).collect();
    let text = serde_json::to_string_pretty(&chosen).expect("it renders");
    without_measures(&person.hermetic.redact(&text))
}

#[test]
fn a_run_for_people() {
    let Some(person) = with_run() else { return };
    insta::assert_snapshot!(transcript(&person, &[&["provenance", "show", "plain"]]), @"");
}

#[test]
fn the_keys_of_the_document() {
    let Some(person) = with_run() else { return };
    let document = person.provenance("plain");
    let keys: Vec<&String> = document.as_object().expect("an object").keys().collect();
    insta::assert_snapshot!(format!("{keys:#?}"), @"");
}

#[test]
fn who_ran_and_how_it_ended() {
    let Some(person) = with_run() else { return };
    let keys = ["slug", "agent", "provider", "bottles", "backend", "parent", "forge", "exit"];
    insta::assert_snapshot!(part(&person, "plain", &keys), @"");
}

#[test]
fn what_came_out() {
    let Some(person) = with_run() else { return };
    let keys = ["verdict", "done", "commits", "publication", "watchdog_fired", "complete"];
    insta::assert_snapshot!(part(&person, "plain", &keys), @"");
}

#[test]
fn what_was_scanned() {
    let Some(person) = with_run() else { return };
    insta::assert_snapshot!(part(&person, "plain", &["gitleaks", "scans"]), @"");
}

#[test]
fn a_forge_run_for_people() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let shown = transcript(&scene.person, &[&["provenance", "show", SLUG]]);
    insta::assert_snapshot!(shown.replace(&scene.forge.url(), "[FORGE]"), @"");
}

#[test]
fn what_a_forge_run_published() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let keys = ["forge", "verdict", "done", "publication", "sidecar", "complete"];
    let shown = part(&scene.person, SLUG, &keys);
    insta::assert_snapshot!(shown.replace(&scene.forge.url(), "[FORGE]"), @"");
}

#[test]
fn statements_that_hold() {
    let Some(person) = with_run() else { return };
    let lines: [&[&str]; 2] =
        [&["provenance", "verify", "plain"], &["provenance", "verify", "plain", "--json"]];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

/// Output of `provenance verify` after `change` was made to the run directory.
fn after(change: impl FnOnce(&std::path::Path)) -> Option<String> {
    let person = with_run()?;
    change(&person.last_run("plain"));
    Some(transcript(&person, &[&["provenance", "verify", "plain"]]))
}

/// Writes over a record, whatever its mode says.
fn overwrite(path: &std::path::Path, text: &str) {
    std::fs::remove_file(path).expect("removed");
    std::fs::write(path, text).expect("written");
}

#[test]
fn statements_that_are_gone() {
    let shown = after(|run| std::fs::remove_file(run.join("provenance.json")).expect("removed"));
    let Some(shown) = shown else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn statements_that_are_not_json() {
    let Some(shown) = after(|run| overwrite(&run.join("provenance.json"), "{")) else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn an_operation_log_that_was_emptied() {
    let Some(shown) = after(|run| overwrite(&run.join("operations.jsonl"), "")) else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn a_log_that_was_changed() {
    let Some(shown) = after(|run| overwrite(&run.join("boxes/agent/stdout.log"), "x")) else {
        return;
    };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn a_run_directory_that_is_gone() {
    let Some(shown) = after(|run| std::fs::remove_dir_all(run).expect("removed")) else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn a_key_that_did_not_sign() {
    let Some(person) = with_run() else { return };
    let other = person.hermetic.root().join("other.pem");
    std::fs::write(&other, "no key\n").expect("written");
    let word = other.display().to_string();
    let lines: [&[&str]; 1] = [&["provenance", "verify", "plain", "--key", &word]];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}
