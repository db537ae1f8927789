//! Closing and deleting.

use testkit::repo::Repo;

use crate::support::{ONE, Person, operations};

#[test]
fn closing_keeps_the_branch_and_archives_the_rest() {
    let person = Person::with_plan(ONE);
    person.refused(&["close", "tf"], 2, &["not complete", "--force"]);
    person.worktree("tf").write("stray", "x");
    person.set_meta("tf", "STATUS", "merge-ready");
    person.refused(&["close", "tf"], 2, &["uncommitted"]);
    assert!(person.worktree("tf").dir().is_dir());
    assert!(person.ok(&["close", "tf", "--force"]).contains("Branch kept: feat/tf"));
    assert!(!person.worktree("tf").dir().exists() && !person.workstream_dir("tf").exists());
    assert_eq!(person.repo.git(&["branch", "--list", "feat/tf"]).trim(), "feat/tf");
    let closed = std::fs::read_dir(person.project_dir().join("workstreams/_closed"))
        .expect("closed ones")
        .count();
    assert_eq!(closed, 1);
    person.refused(&["new", "tf", "Again"], 2, &["feat/tf exists already", "--prefix"]);
}

#[test]
fn a_worktree_that_is_gone_does_not_stop_closing() {
    let person = Person::with_plan(ONE);
    std::fs::remove_dir_all(person.worktree("tf").dir()).expect("gone");
    person.ok(&["close", "tf", "--force"]);
    assert_eq!(person.repo.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_deletion_is_shown_first_and_changes_nothing() {
    let person = Person::with_plan(ONE);
    let said = person.ok(&["delete", "tf"]);
    assert!(said.contains("Use --confirm") && said.contains("Remote branch: none"), "{said}");
    assert!(person.workstream_dir("tf").is_dir());
    let tip = person.worktree("tf").head();
    assert!(person.ok(&["delete", "tf", "--confirm"]).contains(&tip), "the tip is told");
    assert!(!person.workstream_dir("tf").exists() && !person.worktree("tf").dir().exists());
    assert_eq!(person.repo.git(&["branch", "--list", "feat/tf"]), "");
}

#[test]
fn the_remote_branch_goes_only_if_it_is_ours_and_not_merged() {
    let person = Person::with_plan(ONE);
    let origin = Repo::init_bare(person.hermetic.root().join("origin.git"));
    person.repo.git(&["remote", "add", "origin", origin.dir().to_str().expect("UTF-8")]);
    person.worktree("tf").write("x", "x").commit("COMMIT-TF-001: x");
    person.worktree("tf").git(&["push", "-q", "origin", "feat/tf"]);
    assert!(person.ok(&["delete", "tf"]).contains("deleted on origin too"));
    person.ok(&["delete", "tf", "--confirm"]);
    assert_eq!(origin.git(&["branch", "--list"]), "");

    person.ok(&["new", "two", "Two"]);
    person.worktree("two").git(&["push", "-q", "origin", "feat/two"]);
    person.ok(&["delete", "two", "--confirm"]);
    assert!(origin.git(&["branch", "--list"]).contains("feat/two"), "merged, so it stays");

    person.ok(&["new", "three", "Three", "--prefix", "x"]);
    person.worktree("three").write("x", "x").commit("COMMIT-T-001: x");
    person.worktree("three").git(&["push", "-q", "origin", "x/three"]);
    person.ok(&["delete", "three", "--confirm", "--keep-remote"]);
    assert!(origin.git(&["branch", "--list"]).contains("x/three"));
}

#[test]
fn nothing_outside_the_ops_directory_is_removed() {
    let person = Person::with_plan(ONE);
    person.set_meta("tf", "WORKTREE", person.repo.dir().to_str().expect("UTF-8"));
    person.refused(&["delete", "tf", "--confirm"], 2, &["is not inside"]);
    person.refused(&["close", "tf", "--force"], 2, &["is not inside"]);
    assert!(person.repo.dir().join("README.md").exists());
}

#[test]
fn a_deletion_that_was_interrupted_is_finished_by_the_next() {
    for point in [
        "wf-branch.delete-intended",
        "wf-branch.delete-happened",
        "wf-remote_branch.delete-intended",
        "wf-remote_branch.delete-happened",
    ] {
        let person = Person::with_plan(ONE);
        let origin = Repo::init_bare(person.hermetic.root().join("origin.git"));
        person.repo.git(&["remote", "add", "origin", origin.dir().to_str().expect("UTF-8")]);
        person.worktree("tf").write("x", "x").commit("COMMIT-TF-001: x");
        person.worktree("tf").git(&["push", "-q", "origin", "feat/tf"]);
        let mut command = person.command(&["delete", "tf", "--confirm"]);
        let output = person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", point));
        assert_eq!(output.signal, Some(9), "not killed at {point}: {}", output.snapshot());
        person.ok(&["delete", "tf", "--confirm"]);
        assert_eq!(origin.git(&["branch", "--list"]), "", "{point}");
        assert_eq!(person.repo.git(&["branch", "--list", "feat/tf"]), "", "{point}");
        assert!(!person.workstream_dir("tf").exists(), "{point}");
        let log = operations(&person);
        assert!(log.contains(&"branch.delete feat/tf intended".to_owned()), "{point}: {log:?}");
        assert!(person.wf(&["doctor"]).stdout.contains("all finished"), "{point}");
    }
}
