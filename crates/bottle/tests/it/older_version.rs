//! Bottles, records and the database of version 0.1 still open: they are listed, shown and finished.

use testkit::fake_forge::FakeGitea;
use testkit::hermetic::Hermetic;
use testkit::part::{Part, require};
use testkit::repo::Fork;

use crate::support::{COMMIT, DONE, Person, SLUG, Scene};

/// A frozen bottle without a forge, and the bottle of an issue whose run was killed after its verdict.
fn person() -> Option<Person> {
    require(Part::Bwrap)?;
    let hermetic = Hermetic::from_version("0.1", "bottle");
    let fork = Fork::open(&hermetic);
    Some(Person { hermetic, fork })
}

#[test]
fn bottles_and_runs_are_listed_and_shown() {
    let Some(person) = person() else { return };
    let rows = person.json(&["list"]);
    let mut slugs: Vec<&str> =
        rows.as_array().expect("a list").iter().filter_map(|row| row["slug"].as_str()).collect();
    slugs.sort_unstable();
    assert_eq!(slugs, ["worker", SLUG], "{rows:#}");
    let document = person.provenance("worker");
    assert_eq!(document["complete"], true, "{document:#}");
    assert_eq!(document["verdict"]["kind"], "publish", "{document:#}");
    let states = person.json(&["orchestrate", "status"]);
    assert_eq!(states[0]["slug"], SLUG, "{states:#}");
}

#[test]
fn a_frozen_bottle_is_resumed() {
    let Some(person) = person() else { return };
    let output = person.resume("worker", COMMIT);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let document = person.provenance("worker");
    assert_eq!(document["complete"], true, "{document:#}");
}

#[test]
fn a_run_that_was_killed_is_finished_and_published() {
    let Some(person) = person() else { return };
    let forge = FakeGitea::start();
    forge.add_member("bot-bottle", "bot1");
    forge.add_member("bot-bottle", "alice");
    let issue = forge.add_issue("Do it", "The task.", &["bot-bottle:worker"], &["bot1"]);
    let scene = Scene { person, forge, issue };
    let output = scene.resume(DONE);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(scene.forge.pulls().len(), 1, "{}", output.snapshot());
}
