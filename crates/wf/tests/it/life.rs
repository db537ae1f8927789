//! A workstream from its plan to its end: refused by a person, mended, accepted, merged, closed.

use crate::play::{APPROVE, OBEDIENT, PLAN, person};
use crate::support::{read, result};

#[test]
fn refused_mended_accepted_merged_closed() {
    let Some(person) = person(PLAN) else { return };
    person.cast(OBEDIENT, APPROVE);
    let dir = person.workstream_dir("tf");
    person.wf(&["run", "tf", "--loop"]);
    person.ok(&["uat", "fail", "UAT-001", "--issues", "too slow"]);
    assert_eq!(person.meta("tf", "STATUS"), "uat:failed");
    let output = person.wf(&["run", "tf", "--loop"]);
    assert_eq!(output.status, Some(8), "{}", output.snapshot());
    assert!(dir.join("uat/superseded/UAT-001.json").is_file());
    assert!(read(&dir.join("uat/pending/UAT-002.json")).contains("too slow"));
    person.refused(&["merge", "tf"], 8, &["not merge-ready"]);
    person.ok(&["uat", "pass", "UAT-002"]);
    assert_eq!(person.meta("tf", "STATUS"), "merge-ready");
    person.ok(&["merge", "tf"]);
    assert_eq!(person.meta("tf", "STATUS"), "done");
    assert_eq!(
        person.repo.git(&["show", "main:mk/test.mk"]).trim(),
        "COMMIT-TF-001\nCOMMIT-TF-002"
    );
    let gate = person.last_run();
    assert!(
        gate.to_string_lossy().ends_with("_merge") && gate.join("boxes/test-merge-gate").is_dir()
    );
    assert!(person.ops().join("agents/app.tf").is_dir());
    person.ok(&["close", "tf"]);
    assert!(!person.ops().join("agents/app.tf").exists());
    assert!(person.repo.git(&["branch", "--list", "feat/tf"]).contains("feat/tf"));
}

#[test]
fn a_gate_test_that_fails_keeps_the_merge_back() {
    let Some(person) = person(PLAN) else { return };
    person.cast(OBEDIENT, APPROVE);
    person.wf(&["run", "tf", "--loop"]);
    person.ok(&["uat", "pass", "UAT-001"]);
    let main = person.repo.sha("main");
    person.profile(&format!("{}MAKE_TARGET_MERGE_GATE_TEST=gate\n", crate::play::PROFILE));
    let worktree = person.worktree("tf");
    worktree.write("Makefile", "gate:\n\t@exit 1\n");
    worktree.commit("COMMIT-TF-001: a gate");
    person.refused(&["merge", "tf"], 5, &["gate test failed"]);
    assert_eq!(person.repo.sha("main"), main);
    assert_eq!(result(&person.runs()[0])["status"], "passed");
}
