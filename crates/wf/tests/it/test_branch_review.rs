//! What stands before a merge: the review of the whole branch, the gate test and conflicts, and the fixes they add to the plan.

use testkit::part::{Part, require};

use crate::play::{APPROVE, GOOD, OBEDIENT, PROFILE, REJECT, person_with_one};
use crate::support::{ONE_DONE, Person, read, write};

/// A workstream that is merge-ready, with scripted agents.
fn ready(profile: &str) -> Option<Person> {
    require(Part::Bwrap)?;
    let person = Person::accepted();
    person.profile(&format!("{PROFILE}{profile}"));
    person.cast(GOOD, APPROVE);
    Some(person)
}

fn plan(person: &Person) -> String {
    read(&person.workstream_dir("tf").join("plan.md"))
}

/// A reviewer that sees the whole change and no less.
const SEES_ALL: &str = r#"
[[step]]
run = "grep -q '^+x' /harness-state/run/diff.patch && grep -q 'Review a whole branch' /harness-state/run/harness/instructions.txt"
[[step]]
print = '''{"version": 1, "decision": "approve", "blockers": []}
'''
"#;

#[test]
fn objections_to_the_whole_branch_become_fix_micro_commits() {
    let Some(person) = ready("") else { return };
    person.cast(OBEDIENT, REJECT);
    let reviewed = person.transcript(&[&["review", "tf"], &["merge", "tf"], &["review", "tf"]]);
    // The name of a second run has a number if it starts in the same second.
    let reviewed = reviewed.replace("_tf_review-2", "_tf_review");
    insta::assert_snapshot!(format!("{reviewed}{}", plan(&person)), @r#"
    $ wf review tf
    tf: the reviewer requested changes: mk/test.mk:1: no target (add one)
      added to the plan: COMMIT-TF-002; do it: wf run tf --loop, or drop it: wf plan drop COMMIT-TF-002 -w tf
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_review
    ! > reviewing the whole branch
    !   print: {"version": 1, "decision": "request_changes", "blockers": [{"file": "mk/test.mk", "line": 1, "issue": "no target", "severity": "major", "fix_hint": "add one"}]}
    [6]
    $ wf merge tf
    ! error: tf is not merge-ready: its status is implement
    [8]
    $ wf review tf
    tf: the reviewer requested changes: mk/test.mk:1: no target (add one)
      added to the plan: COMMIT-TF-002; do it: wf run tf --loop, or drop it: wf plan drop COMMIT-TF-002 -w tf
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_review
    ! > reviewing the whole branch
    !   print: {"version": 1, "decision": "request_changes", "blockers": [{"file": "mk/test.mk", "line": 1, "issue": "no target", "severity": "major", "fix_hint": "add one"}]}
    [6]
    # Plan

    ### COMMIT-TF-001: Add test harness

    Acceptance:
    - it runs

    Done: [x]

    ### COMMIT-TF-002: Fix mk/test.mk:1: no target (add one)

    The review of the whole branch demands this:

    > mk/test.mk:1: no target (add one)

    Acceptance:
    - the reviewer's objection is met: mk/test.mk:1: no target (add one)

    Done: [ ]
    "#);
    // The fix is done like any other micro-commit, and then a person accepts again.
    person.cast(OBEDIENT, APPROVE);
    person.ok(&["run", "tf"]);
    assert_eq!(person.meta("tf", "STATUS"), "uat:pending");
    person.ok(&["uat", "pass", "UAT-002"]);
    person.ok(&["merge", "tf"]);
}

#[test]
fn a_merge_waits_for_the_review_if_the_profile_asks_for_it() {
    let Some(person) = ready("BRANCH_REVIEW=true\n") else { return };
    person.cast(GOOD, REJECT);
    person.refused(&["merge", "tf"], 6, &["requested changes", "COMMIT-TF-002"]);
    assert_eq!(person.meta("tf", "STATUS"), "implement");
    person.ok(&["plan", "drop", "COMMIT-TF-002", "-w", "tf"]);
    person.cast(GOOD, SEES_ALL);
    person.ok(&["review", "tf"]);
    assert_eq!(person.meta("tf", "REVIEWED_SHA"), person.worktree("tf").head());
    let runs = person.runs().len();
    person.cast(GOOD, REJECT);
    // This tip was approved: only the gate test runs.
    assert!(person.ok(&["merge", "tf"]).contains("Merged tf into main"));
    assert_eq!(person.runs().len(), runs + 1);
}

#[test]
fn an_approval_of_an_older_tip_does_not_count() {
    let Some(person) = ready("BRANCH_REVIEW=true\n") else { return };
    person.ok(&["review", "tf"]);
    person.worktree("tf").write("late", "y\n").commit("COMMIT-TF-001: late");
    person.cast(GOOD, REJECT);
    person.refused(&["merge", "tf"], 6, &["requested changes"]);
    person.ok(&["plan", "drop", "COMMIT-TF-002", "-w", "tf"]);
    let output = person.wf(&["merge", "tf", "--unreviewed"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("was not reviewed"), "{}", output.snapshot());
}

#[test]
fn a_reviewer_that_says_nothing_is_no_approval() {
    let Some(person) = ready("BRANCH_REVIEW=true\n") else { return };
    person.cast(GOOD, "[[step]]\nprint = \"fine\\n\"\n");
    person.refused(&["merge", "tf"], 6, &["no JSON object with a decision"]);
    assert_eq!(person.meta("tf", "STATUS"), "merge-ready");
    assert_eq!(person.meta("tf", "REVIEWED_SHA"), "");
}

#[test]
fn a_gate_test_that_fails_becomes_a_fix_micro_commit() {
    let person = Person::accepted();
    person
        .worktree("tf")
        .write("Makefile", "test-unit:\n\t@echo wrong; false\n")
        .commit("COMMIT-TF-001: gate");
    let merged = person.transcript(&[&["merge", "tf"], &["merge", "tf"]]);
    insta::assert_snapshot!(format!("{merged}{}", plan(&person)), @"
    $ wf merge tf
    tf: the gate test failed; see [ROOT]/work/app.ops/runs/[STAMP]_app_tf_merge/tests/merge-gate/output.log
      added to the plan: COMMIT-TF-002; do it: wf run tf --loop, or drop it: wf plan drop COMMIT-TF-002 -w tf
    ! warning: feat/tf is not what UAT-001 accepted ([SHA]): 1 commit came after it; see: git log [SHA]..[SHA]
    [5]
    $ wf merge tf
    ! error: tf is not merge-ready: its status is implement
    [8]
    # Plan

    ### COMMIT-TF-001: Add test harness

    Acceptance:
    - it runs

    Done: [x]

    ### COMMIT-TF-002: Make the gate test pass: make test-unit

    Before the merge, the gate test failed. The end of what it printed:

    > wrong
    > make: *** [Makefile:2: test-unit] Error 1

    Acceptance:
    - make test-unit passes

    Done: [ ]
    ");
}

#[test]
fn a_plan_that_was_extended_after_the_acceptance_is_not_merged() {
    let person = Person::accepted();
    person.plan("tf", &format!("{ONE_DONE}\n### COMMIT-TF-002: More\n\nDone: [ ]\n"));
    person.refused(&["merge", "tf"], 8, &["COMMIT-TF-002 is still in the plan", "wf run tf"]);
}

#[test]
fn a_killed_failure_of_an_acceptance_test_plans_its_fix_once() {
    for point in ["", "wf-fix-planned"] {
        let person = Person::with_plan(ONE_DONE);
        person.wf(&["run", "tf"]);
        let fail = ["uat", "fail", "UAT-001", "--issues", "too slow"];
        let mut command = person.command(&fail);
        person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", point));
        person.ok(&fail);
        assert_eq!(
            plan(&person).matches("Fix acceptance test 001: too slow").count(),
            1,
            "{point}"
        );
        assert_eq!(person.meta("tf", "STATUS"), "uat:failed", "{point}");
    }
}

#[test]
fn the_fix_of_a_failed_acceptance_test_is_run() {
    let Some(person) = person_with_one() else { return };
    person.cast(OBEDIENT, APPROVE);
    person.wf(&["run", "tf"]);
    let failed = person
        .transcript(&[&["uat", "fail", "UAT-001", "--issues", "too slow", "--issues", "ugly"]]);
    person.ok(&["run", "tf"]);
    assert_eq!(person.subjects()[0], "COMMIT-TF-002: Fix acceptance test 001: too slow");
    insta::assert_snapshot!(format!("{failed}{}", plan(&person)), @r#"
    $ wf uat fail UAT-001 --issues "too slow" --issues ugly
    UAT-001 failed; tf is uat:failed
      COMMIT-TF-002 was added to the plan; change it: wf plan edit COMMIT-TF-002 -w tf
    ! Next: run the fix in the plan: wf run tf
    [0]
    # Plan

    ### COMMIT-TF-001: Add test harness

    Acceptance:
    - it runs

    Done: [x]

    ### COMMIT-TF-002: Fix acceptance test 001: too slow

    A person did not accept the work (UAT-001).

    Acceptance:
    - too slow
    - ugly

    Done: [x]
    "#);
}

/// An agent that resolves the conflict in `feature` with this text, after these commands.
fn resolver(more: &str, text: &str) -> String {
    format!(
        "[[step]]\nrun = \"test -f .git/MERGE_HEAD && grep -q '<<<<<<<' feature && {more} printf '{text}' > feature && git add -A && git commit -q --no-edit\"\n[[step]]\nprint = '''{{\"status\": \"success\"}}\n'''\n"
    )
}

/// The same with main in conflict.
fn in_conflict(profile: &str) -> Option<Person> {
    let person = ready(profile)?;
    person.repo.write("feature", "other\n").write("theirs", "y\n").commit("on main");
    Some(person)
}

#[test]
fn the_agent_resolves_what_the_resolver_leaves_and_the_gate_runs_on_that() {
    let Some(person) = in_conflict("") else { return };
    person.cast(&resolver("", "x\\\\nother\\\\n"), APPROVE);
    let head = person.worktree("tf").head();
    insta::assert_snapshot!(person.transcript(&[&["merge", "tf"]]), @r#"
    $ wf merge tf
    Merged main into tf at [SHA]
      resolved feature: by scripted
    Merged tf into main at [SHA] (merge commit)
    ! > the agent resolves the conflicts that are left
    !   run: test -f .git/MERGE_HEAD && grep -q '<<<<<<<' feature &&  printf 'x\nother\n' > feature && git add -A && git commit -q --no-edit
    !   print: {"status": "success"}
    ! Next: wf close tf
    [0]
    "#);
    let worktree = person.worktree("tf");
    let parents = worktree.git(&["log", "-1", "--format=%P", "HEAD"]);
    assert_eq!(parents.split(' ').next(), Some(head.as_str()));
    insta::assert_snapshot!(worktree.git(&["log", "-1", "--format=%an: %B", "HEAD"]), @"
    wf: Merge main into workstream tf

    Conflicts that an agent (scripted) resolved:

    - feature
    ");
    assert_eq!(person.repo.read("feature"), "x\nother\n");
    assert_eq!(person.repo.read("theirs"), "y\n");
    assert_eq!(worktree.git(&["status", "--porcelain"]), "");
    assert!(!person.runs().iter().any(|run| run.join("workspace").exists()), "the copy is gone");
}

#[test]
fn a_merge_of_the_agent_that_breaks_the_gate_is_not_merged() {
    let Some(person) = in_conflict("TEST_CMD_UNIT=\"grep -q x feature\"\n") else { return };
    let main = person.repo.sha("main");
    person.cast(&resolver("", "other\\\\n"), APPROVE);
    person.refused(&["merge", "tf"], 5, &["gate test failed", "COMMIT-TF-002"]);
    assert_eq!(person.repo.sha("main"), main);
}

#[test]
fn a_merge_of_the_agent_is_judged_by_the_host() {
    let Some(person) = in_conflict("") else { return };
    let (main, head) = (person.repo.sha("main"), person.worktree("tf").head());
    let wrong = [
        (resolver("echo z > README.md;", "x\\\\n"), "README.md was changed and is not in conflict"),
        (
            resolver("", "<<<<<<< HEAD\\\\nx\\\\n=======\\\\nother\\\\n>>>>>>> main\\\\n"),
            "has conflict markers",
        ),
        (
            "[[step]]\nrun = \"git merge --abort && echo x2 > feature && git commit -qam other\"\n[[step]]\nprint = '{\"status\": \"success\"}'\n".to_owned(),
            "does not contain both sides",
        ),
        (resolver("", "token ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\\\n"), "secret"),
        (
            "[[step]]\nprint = '''{\"status\": \"failure\", \"notes\": \"too hard\"}\n'''\n"
                .to_owned(),
            "gave up: too hard",
        ),
    ];
    for (script, words) in wrong {
        person.cast(&script, APPROVE);
        person.refused(&["merge", "tf"], 8, &["conflicts with main in feature", words, "git -C"]);
        assert_eq!(
            (person.repo.sha("main"), person.worktree("tf").head()),
            (main.clone(), head.clone()),
            "{words}"
        );
        assert_eq!(person.meta("tf", "STATUS"), "merge-ready", "{words}");
        assert_eq!(person.worktree("tf").git(&["status", "--porcelain"]), "", "{words}");
    }
    person.refused(
        &["merge", "tf", "--no-agent"],
        8,
        &["and nothing was changed; merge it by hand"],
    );
    person.refused(
        &["update", "tf", "--no-agent"],
        8,
        &["and nothing was changed; merge it by hand"],
    );
}

#[test]
fn an_update_uses_the_agent_too() {
    let Some(person) = in_conflict("") else { return };
    person.cast(&resolver("", "x\\\\nother\\\\n"), APPROVE);
    insta::assert_snapshot!(person.transcript(&[&["update", "tf", "--json"], &["update", "tf"]]), @r#"
    $ wf update tf --json
    {
      "base_branch": "main",
      "updated": {
        "by_agent": {
          "agent": "scripted",
          "paths": [
            "feature"
          ]
        },
        "commit": "[SHA]",
        "how": "merged",
        "receipts": []
      },
      "workstream": "tf"
    }
    ! > the agent resolves the conflicts that are left
    !   run: test -f .git/MERGE_HEAD && grep -q '<<<<<<<' feature &&  printf 'x\nother\n' > feature && git add -A && git commit -q --no-edit
    !   print: {"status": "success"}
    [0]
    $ wf update tf
    tf contains main already
    [0]
    "#);
    write(&person.repo.dir().join("unrelated"), "");
}
