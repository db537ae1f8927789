//! Acceptance by a person.

use crate::support::{ONE_DONE, Person, read};

#[test]
fn golden_10_5_a_finished_plan_waits_for_acceptance() {
    let person = Person::with_plan(ONE_DONE);
    person.refused(&["run", "tf", "--once"], 8, &["UAT-001"]);
    assert_eq!(person.meta("tf", "STATUS"), "uat:pending");
    assert_eq!(person.meta("tf", "BLOCKED_BY"), "UAT-001");
    let uat = read(&person.workstream_dir("tf").join("uat/pending/UAT-001.json"));
    assert!(uat.contains("COMMIT-TF-001: it runs"), "{uat}");
    assert!(person.workstream_dir("tf").join("uat/pending/UAT-001.md").exists());
    let result = person.only_result();
    assert_eq!(
        (result["failed_stage"].as_str(), result["blocked_reason"].as_str()),
        (Some("uat"), Some("UAT-001"))
    );
    assert!(person.runs()[0].ends_with(person.meta("tf", "LAST_RUN_ID")));
    // Asking again makes no second one.
    person.refused(&["run", "tf"], 8, &["UAT-001"]);
    assert!(!person.workstream_dir("tf").join("uat/pending/UAT-002.json").exists());
}

#[test]
fn a_pass_makes_merge_ready_and_a_run_then_does_nothing() {
    let person = Person::with_plan(ONE_DONE);
    person.wf(&["run", "tf"]);
    assert!(person.ok(&["uat", "list"]).contains("UAT-001"));
    assert!(person.ok(&["uat", "pass", "UAT-001"]).contains("tf is merge-ready"));
    assert!(person.workstream_dir("tf").join("uat/passed/UAT-001.json").exists());
    assert!(!person.workstream_dir("tf").join("uat/pending/UAT-001.md").exists());
    person.ok(&["run", "tf"]);
    assert_eq!(person.meta("tf", "STATUS"), "merge-ready");
    person.refused(&["uat", "fail", "UAT-001", "--issues", "x"], 2, &["has a verdict"]);
}

#[test]
fn a_failure_is_superseded_after_a_fix() {
    let person = Person::with_plan(ONE_DONE);
    person.wf(&["run", "tf"]);
    person.refused(&["uat", "fail", "UAT-001"], 2, &["--issues"]);
    person.ok(&["uat", "fail", "UAT-001", "--issues", "it does not run"]);
    assert_eq!(person.meta("tf", "STATUS"), "uat:failed");
    person.ok(&["plan", "drop", "COMMIT-TF-002", "-w", "tf"]);
    person.refused(&["run", "tf"], 8, &["UAT-001"]);
    assert_eq!(person.meta("tf", "STATUS"), "uat:failed");
    person.worktree("tf").write("fix", "fix").commit("COMMIT-TF-002: fix");
    person.refused(&["run", "tf"], 8, &["UAT-002"]);
    assert_eq!(person.meta("tf", "STATUS"), "uat:pending");
    assert!(person.workstream_dir("tf").join("uat/superseded/UAT-001.json").exists());
    person.ok(&["uat", "pass", "UAT-002"]);
    assert_eq!(person.meta("tf", "STATUS"), "merge-ready");
}

#[test]
fn tests_are_numbered_over_the_project() {
    let person = Person::with_plan(ONE_DONE);
    person.ok(&["new", "other", "Other"]);
    person.plan("other", ONE_DONE);
    person.wf(&["run", "tf"]);
    person.refused(&["run", "other"], 8, &["UAT-002"]);
    let shown = person.json(&["uat", "show", "UAT-002"]);
    assert_eq!(shown["workstream"], "other");
}
