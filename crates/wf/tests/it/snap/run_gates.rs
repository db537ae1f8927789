//! REVIEW and the endings after it: how runs end, by what the reviewer says.

use crate::play::{APPROVE, GOOD, REJECT, person_with_one};
use crate::support::Person;

fn says(review: &str) -> String {
    format!("[[step]]\nprint = '''{review}\n'''\n")
}

/// Runs with this reviewer; shows the output, the state and the notes.
fn run(person: &Person, review: &str) -> String {
    person.cast(GOOD, review);
    let shot = person.shot(&["run", "tf", "--once"], &[]);
    let summary = person.file(&person.last_run().join("run_summary.md"));
    let notes = summary.split("## Notes").nth(1).unwrap_or("\n").to_owned();
    format!("{shot}{}notes:{notes}", person.meta_lines("tf"))
}

#[test]
fn an_approval() {
    let Some(person) = person_with_one() else { return };
    insta::assert_snapshot!(run(&person, APPROVE), @r#"
    $ wf run tf --once
    COMMIT-TF-001: passed
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
    "#);
}

#[test]
fn requested_changes() {
    let Some(person) = person_with_one() else { return };
    insta::assert_snapshot!(run(&person, REJECT), @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at review: the reviewer requested changes: mk/test.mk:1: no target (add one)
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "request_changes", "blockers": [{"file": "mk/test.mk", "line": 1, "issue": "no target", "severity": "major", "fix_hint": "add one"}]}
    [6]
    STATUS=blocked:review
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    notes:

    done
    the reviewer requested changes: mk/test.mk:1: no target (add one)
    "#);
}

#[test]
fn requested_changes_without_a_reason() {
    let Some(person) = person_with_one() else { return };
    let bare = says("{\"version\": 1, \"decision\": \"request_changes\"}");
    insta::assert_snapshot!(run(&person, &bare), @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at review: the reviewer requested changes and named no reason
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "request_changes"}
    [6]
    STATUS=blocked:review
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    notes:

    done
    the reviewer requested changes and named no reason
    "#);
}

#[test]
fn an_approval_that_names_blockers() {
    let Some(person) = person_with_one() else { return };
    insta::assert_snapshot!(run(&person, &REJECT.replace("request_changes", "approve")), @r#"
    $ wf run tf --once
    COMMIT-TF-001: passed
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: try it: wf uat list
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": [{"file": "mk/test.mk", "line": 1, "issue": "no target", "severity": "major", "fix_hint": "add one"}]}
    ! warning: the reviewer approved but named 1 blocker
    [0]
    STATUS=uat:pending
    BLOCKED_BY=UAT-001
    LAST_RESULT=passed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=[SHA]
    notes:

    done
    the reviewer approved but named 1 blocker
    "#);
}

#[test]
fn an_approval_without_the_required_documentation() {
    let Some(person) = person_with_one() else { return };
    let review = says(
        "{\"version\": 1, \"decision\": \"approve\", \"documentation\": {\"required\": true, \"present\": false}}",
    );
    insta::assert_snapshot!(run(&person, &review), @r#"
    $ wf run tf --once
    COMMIT-TF-001: passed
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: try it: wf uat list
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "documentation": {"required": true, "present": false}}
    [0]
    STATUS=uat:pending
    BLOCKED_BY=UAT-001
    LAST_RESULT=passed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=[SHA]
    notes:

    done
    documentation is required but not present
    "#);
}

#[test]
fn an_answer_that_is_not_a_review() {
    let Some(person) = person_with_one() else { return };
    insta::assert_snapshot!(run(&person, &says("LGTM")), @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at review: the reviewer gave no JSON object with a decision
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: LGTM
    [6]
    STATUS=implement
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    notes:

    done
    the reviewer gave no JSON object with a decision
    "#);
}

#[test]
fn a_review_that_breaks_the_schema() {
    let Some(person) = person_with_one() else { return };
    insta::assert_snapshot!(run(&person, &says("{\"version\": 1, \"decision\": \"maybe\"}")), @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at review: the review is not valid: claude_review at /decision: "maybe" is not one of "approve" or "request_changes"
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "maybe"}
    [6]
    STATUS=implement
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    notes:

    done
    the review is not valid: claude_review at /decision: "maybe" is not one of "approve" or "request_changes"
    "#);
}

#[test]
fn a_reviewer_that_fails() {
    let Some(person) = person_with_one() else { return };
    insta::assert_snapshot!(run(&person, "[[step]]\nexit = 4\n"), @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at review: the agent failed: the script ended with status 4
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   exit: 4
    [6]
    STATUS=implement
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    notes:

    done
    the agent failed: the script ended with status 4
    "#);
}

#[test]
fn a_commit_without_a_verdict_is_reviewed_again_without_an_agent() {
    let Some(person) = person_with_one() else { return };
    run(&person, &says("LGTM"));
    person.cast("[[step]]\nexit = 9\n", APPROVE);
    let shot = person.shot(&["run", "tf", "--once"], &[]);
    let log = person.file(&person.last_run().join("implement.log"));
    insta::assert_snapshot!(format!("{shot}implement.log: {log}"), @r#"
    $ wf run tf --once
    COMMIT-TF-001: passed
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: try it: wf uat list
    ! > implement
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [0]
    implement.log: resumed [SHA] from the run [STAMP]_app_tf_COMMIT-TF-001, which ended without a verdict
    "#);
}

#[test]
fn a_panic_is_an_internal_error_with_a_result() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, APPROVE);
    let mut command = person.command(&["run", "tf", "--once"]);
    command.env("BOTTLEWORKS_FAILPOINT", "panic:wf-implement");
    let output = person.hermetic.run(&mut command);
    let summary = person.file(&person.last_run().join("run_summary.md"));
    let stdout = person.redacted(&output.stdout);
    insta::assert_snapshot!(format!("{:?}\n{stdout}\n{summary}", output.status), @"
    Some(9)
    COMMIT-TF-001: failed at implement: internal error: a stage panicked
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf

    # Run [STAMP]_app_tf_COMMIT-TF-001

    - Project: app
    - Workstream: tf
    - Micro-commit: COMMIT-TF-001
    - Status: failed
    - Failed stage: implement
    - Base: [SHA]
    - Started: [TIME]
    - Ended: [TIME] ([N] s)

    ## Stages

    | Stage | Status | Seconds | Notes |
    |---|---|---|---|
    | lock | passed | [N] |  |
    | load | passed | [N] |  |
    | select | passed | [N] |  |
    | clarification | passed | [N] |  |
    | implement | failed | [N] | internal error: a stage panicked |
    | refresh | passed | [N] |  |

    ## Notes

    internal error: a stage panicked
    ");
}

#[test]
fn a_signal_is_a_failure_with_a_result() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, APPROVE);
    let shot = person.shot(&["run", "tf"], &[("BOTTLEWORKS_FAILPOINT", "term:wf-test")]);
    insta::assert_snapshot!(format!("{shot}{}", person.meta_lines("tf")), @r#"
    $ wf run tf
    COMMIT-TF-001: failed at test: told to end (SIGTERM)
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    [1]
    STATUS=implement
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    "#);
}

#[test]
fn a_killed_run_is_finished_by_the_next() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, APPROVE);
    let killed = person.shot(&["run", "tf"], &[("BOTTLEWORKS_FAILPOINT", "wf-review")]);
    let next = person.shot(&["run", "tf"], &[]);
    let runs = person.runs();
    let first = person.file(&runs[0].join("run_summary.md"));
    let last = person.file(&person.last_run().join("run_summary.md"));
    let notes = last.split("## Notes").nth(1).unwrap_or("\n").to_owned();
    insta::assert_snapshot!(format!("{killed}{next}\n{first}\nnotes of the next run:{notes}"), @r#"
    $ wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    [a signal]
    $ wf run tf
    COMMIT-TF-001: passed
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: try it: wf uat list
    ! > implement
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [0]

    # Run [STAMP]_app_tf_COMMIT-TF-001

    - Project: app
    - Workstream: tf
    - Micro-commit: COMMIT-TF-001
    - Status: failed
    - Failed stage: review
    - Started: [TIME]
    - Ended: [TIME] ([N] s)

    ## Stages

    | Stage | Status | Seconds | Notes |
    |---|---|---|---|

    ## Notes

    the process died; this result was written by the next run

    notes of the next run:

    recovered the run [STAMP]_app_tf_COMMIT-TF-001, whose process died in review
    resumed [SHA] from the run [STAMP]_app_tf_COMMIT-TF-001, which ended without a verdict
    "#);
}
