//! Secrets are in no record and on no terminal, and tests get only what they need.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use testkit::part::{Part, require};
use testkit::tree::holding;

use crate::support::{ONE_DONE, Person, read, write};

const SECRET: &str = "hunter2-correct-horse";

/// A merge-ready workstream whose gate test does this.
fn gated(recipe: &str, profile: &str) -> Person {
    let person = Person::with_plan(ONE_DONE);
    let makefile = format!("test-unit:\n\t@{recipe}\n");
    person.worktree("tf").write("Makefile", &makefile).commit("COMMIT-TF-001: x");
    person.wf(&["run", "tf"]);
    person.ok(&["uat", "pass", "UAT-001"]);
    person.profile(&format!("TEST_IN=host\nMERGE_MODE=local\n{profile}"));
    let file = person.ops().join("secrets/app.env");
    write(&file, &format!("APP_KEY={SECRET}\n"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    person
}

fn merge_run(person: &Person) -> PathBuf {
    let runs = person.runs().into_iter();
    runs.rev().find(|run| run.to_string_lossy().ends_with("_merge")).expect("a merge")
}

#[test]
fn a_secret_is_struck_out_of_logs_and_artifacts_of_tests() {
    let left = "test-results/app/merge-gate";
    let recipe = format!("mkdir -p {left}; echo key $$APP_KEY | tee {left}/junit.xml");
    let person = gated(&recipe, "SECRETS_TEST=APP_KEY\n");
    person.wf(&["merge", "tf"]);
    let kept = merge_run(&person).join("tests/merge-gate");
    assert!(
        read(&kept.join("output.log")).starts_with("key ***"),
        "{}",
        read(&kept.join("output.log"))
    );
    assert!(read(&kept.join("junit.xml")).starts_with("key ***"));
    let mut grep = person.hermetic.command("grep");
    let found = person.hermetic.run(grep.args(["-rl", SECRET]).arg(person.ops().join("runs")));
    assert_eq!(found.status, Some(1), "the secret is in {}", found.stdout);
}

#[test]
fn a_secret_is_struck_out_of_what_comes_out_of_a_box() {
    if require(Part::Bwrap).is_none() {
        return;
    }
    let left = "test-results/app/merge-gate";
    let recipe = format!(
        "mkdir -p {left}/deep; echo key {SECRET} | tee {left}/junit.xml {left}/deep/notes.txt"
    );
    let person = gated(&recipe, "");
    person.profile("TEST_IN=box\nBOX_BACKEND=bwrap\nMERGE_MODE=local\n");
    person.wf(&["merge", "tf"]);
    let kept = merge_run(&person).join("tests/merge-gate");
    for name in ["junit.xml", "deep/notes.txt"] {
        assert_eq!(read(&kept.join(name)), "key ***\n", "{name}");
    }
    let found = holding(&person.ops().join("runs"), SECRET);
    assert!(found.is_empty(), "the secret is in {found:?}");
}

#[test]
fn a_secret_does_not_reach_the_terminal() {
    let person = gated("true", "");
    let meta = person.workstream_dir("tf").join("meta.env");
    write(&meta, &read(&meta).replace("Test framework", SECRET));
    let shown = person.ok(&["list"]) + &person.ok(&["status", "tf", "--json"]);
    assert!(!shown.contains(SECRET) && shown.contains("***"), "{shown}");
}

#[test]
fn tests_on_the_host_get_a_trimmed_environment() {
    let person = gated("env", "TEST_ENV=WANTED\n");
    let mut merge = person.command(&["merge", "tf"]);
    let output = person.hermetic.run(merge.env("GH_TOKEN", "login").env("WANTED", "yes"));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let log = read(&merge_run(&person).join("tests/merge-gate/output.log"));
    assert!(log.contains("WANTED=yes") && log.contains("PATH="), "{log}");
    assert!(!log.contains("GH_TOKEN") && !log.contains("login"), "{log}");
}
