//! Workstreams on other branches and on one another, closed ones opened again, and what commands show.

use crate::support::{ONE, ONE_DONE, Person};

#[test]
fn a_workstream_starts_from_a_branch_or_from_another_workstream() {
    let person = Person::with_plan(ONE);
    person.repo.branch("release");
    person.ok(&["new", "fix", "Fix", "--base", "release"]);
    assert_eq!(person.meta("fix", "BASE_BRANCH"), "release");
    person.worktree("tf").write("lower", "x").commit("COMMIT-TF-001: lower");
    let said = person.ok(&["new", "up", "Upper", "--base", "tf"]);
    assert!(said.contains("Base: feat/tf"), "{said}");
    assert_eq!(person.meta("up", "BASE_SHA"), person.worktree("tf").head());
    assert!(person.worktree("up").dir().join("lower").exists());
    person.refused(&["new", "no", "No", "--base", "nothing"], 2, &["'nothing' to start from"]);
}

#[test]
fn a_stacked_workstream_waits_for_the_lower_one_and_follows_it() {
    let person = Person::accepted();
    person.ok(&["new", "up", "Upper", "--base", "tf"]);
    person.plan("up", &ONE_DONE.replace("-TF-", "-UP-"));
    person.worktree("up").write("upper", "x").commit("COMMIT-UP-001: upper");
    person.wf(&["run", "up"]);
    person.ok(&["uat", "pass", "UAT-002"]);
    person.refused(&["merge", "up"], 8, &["up starts from tf", "wf merge tf"]);
    person.refused(&["delete", "tf", "--confirm"], 2, &["up starts from feat/tf"]);
    let said = person.ok(&["merge", "tf"]);
    assert!(said.contains("up is based on main now and contains it"), "{said}");
    assert_eq!(person.meta("up", "BASE_BRANCH"), "main");
    person.ok(&["update", "up"]);
    person.ok(&["merge", "up"]);
    assert!(person.repo.dir().join("upper").exists());
}

#[test]
fn a_closed_workstream_is_listed_and_opened_again() {
    let person = Person::accepted();
    person.ok(&["close", "tf"]);
    assert!(!person.ok(&["list"]).contains("tf"));
    assert!(person.ok(&["list", "--all"]).contains("closed"));
    assert_eq!(person.json(&["list", "--all"])[0]["meta"]["id"], "tf");
    person.refused(&["open", "no"], 2, &["wf list --all"]);
    // One that was killed is finished by the next, which succeeds.
    for (point, status) in [("open-moved", None), ("", Some(0))] {
        let mut command = person.command(&["open", "tf"]);
        let output = person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", point));
        assert_eq!(output.status, status, "{}", output.snapshot());
    }
    person.refused(&["open", "tf"], 2, &["tf is open"]);
    assert_eq!(person.meta("tf", "STATUS"), "merge-ready");
    assert_eq!(person.meta("tf", "CLOSED_AT"), "");
    assert_eq!(person.worktree("tf").git(&["branch", "--show-current"]), "feat/tf");
    crate::test_interrupted::nothing_is_left(&person, "opened");
    person.ok(&["merge", "tf"]);
    assert!(person.ok(&["list", "--all"]).contains("done"));
}

#[test]
fn the_default_workstream_is_shown_and_cleared() {
    let person = Person::with_plan(ONE);
    assert!(person.ok(&["use"]).contains("no current workstream"));
    person.ok(&["use", "tf"]);
    assert!(person.ok(&["use"]).contains("Current workstream of app: tf"));
    person.ok(&["use", "--clear"]);
    person.refused(&["status"], 2, &["which workstream?"]);
}

