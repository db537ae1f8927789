//! One workstream from its plan to its end, as a transcript.

use crate::play::{APPROVE, OBEDIENT, PLAN, person};
use crate::support::Person;

fn obedient() -> Option<Person> {
    let person = person(PLAN)?;
    person.cast(OBEDIENT, APPROVE);
    Some(person)
}

#[test]
fn from_the_plan_to_the_end() {
    let Some(person) = obedient() else { return };
    insta::assert_snapshot!(person.transcript(&[
        &["run", "tf", "--loop"],
        &["uat", "pass", "UAT-001"],
        &["merge", "tf"],
        &["close", "tf"],
        &["list"],
    ]), @r#"
    $ wf run tf --loop
    COMMIT-TF-001: passed
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
    no micro-commit: blocked at uat: blocked by UAT-001
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: try it: wf uat show UAT-001 -w tf
    ! > implement
    !   run: id=$(grep -o 'COMMIT-TF-00[0-9]' /harness-state/run/harness/instructions.txt | head -n 1) mkdir -p mk && echo "$id" >> mk/test.mk
    !   print: {"status": "success"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [8]
    $ wf uat pass UAT-001
    UAT-001 passed; tf is merge-ready
    ! Next: merge: wf merge tf
    [0]
    $ wf merge tf
    Merged tf into main at [SHA] (fast-forward)
    ! Next: wf close tf
    [0]
    $ wf close tf
    Closed workstream: tf
      Archived to: [ROOT]/work/app.ops/workflow/projects/app/workstreams/_closed/tf-[STAMP]
      Branch kept: feat/tf
    [0]
    $ wf list
    No active workstreams. Start one: wf new <id> "<title>" "<paths>"
    [0]
    "#);
}

#[test]
fn a_failed_acceptance_and_its_fix() {
    let Some(person) = obedient() else { return };
    person.wf(&["run", "tf", "--loop"]);
    let failed = person.transcript(&[&["uat", "fail", "UAT-001", "--issues", "too slow"]]);
    let fixed = person.transcript(&[&["run", "tf", "--loop"], &["uat", "list", "--all"]]);
    insta::assert_snapshot!(format!("{failed}{fixed}"), @r#"
    $ wf uat fail UAT-001 --issues "too slow"
    UAT-001 failed; tf is uat:failed
      COMMIT-TF-002 was added to the plan; change it: wf plan edit COMMIT-TF-002 -w tf
    ! Next: run the fix in the plan: wf run tf
    [0]
    $ wf run tf --loop
    COMMIT-TF-002: passed
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-002
    no micro-commit: blocked at uat: blocked by UAT-002
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: try it: wf uat show UAT-002 -w tf
    ! > implement
    !   run: id=$(grep -o 'COMMIT-TF-00[0-9]' /harness-state/run/harness/instructions.txt | head -n 1) mkdir -p mk && echo "$id" >> mk/test.mk
    !   print: {"status": "success"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [8]
    $ wf uat list --all
     ID       WORKSTREAM  STATUS      CONTENT
     UAT-002  tf          pending     2 scenarios
     UAT-001  tf          superseded  1 scenarios
    [0]
    "#);
}

#[test]
fn the_copies_of_failed_runs() {
    let Some(person) = obedient() else { return };
    person.cast(
        "[[step]]\nprint = '''{\"status\": \"failure\", \"notes\": \"too hard\"}\n'''\n",
        APPROVE,
    );
    person.run_once(4);
    let kept = person.transcript(&[&["prune"], &["prune", "--apply"]]);
    person.cast(OBEDIENT, APPROVE);
    person.run_once(0);
    let removed = person.transcript(&[&["prune"], &["prune", "--apply", "--json"], &["prune"]]);
    insta::assert_snapshot!(format!("{kept}{removed}"), @r#"
    $ wf prune
    Kept the copy of [STAMP]_app_tf_COMMIT-TF-001: its micro-commit was not accepted since, so this may be the only copy of the work
    [0]
    $ wf prune --apply
    Kept the copy of [STAMP]_app_tf_COMMIT-TF-001: its micro-commit was not accepted since, so this may be the only copy of the work
    [0]
    $ wf prune
    Would remove the copy of [STAMP]_app_tf_COMMIT-TF-001: a later run had its micro-commit accepted
    ! error: nothing was deleted, because nobody can be asked here; to delete: wf prune --yes
    [2]
    $ wf prune --apply --json
    [
      {
        "fate": "superseded",
        "removed": true,
        "run": "[STAMP]_app_tf_COMMIT-TF-001"
      }
    ]
    [0]
    $ wf prune
    No run has a copy left.
    [0]
    "#);
}
