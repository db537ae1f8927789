//! Projects, workstreams and runs of version 0.1 still open: they are listed, shown and finished.

use testkit::hermetic::Hermetic;
use testkit::part::{Part, require};
use testkit::repo::Repo;

use crate::play::{APPROVE, GOOD};
use crate::support::Person;

/// A workstream with one accepted micro-commit, and one whose run was killed before its tests.
fn person() -> Option<Person> {
    require(Part::Bwrap)?;
    let hermetic = Hermetic::from_version("0.1", "wf");
    let repo = Repo::open(hermetic.work().join("app"));
    Some(Person { hermetic, repo })
}

#[test]
fn workstreams_are_listed_and_shown() {
    let Some(person) = person() else { return };
    let listed = person.ok(&["list"]);
    assert!(listed.contains("tf") && listed.contains("second"), "{listed}");
    let shown = person.ok(&["status", "tf"]);
    assert!(shown.contains("COMMIT-TF-002"), "{shown}");
    let document = person.json(&["status", "tf"]);
    assert_eq!(document["last_run"]["microcommit"], "COMMIT-TF-001", "{document:#}");
}

#[test]
fn a_run_that_was_killed_is_finished() {
    let Some(person) = person() else { return };
    let output = person.wf(&["run", "second"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.meta("second", "STATUS"), "uat:pending", "{}", output.snapshot());
    assert_eq!(person.meta("second", "LAST_COMMIT_SHA"), person.worktree("second").head());
    for run in person.runs() {
        assert!(run.join("result.json").is_file(), "{}", run.display());
    }
}

#[test]
fn a_workstream_goes_on_with_its_next_micro_commit() {
    let Some(person) = person() else { return };
    person.cast(&GOOD.replace("TF-001", "TF-002"), APPROVE);
    let output = person.wf(&["run", "tf", "--once"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let plan = person.workstream_dir("tf").join("plan.md");
    let plan = std::fs::read_to_string(plan).expect("a plan");
    assert_eq!(plan.matches("Done: [x]").count(), 2, "{plan}");
}