#[test]
fn the_diff_of_a_whole_workstream_is_shown() {
    let person = Person::accepted();
    person.worktree("tf").write("second", "y\n").commit("COMMIT-TF-001: y");
    let diff = person.ok(&["diff", "--branch", "-w", "tf"]);
    assert!(diff.contains("+++ b/feature") && diff.contains("+++ b/second"), "{diff}");
    // The last run was blocked and has no diff of its own.
    assert!(person.ok(&["diff", "-w", "tf"]).contains("+++ b/second"));
    person.refused(&["diff", "nothing"], 2, &["nothing"]);
}

#[test]
fn the_documentation_of_the_repository_is_shown_without_a_workstream() {
    let person = Person::new();
    person.repo.write("docs/a.md", "words\n");
    assert!(person.ok(&["docs", "status"]).contains("work/app/docs"));
}

#[test]
fn a_plan_is_changed_by_command() {
    let person = Person::accepted();
    let plan = || crate::support::read(&person.workstream_dir("tf").join("plan.md"));
    let said = person.ok(&["plan", "add", "Use it", "-w", "tf", "--acceptance", "it is used"]);
    assert!(said.contains("COMMIT-TF-002 added; tf is implement"), "{said}");
    person.ok(&["plan", "add", "Before it", "-w", "tf", "--before", "COMMIT-TF-002"]);
    person.ok(&["plan", "edit", "COMMIT-TF-003", "-w", "tf", "--title", "Prepare it"]);
    person.ok(&["plan", "move", "COMMIT-TF-003", "-w", "tf"]);
    assert!(plan().contains("### COMMIT-TF-003: Prepare it") && plan().contains("- it is used"));
    let mut command = person.command(&["plan", "edit", "COMMIT-TF-002", "-w", "tf"]);
    let editor = person.hermetic.root().join("editor");
    crate::support::write(&editor, "#!/bin/sh\nsed -i 's/it is used/it is used twice/' \"$1\"\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&editor, mode).expect("executable");
    let output = person.hermetic.run(command.env("EDITOR", &editor));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(plan().contains("- it is used twice"), "{}", plan());
    person.ok(&["plan", "drop", "COMMIT-TF-002", "-w", "tf", "-m", "not needed"]);
    person.ok(&["plan", "drop", "COMMIT-TF-003", "-w", "tf"]);
    assert_eq!(plan(), ONE_DONE);
    assert_eq!(person.meta("tf", "STATUS"), "merge-ready");
    person.refused(&["plan", "drop", "COMMIT-TF-001", "-w", "tf"], 2, &["is done"]);
    person.refused(&["plan", "move", "COMMIT-TF-009", "-w", "tf"], 2, &["has no COMMIT-TF-009"]);
}

#[test]
fn what_is_superseded_stays_in_the_plan_and_is_not_run() {
    let person = Person::accepted();
    person.ok(&["plan", "add", "Old way", "-w", "tf"]);
    person.ok(&["plan", "add", "New way", "-w", "tf"]);
    let old = ["plan", "supersede", "COMMIT-TF-002", "-w", "tf"];
    let by = [&old[..], &["--by", "COMMIT-TF-003", "-m", "another API"]].concat();
    let said = person.ok(&by);
    assert!(said.contains("COMMIT-TF-002 superseded; tf is implement"), "{said}");
    person.refused(&by, 2, &["COMMIT-TF-002 is superseded already"]);
    let status = person.ok(&["status", "tf"]);
    for line in [
        "1 of 2 done",
        "[-] COMMIT-TF-002: Old way (superseded: by COMMIT-TF-003: another API)",
        "[ ] COMMIT-TF-003: New way",
    ] {
        assert!(status.contains(line), "{line}: {status}");
    }
    person.ok(&["plan", "supersede", "COMMIT-TF-003", "-w", "tf"]);
    assert_eq!(person.meta("tf", "STATUS"), "merge-ready");
    let plan = crate::support::read(&person.workstream_dir("tf").join("plan.md"));
    assert!(plan.contains("Superseded: not wanted any more\nDone: [ ]"), "{plan}");
    person.ok(&["merge", "tf"]);
}
