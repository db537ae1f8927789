//! TEST and QA_GATE: how runs end, by what the suites do.

use crate::play::{MAKEFILE, PROFILE, person_with_one};
use crate::support::Person;

/// Runs with this makefile and these lines of the profile; shows the output, the state and the notes.
fn run(makefile: &str, profile: &str) -> Option<(Person, String)> {
    let person = person_with_one()?;
    let worktree = person.worktree("tf");
    worktree.write("Makefile", makefile);
    worktree.commit("COMMIT-TF-000: another makefile");
    person.profile(&format!("{PROFILE}{profile}"));
    let shot = person.shot(&["run", "tf", "--once"], &[]);
    let summary = person.file(&person.last_run().join("run_summary.md"));
    let notes = summary.split("## Notes").nth(1).unwrap_or("\n").to_owned();
    let text = format!("{shot}{}notes:{notes}", person.meta_lines("tf"));
    Some((person, text))
}

#[test]
fn tests_that_fail() {
    let Some((_, text)) = run("test-unit:\n\t@echo it broke; exit 3\n", "") else { return };
    insta::assert_snapshot!(text, @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at test: tests failed: unit; see [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001/tests
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    [5]
    STATUS=blocked:test
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    notes:

    done
    tests failed: unit; see [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001/tests
    "#);
}

#[test]
fn a_makefile_that_is_broken() {
    let Some((_, text)) = run("test-unit:\nbroken line\n", "") else { return };
    insta::assert_snapshot!(text, @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at test: tests failed: unit, integration, smoke, e2e; see [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001/tests
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    [5]
    STATUS=blocked:test
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    notes:

    done
    tests failed: unit, integration, smoke, e2e; see [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001/tests
    "#);
}

#[test]
fn no_target_for_any_suite() {
    let Some((_, text)) = run("other:\n\ttrue\n", "") else { return };
    insta::assert_snapshot!(text, @r#"
    $ wf run tf --once
    COMMIT-TF-001: passed, untested
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: try it: wf uat list
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [0]
    STATUS=uat:pending
    BLOCKED_BY=UAT-001
    LAST_RESULT=passed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=[SHA]
    notes:

    done
    untested: no test suite ran
    protected tests: Makefile: 1 checks fewer than before
    protected tests: Makefile: test-unit was removed
    no test suite ran
    "#);
}

#[test]
fn no_target_for_any_suite_under_a_strict_gate() {
    let Some((_, text)) = run("other:\n\ttrue\n", "QA_STRICT=true\n") else { return };
    insta::assert_snapshot!(text, @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at qa_gate: no test suite ran
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [7]
    STATUS=implement
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    notes:

    done
    untested: no test suite ran
    protected tests: Makefile: 1 checks fewer than before
    protected tests: Makefile: test-unit was removed
    no test suite ran
    "#);
}

#[test]
fn tests_without_artifacts() {
    let Some((_, text)) = run("test-unit:\n\t@echo tested\n", "") else { return };
    insta::assert_snapshot!(text, @r#"
    $ wf run tf --once
    COMMIT-TF-001: passed, no test was seen
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: try it: wf uat list
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [0]
    STATUS=uat:pending
    BLOCKED_BY=UAT-001
    LAST_RESULT=passed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=[SHA]
    notes:

    done
    protected tests: Makefile: test-unit no longer has: test ! -e broken; mkdir -p test-results/app/unit; echo '{"passed": 1, "failed": 0, "skipped": 0, "total": 1}' > test-results/app/unit/summary.json; echo '<testsuite><testcase name="a"/></testsuite>' > test-results/app/unit/junit.xml
    no test was seen in the output of unit
    summary.json of unit is missing
    junit.xml of unit is missing
    "#);
}

#[test]
fn tests_without_artifacts_under_a_strict_gate() {
    let Some((_, text)) = run("test-unit:\n\t@echo tested\n", "QA_STRICT=true\n") else { return };
    insta::assert_snapshot!(text, @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at qa_gate: summary.json of unit is missing
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [7]
    STATUS=implement
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    notes:

    done
    protected tests: Makefile: test-unit no longer has: test ! -e broken; mkdir -p test-results/app/unit; echo '{"passed": 1, "failed": 0, "skipped": 0, "total": 1}' > test-results/app/unit/summary.json; echo '<testsuite><testcase name="a"/></testsuite>' > test-results/app/unit/junit.xml
    no test was seen in the output of unit
    summary.json of unit is missing
    "#);
}

#[test]
fn a_summary_that_counts_failures() {
    let failing = MAKEFILE.replace("\"failed\": 0", "\"failed\": 1");
    let Some((_, text)) = run(&failing, "") else { return };
    insta::assert_snapshot!(text, @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at qa_gate: summary.json of unit counts 1 failed tests
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [7]
    STATUS=implement
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    notes:

    done
    protected tests: Makefile: test-unit no longer has: echo '{"passed": 1, "failed": 0, "skipped": 0, "total": 1}' > test-results/app/unit/summary.json
    summary.json of unit counts 1 failed tests
    "#);
}

#[test]
fn a_report_that_is_not_xml() {
    let broken = MAKEFILE.replace("<testsuite><testcase name=\"a\"/></testsuite>", "<testsuite>");
    let Some((_, text)) = run(&broken, "") else { return };
    insta::assert_snapshot!(text, @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at qa_gate: junit.xml of unit is malformed: it ends too early
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [7]
    STATUS=implement
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    notes:

    done
    protected tests: Makefile: test-unit no longer has: echo '<testsuite><testcase name="a"/></testsuite>' > test-results/app/unit/junit.xml
    junit.xml of unit is malformed: it ends too early
    "#);
}

#[test]
fn tests_that_take_too_long() {
    let Some((_, text)) = run("test-unit:\n\t@sleep 600\n", "TEST_TIMEOUT=2\n") else { return };
    insta::assert_snapshot!(text, @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at test: tests failed: unit; see [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001/tests
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    [5]
    STATUS=blocked:test
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    notes:

    done
    tests failed: unit; see [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001/tests
    "#);
}

#[test]
fn the_manifest_of_several_suites() {
    let makefile = "test-unit:\n\t@echo unit\ntest-smoke:\n\t@echo smoke; exit 2\ntest-e2e:\n";
    let Some((person, text)) = run(makefile, "TEST_CMD_INTEGRATION=\"/bin/echo a > b\"\n") else {
        return;
    };
    assert!(text.contains("[5]"), "{text}");
    let manifest = person.file(&person.last_run().join("test_manifest.json"));
    insta::assert_snapshot!(manifest, @r#"
    {
      "version": 1,
      "generated": "[TIME]",
      "suites": [
        {
          "name": "unit",
          "status": "passed",
          "exit_code": 0,
          "duration_seconds": [N],
          "artifacts": {
            "log": "tests/unit/output.log"
          }
        },
        {
          "name": "integration",
          "status": "passed",
          "exit_code": 0,
          "duration_seconds": [N],
          "artifacts": {
            "log": "tests/integration/output.log"
          }
        },
        {
          "name": "smoke",
          "status": "failed",
          "exit_code": 2,
          "duration_seconds": [N],
          "artifacts": {
            "log": "tests/smoke/output.log"
          }
        },
        {
          "name": "e2e",
          "status": "skipped",
          "reason": "Target 'test-e2e' not in Makefile",
          "artifacts": {}
        }
      ]
    }
    "#);
}

#[test]
fn tests_on_the_host_with_a_program_that_is_missing() {
    let Some((_, text)) = run(MAKEFILE, "TEST_IN=host\nTEST_CMD_UNIT=\"no-such-program x\"\n")
    else {
        return;
    };
    insta::assert_snapshot!(text, @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at test: no-such-program was not found; install it
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    [5]
    STATUS=blocked:test
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    notes:

    done
    no-such-program was not found; install it
    "#);
}

#[test]
fn secrets_that_tests_may_not_or_cannot_have() {
    let Some((person, in_box)) = run(MAKEFILE, "SECRETS_TEST=TOKEN\n") else { return };
    person.profile(&format!("{PROFILE}TEST_IN=host\nSECRETS_TEST=MISSING\n"));
    let missing = person.shot(&["run", "tf", "--once"], &[]);
    insta::assert_snapshot!(format!("{in_box}{missing}"), @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at test: SECRETS_TEST is for TEST_IN=host: nothing secret goes into a box
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    [2]
    STATUS=blocked:test
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    notes:

    done
    SECRETS_TEST is for TEST_IN=host: nothing secret goes into a box
    $ wf run tf --once
    COMMIT-TF-001: failed at test: the secret MISSING is in no file of [ROOT]/work/app.ops/secrets
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    ! > test
    [2]
    "#);
}
