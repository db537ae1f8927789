//! `wf uat`: lists, pages, verdicts and refusals.

use crate::support::{ONE_DONE, Person, write};

/// A workstream whose finished plan waits for acceptance.
fn waiting() -> Person {
    let person = Person::with_plan(ONE_DONE);
    person.wf(&["run", "tf"]);
    person
}

#[test]
fn a_finished_plan_waits_for_acceptance() {
    let person = Person::with_plan(ONE_DONE);
    insta::assert_snapshot!(person.transcript(&[&["run", "tf"], &["uat", "list"], &["status", "tf"]]), @"
    $ wf run tf
    no micro-commit: blocked at uat: blocked by UAT-001
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: try it: wf uat show UAT-001 -w tf
    [8]
    $ wf uat list
     ID       WORKSTREAM  STATUS   CONTENT
     UAT-001  tf          pending  1 scenarios
    [0]
    $ wf status tf
    workstream     tf: Test framework
    status         uat:pending
    branch         feat/tf from main at [SHA]
    worktree       [ROOT]/work/app.ops/worktrees/tf
    expects        mk/ tests/
    touched        0 files, refreshed [TIME]
    plan           1 of 1 done
                   [x] COMMIT-TF-001: Add test harness
    uat pending    UAT-001
    last run       [STAMP]_app_tf_none: blocked at uat
    needs you      accept: wf uat list
    [0]
    ");
}

#[test]
fn an_acceptance_test_is_shown() {
    let person = waiting();
    insta::assert_snapshot!(person.transcript(&[&["uat", "show", "UAT-001"]]), @"
    $ wf uat show UAT-001
    # UAT-001: acceptance of tf

    - Status: pending
    - Created: [TIME]
    - Commit: [SHA]

    ## Scenarios

    ### 1. COMMIT-TF-001: it runs

    - Try what COMMIT-TF-001 brought: Add test harness

    Expected: it runs
    [0]
    ");
}

#[test]
fn an_acceptance_test_is_shown_as_json() {
    let person = waiting();
    insta::assert_snapshot!(person.transcript(&[&["uat", "show", "UAT-001", "--json"]]), @r#"
    $ wf uat show UAT-001 --json
    {
      "version": 1,
      "id": "UAT-001",
      "status": "pending",
      "created": "[TIME]",
      "completed": null,
      "workstream": "tf",
      "commit": "[SHA]",
      "requirements": [
        "COMMIT-TF-001"
      ],
      "scenarios": [
        {
          "name": "COMMIT-TF-001: it runs",
          "steps": [
            "Try what COMMIT-TF-001 brought: Add test harness"
          ],
          "expected": "it runs",
          "result": null
        }
      ],
      "result": null,
      "validated_by": null,
      "issues": []
    }
    [0]
    "#);
}

#[test]
fn an_acceptance_test_passes() {
    let person = waiting();
    let passed = person.transcript(&[
        &["uat", "pass", "UAT-001"],
        &["uat", "list"],
        &["uat", "list", "--all"],
        &["run", "tf"],
    ]);
    insta::assert_snapshot!(format!("{passed}{}", person.meta_lines("tf")), @"
    $ wf uat pass UAT-001
    UAT-001 passed; tf is merge-ready
    ! Next: merge: wf merge tf
    [0]
    $ wf uat list
    No pending acceptance tests.
    [0]
    $ wf uat list --all
     ID       WORKSTREAM  STATUS  CONTENT
     UAT-001  tf          passed  1 scenarios
    [0]
    $ wf run tf
    no micro-commit: passed
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: merge: wf merge tf
    [0]
    STATUS=merge-ready
    BLOCKED_BY=
    LAST_RESULT=passed
    LAST_RUN_ID=[STAMP]_app_tf_none
    LAST_COMMIT_SHA=
    ");
}

#[test]
fn an_acceptance_test_fails() {
    let person = waiting();
    let failed = person.transcript(&[
        &["uat", "fail", "UAT-001", "--issues", "too slow", "--issues", "wrong colour"],
        &["plan", "drop", "COMMIT-TF-002", "-w", "tf"],
        &["run", "tf"],
    ]);
    insta::assert_snapshot!(format!("{failed}{}", person.meta_lines("tf")), @r#"
    $ wf uat fail UAT-001 --issues "too slow" --issues "wrong colour"
    UAT-001 failed; tf is uat:failed
      COMMIT-TF-002 was added to the plan; change it: wf plan edit COMMIT-TF-002 -w tf
    ! Next: run the fix in the plan: wf run tf
    [0]
    $ wf plan drop COMMIT-TF-002 -w tf
    COMMIT-TF-002 dropped; tf is uat:failed
    [0]
    $ wf run tf
    no micro-commit: blocked at uat: blocked by UAT-001
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: plan the fix: wf plan add TITLE -w tf
    [8]
    STATUS=uat:failed
    BLOCKED_BY=UAT-001
    LAST_RESULT=blocked
    LAST_RUN_ID=[STAMP]_app_tf_none
    LAST_COMMIT_SHA=
    "#);
}

#[test]
fn a_fix_supersedes_the_failed_test() {
    let person = waiting();
    person.ok(&["uat", "fail", "UAT-001", "--issues", "too slow"]);
    person.ok(&["plan", "drop", "COMMIT-TF-002", "-w", "tf"]);
    person.worktree("tf").write("fix", "fix").commit("COMMIT-TF-002: fix");
    insta::assert_snapshot!(person.transcript(&[&["run", "tf"], &["uat", "list", "--all"], &["uat", "pass", "UAT-002", "--json"]]), @r#"
    $ wf run tf
    no micro-commit: blocked at uat: blocked by UAT-002
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: try it: wf uat show UAT-002 -w tf
    [8]
    $ wf uat list --all
     ID       WORKSTREAM  STATUS      CONTENT
     UAT-002  tf          pending     1 scenarios
     UAT-001  tf          superseded  1 scenarios
    [0]
    $ wf uat pass UAT-002 --json
    {
      "planned": [],
      "status": "merge-ready",
      "uat": {
        "commit": "[SHA]",
        "completed": "[TIME]",
        "created": "[TIME]",
        "id": "UAT-002",
        "issues": [],
        "requirements": [
          "COMMIT-TF-001"
        ],
        "result": "passed",
        "scenarios": [
          {
            "expected": "it runs",
            "name": "COMMIT-TF-001: it runs",
            "result": "passed",
            "steps": [
              "Try what COMMIT-TF-001 brought: Add test harness"
            ]
          }
        ],
        "status": "passed",
        "validated_by": "ada",
        "version": 1,
        "workstream": "tf"
      },
      "workstream": "tf"
    }
    ! Next: merge: wf merge tf
    [0]
    "#);
}

#[test]
fn verdicts_that_are_refused() {
    let person = waiting();
    person.ok(&["uat", "pass", "UAT-001"]);
    write(&person.workstream_dir("tf").join("uat/pending/UAT-009.json"), "{");
    insta::assert_snapshot!(person.transcript(&[
        &["uat", "pass", "UAT-001"],
        &["uat", "fail", "UAT-001", "--issues", "x"],
        &["uat", "fail", "UAT-009", "--issues", " "],
        &["uat", "pass", "UAT-009"],
        &["uat", "pass", "UAT-002"],
        &["uat", "pass", "UAT"],
        &["uat", "list"],
        &["uat", "list", "--json"],
    ]), @r#"
    $ wf uat pass UAT-001
    UAT-001 passed; tf is uat:pending
    ! Next: accept: wf uat list
    [0]
    $ wf uat fail UAT-001 --issues x
    ! error: UAT-001 has a verdict already: passed
    [2]
    $ wf uat fail UAT-009 --issues " "
    ! error: an issue is empty; say what is wrong
    [2]
    $ wf uat pass UAT-009
    ! error: UAT-009: not valid JSON: EOF while parsing an object at line 1 column 1
    [2]
    $ wf uat pass UAT-002
    ! error: there is no acceptance test UAT-002; did you mean 'UAT-001'? See: wf uat list
    [2]
    $ wf uat pass UAT
    ! error: "UAT" is not a valid UAT id: UAT- and three to nine digits
    [2]
    $ wf uat list
     ID       WORKSTREAM  STATUS   CONTENT
     UAT-009  tf          pending  cannot be read: not valid JSON: EOF while parsing an object at line 1 column 1
    [0]
    $ wf uat list --json
    [
      {
        "id": "UAT-009",
        "problem": "not valid JSON: EOF while parsing an object at line 1 column 1",
        "workstream": "tf"
      }
    ]
    [0]
    "#);
}

#[test]
fn the_files_of_a_verdict() {
    let person = waiting();
    person.ok(&["uat", "pass", "UAT-001"]);
    let uat = person.workstream_dir("tf").join("uat");
    let (tree, page) = (person.tree(&uat, &[]), person.file(&uat.join("passed/UAT-001.md")));
    insta::assert_snapshot!(format!("{tree}\n{page}"), @"
    failed/
    passed/
    passed/UAT-001.json
    passed/UAT-001.md
    pending/

    # UAT-001: acceptance of tf

    - Status: passed
    - Created: [TIME]
    - Commit: [SHA]
    - Validated by ada at [TIME]

    ## Scenarios

    ### 1. COMMIT-TF-001: it runs

    - Try what COMMIT-TF-001 brought: Add test harness

    Expected: it runs

    Result: passed
    ");
}

#[test]
fn an_unreadable_acceptance_test_blocks_the_gate() {
    let person = Person::with_plan(ONE_DONE);
    write(&person.workstream_dir("tf").join("uat/pending/UAT-004.md"), "# by hand\n");
    insta::assert_snapshot!(person.transcript(&[&["run", "tf"], &["uat", "show", "UAT-004"], &["status", "tf"]]), @"
    $ wf run tf
    no micro-commit: blocked at uat: blocked by UAT-004
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: try it: wf uat show UAT-004 -w tf
    [8]
    $ wf uat show UAT-004
    ! error: UAT-004: there is no JSON file beside the Markdown
    [2]
    $ wf status tf
    workstream     tf: Test framework
    status         uat:pending
    branch         feat/tf from main at [SHA]
    worktree       [ROOT]/work/app.ops/worktrees/tf
    expects        mk/ tests/
    touched        0 files, refreshed [TIME]
    plan           1 of 1 done
                   [x] COMMIT-TF-001: Add test harness
    uat pending    UAT-004
    last run       [STAMP]_app_tf_none: blocked at uat
    needs you      accept: wf uat list
    [0]
    ");
}
