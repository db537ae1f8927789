//! Supervision, approvals, rejections and loops.

use crate::play::{APPROVE, GOOD, PROFILE, REJECT, person, person_with_one};
use crate::support::{ONE, Person};

fn two(profile: &str) -> Option<Person> {
    let person = person(&format!("{ONE}\n### COMMIT-TF-002: And more\n\nDone: [ ]\n"))?;
    person.profile(&format!("{PROFILE}{profile}"));
    Some(person)
}

#[test]
fn a_supervised_loop_pauses_and_waits_for_an_approval() {
    let Some(person) = two("SUPERVISED_MODE=true\n") else { return };
    insta::assert_snapshot!(person.transcript(&[
        &["run", "tf", "--loop"],
        &["run", "tf", "--loop"],
        &["approve", "tf"],
    ]), @r#"
    $ wf run tf --loop
    COMMIT-TF-001: passed
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: approve it: wf approve tf, or wf reject tf -m REASON
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    ! Paused after this micro-commit (HITL_MODE or SUPERVISED_MODE)
    [0]
    $ wf run tf --loop
    COMMIT-TF-002: blocked at clarification: the last micro-commit waits for your approval: wf approve tf, or wf reject tf -m REASON
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-002
    [8]
    $ wf approve tf
    Approved COMMIT-TF-001
    ! Continue: wf run tf --loop
    [0]
    "#);
}

#[test]
fn a_rejection_is_recorded_for_the_next_attempt() {
    let Some(person) = two("HITL_MODE=strict\n") else { return };
    person.run_once(0);
    let shots = person.transcript(&[
        &["reject", "tf", "-m", " "],
        &["reject", "tf", "-m", "wrong folder"],
        &["status", "tf"],
    ]);
    let dir = person.workstream_dir("tf");
    let files = ["rejections.json", "notes.md"].map(|name| person.file(&dir.join(name)));
    insta::assert_snapshot!(format!("{shots}{}", files.concat()), @r#"
    $ wf reject tf -m " "
    ! error: give a reason for the agent: -m REASON
    [2]
    $ wf reject tf -m "wrong folder"
    Rejected COMMIT-TF-001
    ! Repeat it: wf run tf
    [0]
    $ wf status tf
    workstream     tf: Test framework
    status         implement
    branch         feat/tf from main at [SHA]
    worktree       [ROOT]/work/app.ops/worktrees/tf
    expects        mk/ tests/
    touched        1 file, refreshed [TIME]
    plan           0 of 2 done
                   [ ] COMMIT-TF-001: Add test harness
                   [ ] COMMIT-TF-002: And more
    last run       [STAMP]_app_tf_COMMIT-TF-001: passed
    [0]
    [
      {
        "commit": "COMMIT-TF-001",
        "sha": "[SHA]",
        "message": "wrong folder",
        "by": "ada",
        "at": "[TIME]"
      }
    ]
    # Notes: Test framework
    - [TIME]: ada rejected COMMIT-TF-001: wrong folder
    "#);
}

#[test]
fn verdicts_as_json() {
    let Some(person) = two("HITL_MODE=strict\n") else { return };
    person.run_once(0);
    insta::assert_snapshot!(person.transcript(&[&["approve", "tf", "--json"], &["reject", "tf", "-m", "no", "--json"]]), @r#"
    $ wf approve tf --json
    {
      "approved": "COMMIT-TF-001",
      "sha": "[SHA]",
      "workstream": "tf"
    }
    ! Continue: wf run tf --loop
    [0]
    $ wf reject tf -m no --json
    {
      "rejected": "COMMIT-TF-001",
      "workstream": "tf"
    }
    ! Repeat it: wf run tf
    [0]
    "#);
}

#[test]
fn nothing_was_accepted_yet() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(person.transcript(&[&["approve", "tf"], &["reject", "tf", "-m", "x"], &["approve", "nope"]]), @"
    $ wf approve tf
    ! error: tf has accepted no micro-commit yet; make one with: wf run tf
    [2]
    $ wf reject tf -m x
    ! error: tf has accepted no micro-commit yet; make one with: wf run tf
    [2]
    $ wf approve nope
    ! error: there is no workstream 'nope'; see: wf list
    [2]
    ");
}

#[test]
fn a_loop_until_acceptance() {
    let Some(person) = person_with_one() else { return };
    insta::assert_snapshot!(person.transcript(&[&["run", "tf", "--loop"]]), @r#"
    $ wf run tf --loop
    COMMIT-TF-001: passed
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
    no micro-commit: blocked at uat: blocked by UAT-001
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: try it: wf uat show UAT-001 -w tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [8]
    "#);
}

#[test]
fn a_loop_that_stops_at_a_failure_and_notifies() {
    let Some(person) = two("NOTIFY_CMD=\"no-such-notifier\"\n") else { return };
    person.cast(GOOD, REJECT);
    insta::assert_snapshot!(person.transcript(&[&["run", "tf", "--loop"]]), @r#"
    $ wf run tf --loop
    COMMIT-TF-001: failed at review: the reviewer requested changes: mk/test.mk:1: no target (add one)
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "request_changes", "blockers": [{"file": "mk/test.mk", "line": 1, "issue": "no target", "severity": "major", "fix_hint": "add one"}]}
    ! warning: the notification was not sent: NOTIFY_CMD: no-such-notifier was not found
    [6]
    "#);
}

#[test]
fn a_loop_as_json() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, APPROVE);
    let text = person.shot(&["run", "tf", "--loop", "--json"], &[]);
    insta::assert_snapshot!(text, @r#"
    $ wf run tf --loop --json
    {
      "blocked_by": [],
      "exit_code": 0,
      "failed_stage": null,
      "message": "",
      "microcommit": "COMMIT-TF-001",
      "next": null,
      "path": "[ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001",
      "run": "[STAMP]_app_tf_COMMIT-TF-001",
      "status": "passed",
      "tested": "yes",
      "untested": false
    }
    {
      "blocked_by": [
        "UAT-001"
      ],
      "exit_code": 8,
      "failed_stage": "uat",
      "message": "blocked by UAT-001",
      "microcommit": null,
      "next": "try it: wf uat show UAT-001 -w tf",
      "path": "[ROOT]/work/app.ops/runs/[STAMP]_app_tf_none",
      "run": "[STAMP]_app_tf_none",
      "status": "blocked",
      "tested": null,
      "untested": false
    }
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [8]
    "#);
}
