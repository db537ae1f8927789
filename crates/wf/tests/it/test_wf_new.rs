//! Creating workstreams: all files, or nothing at all.

use testkit::repo::Repo;

use crate::support::{Person, read};

#[test]
fn a_workstream_has_branch_worktree_and_every_file() {
    let person = Person::new();
    let said = person.ok(&["new", "tf", "Test framework", "./mk/ tests/"]);
    assert!(said.contains("Created workstream: tf") && said.contains("feat/tf"), "{said}");
    let dir = person.workstream_dir("tf");
    for file in [
        "meta.env",
        "plan.md",
        "notes.md",
        "touched_files.txt",
        "clarifications/pending",
        "clarifications/answered",
        "uat/pending",
        "uat/passed",
    ] {
        assert!(dir.join(file).exists(), "{file}");
    }
    assert_eq!(person.meta("tf", "STATUS"), "planning");
    assert_eq!(person.meta("tf", "EXPECTED_PATHS"), "mk/ tests/");
    assert_eq!(person.meta("tf", "BASE_SHA"), person.repo.sha("main"));
    assert_eq!(person.worktree("tf").git(&["branch", "--show-current"]), "feat/tf");
    assert!(read(&person.project_dir().join("ACTIVE_WORKSTREAMS.md")).contains("| tf | feat/tf |"));
}

#[test]
fn the_configuration_of_the_product_is_not_touched_12_1() {
    let person = Person::new();
    let before = read(&person.repo.git_dir().join("config"));
    person.ok(&["new", "tf", "Test framework"]);
    person.ok(&["close", "tf", "--force"]);
    assert_eq!(read(&person.repo.git_dir().join("config")), before);
}

#[test]
fn bad_input_creates_nothing() {
    let person = Person::new();
    for (args, word) in [
        (["new", "Bad", "t", ""], "workstream id"),
        (["new", "../x", "t", ""], "workstream id"),
        (["new", "tf", "", ""], "1 to 100"),
        (["new", "tf", "a;b", ""], "';'"),
        (["new", "tf", "say \"x\"", ""], "double quote"),
        (["new", "tf", "t", "/etc"], "/etc"),
        (["new", "tf", "t", "../x"], "../x"),
        (["new", "tf", "t", "a$b"], "'$'"),
    ] {
        person.refused(&args, 2, &[word]);
    }
    assert!(!person.workstream_dir("tf").exists());
    assert_eq!(person.repo.git(&["branch", "--list", "feat/*"]), "");
}

#[test]
fn what_is_taken_is_refused() {
    let person = Person::new();
    person.ok(&["new", "tf", "One"]);
    person.refused(&["new", "tf", "Two"], 2, &["tf exists already"]);
    person.repo.branch("feat/other");
    person.refused(&["new", "other", "Two"], 2, &["feat/other exists already"]);
    person.ok(&["new", "other", "Two", "--prefix", "fix/"]);
    assert_eq!(person.meta("other", "BRANCH"), "fix/other");
    std::fs::create_dir_all(person.ops().join("worktrees/third")).expect("made");
    person.refused(&["new", "third", "Three"], 2, &["worktrees/third exists already"]);
    assert_eq!(person.repo.git(&["branch", "--list", "feat/third"]), "");
}

#[test]
fn a_branch_on_the_remote_is_refused_and_an_absent_remote_is_a_warning() {
    let person = Person::new();
    let origin = Repo::init_bare(person.hermetic.root().join("origin.git"));
    person.repo.git(&["remote", "add", "origin", origin.dir().to_str().expect("UTF-8")]);
    person.repo.git(&["push", "-q", "origin", "main:refs/heads/feat/tf"]);
    person.refused(&["new", "tf", "One"], 2, &["feat/tf exists on origin"]);
    std::fs::remove_dir_all(origin.dir()).expect("gone");
    let output = person.wf(&["new", "tf", "One"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("warning: origin could not be asked"), "{}", output.stderr);
}

#[test]
fn a_tag_of_the_same_name_is_not_the_base() {
    let person = Person::new();
    let first = person.repo.sha("HEAD");
    person.repo.write("b", "b").commit("second");
    person.repo.git(&["tag", "main", &first]);
    person.ok(&["new", "tf", "One"]);
    assert_eq!(person.meta("tf", "BASE_SHA"), person.repo.sha("refs/heads/main"));
}

#[test]
fn a_failure_in_the_middle_takes_everything_back() {
    let person = Person::new();
    // A file in the place of the folder of workstreams makes the second half fail.
    std::fs::remove_dir(person.project_dir().join("workstreams")).expect("empty");
    std::fs::write(person.project_dir().join("workstreams"), "").expect("a file");
    let output = person.wf(&["new", "tf", "One"]);
    assert_ne!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.repo.git(&["branch", "--list", "feat/tf"]), "");
    assert_eq!(person.repo.git(&["worktree", "list"]).lines().count(), 1);
}
