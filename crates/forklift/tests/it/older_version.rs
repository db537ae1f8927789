//! Run directories of version 0.1 still open: they are listed, shown, followed and finished.

use testkit::hermetic::Hermetic;
use testkit::part::{Part, require};
use testkit::repo::Fork;

use crate::support::{Person, field_of};

/// A closed run that was stuck, a closed run that was published, and one that was killed after its verdict.
fn person() -> Option<Person> {
    require(Part::Bwrap)?;
    let hermetic = Hermetic::from_version("0.1", "forklift");
    let fork = Fork::open(&hermetic);
    Some(Person { hermetic, fork })
}

#[test]
fn the_runs_are_listed_with_their_verdicts() {
    let Some(person) = person() else { return };
    let output = person.hermetic.run(&mut person.forklift(&["runs", "--json"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let rows: Vec<serde_json::Value> = serde_json::from_str(&output.stdout).expect("a list");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["run"].as_str()).collect();
    assert_eq!(names, ["fork_20261116_020519", "fork_20261116_020517", "fork_20261116_020516"]);
    for row in &rows {
        assert!(row.get("problem").is_none_or(serde_json::Value::is_null), "{row:#}");
    }
}

#[test]
fn closed_runs_are_shown() {
    let Some(person) = person() else { return };
    let stuck = person.hermetic.run(&mut person.forklift(&["show", "fork_20261116_020516"]));
    assert_eq!(stuck.status, Some(0), "{}", stuck.snapshot());
    assert!(stuck.stdout.contains("which auth flow?"), "{}", stuck.snapshot());
    let done = person.hermetic.run(&mut person.forklift(&["show", "fork_20261116_020517"]));
    assert_eq!(done.status, Some(0), "{}", done.snapshot());
    assert!(done.stdout.contains("forklift/fork_20261116_020517"), "{}", done.snapshot());
    let log = person.hermetic.run(&mut person.forklift(&["log", "fork_20261116_020517"]));
    assert_eq!(log.status, Some(0), "{}", log.snapshot());
    assert!(log.stdout.contains("git merge"), "{}", log.snapshot());
}

/// The branch that the published run left is at the commit of the newest run.
#[track_caller]
fn renewed_by_the_newest_run(person: &Person, before: &[String]) {
    assert_eq!(person.published(), before);
    let commit = field_of(&person.runs().pop().expect("a run"), "/publication/commit");
    assert_eq!(person.fork.origin.sha(&before[0]), commit);
}

#[test]
fn a_run_that_was_killed_is_finished() {
    let Some(person) = person() else { return };
    let before = person.published();
    let output = person.hermetic.run(&mut person.forklift(&["attach", "fork_20261116_020519"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    renewed_by_the_newest_run(&person, &before);
}

#[test]
fn a_stuck_run_is_resumed() {
    let Some(person) = person() else { return };
    let before = person.published();
    let path = person.hermetic.root().join("agent.toml");
    std::fs::write(&path, crate::support::MERGE).expect("written");
    let mut command = person.forklift(&["resume", "fork_20261116_020516", "--script"]);
    let output = person.hermetic.run(command.arg(path));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    renewed_by_the_newest_run(&person, &before);
}
