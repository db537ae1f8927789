//! `wf list`, `wf status`, `wf refresh`, `wf log` and `wf show`: output for people.

use crate::support::{ONE, Person, write};

fn three() -> Person {
    let person = Person::with_plan(ONE);
    person.ok(&["new", "search", "Search", "src/"]);
    person.ok(&["new", "manual", "Write the manual", "docs/"]);
    person.worktree("tf").write("mk/a", "1").write("shared", "1").commit("COMMIT-TF-001: a");
    person.worktree("search").write("src/s", "1").write("shared", "2").commit("COMMIT-S-001: s");
    person
}

#[test]
fn no_workstreams() {
    let person = Person::new();
    insta::assert_snapshot!(person.transcript(&[&["list"], &["list", "--json"], &["refresh"], &["clarify", "list"], &["uat", "list"], &["prune"]]), @r#"
    $ wf list
    No active workstreams. Start one: wf new <id> "<title>" "<paths>"
    [0]
    $ wf list --json
    []
    [0]
    $ wf refresh
    Refreshed 0 workstreams, 0 changed
    [0]
    $ wf clarify list
    No pending questions.
    [0]
    $ wf uat list
    No pending acceptance tests.
    [0]
    $ wf prune
    No run has a copy left.
    [0]
    "#);
}

#[test]
fn workstreams_that_share_files() {
    let person = three();
    insta::assert_snapshot!(person.transcript(&[&["refresh"], &["list"], &["refresh"], &["refresh", "tf", "--json"]]), @r#"
    $ wf refresh
    Refreshed 3 workstreams, 2 changed
    [0]
    $ wf list
     ID      STATUS    BRANCH       FILES  OVERLAP   WAITS FOR  TITLE
     manual  planning  feat/manual  0                           Write the manual
     search  planning  feat/search  2      1 shared             Search
     tf      planning  feat/tf      2      1 shared             Test framework
    ! warning: 2 workstreams touch files that others touch too; see: wf conflicts ID
    [0]
    $ wf refresh
    Refreshed 3 workstreams, 0 changed
    [0]
    $ wf refresh tf --json
    [
      {
        "changed": false,
        "missing": false,
        "workstream": "tf"
      }
    ]
    [0]
    "#);
}

#[test]
fn a_workstream_that_waits_for_answers_is_listed_with_its_questions() {
    let person = three();
    person.ok(&["clarify", "ask", "search", "--question", "Which?"]);
    person.ok(&["use", "search"]);
    insta::assert_snapshot!(person.transcript(&[&["list"], &["status"]]), @"
    $ wf list
     ID       STATUS                 BRANCH       FILES  OVERLAP  WAITS FOR  TITLE
     manual   planning               feat/manual  0                          Write the manual
     search*  blocked:clarification  feat/search  0               CLQ-001    Search
     tf       planning               feat/tf      0                          Test framework
    [0]
    $ wf status
    workstream     search: Search
    status         blocked:clarification
    branch         feat/search from main at [SHA]
    worktree       [ROOT]/work/app.ops/worktrees/search
    expects        src/
    touched        0 files, refreshed [TIME]
    plan           0 of 0 done
    questions      CLQ-001
    needs you      answer: wf clarify list
    [0]
    ");
}

#[test]
fn one_bad_meta_file_does_not_hide_the_others() {
    let person = three();
    person.set_meta("search", "STATUS", "odd");
    insta::assert_snapshot!(person.transcript(&[&["list"], &["refresh"], &["status", "search"], &["clarify", "list"]]), @"
    $ wf list
     ID      STATUS    BRANCH       FILES  OVERLAP  WAITS FOR  TITLE
     manual  planning  feat/manual  0                          Write the manual
     tf      planning  feat/tf      0                          Test framework
    ! warning: [ROOT]/work/app.ops/workflow/projects/app/workstreams/search/meta.env: STATUS is not one of planning, implement, blocked:clarification, blocked:review, blocked:test, docs, uat:pending, uat:failed, merge-ready, done
    [2]
    $ wf refresh
    Refreshed 2 workstreams, 1 changed
    ! warning: [ROOT]/work/app.ops/workflow/projects/app/workstreams/search/meta.env: STATUS is not one of planning, implement, blocked:clarification, blocked:review, blocked:test, docs, uat:pending, uat:failed, merge-ready, done
    [2]
    $ wf status search
    ! error: [ROOT]/work/app.ops/workflow/projects/app/workstreams/search/meta.env: STATUS is not one of planning, implement, blocked:clarification, blocked:review, blocked:test, docs, uat:pending, uat:failed, merge-ready, done
    [2]
    $ wf clarify list
    No pending questions.
    ! warning: [ROOT]/work/app.ops/workflow/projects/app/workstreams/search/meta.env: STATUS is not one of planning, implement, blocked:clarification, blocked:review, blocked:test, docs, uat:pending, uat:failed, merge-ready, done
    [0]
    ");
}

#[test]
fn a_missing_worktree() {
    let person = three();
    std::fs::remove_dir_all(person.worktree("manual").dir()).expect("gone");
    insta::assert_snapshot!(person.transcript(&[&["refresh"], &["refresh", "manual"], &["docs", "status", "manual"], &["status", "manual"]]), @"
    $ wf refresh
    Refreshed 3 workstreams, 2 changed
    ! warning: the worktree of manual is gone: [ROOT]/work/app.ops/worktrees/manual
    [0]
    $ wf refresh manual
    ! error: the worktree of manual is gone: [ROOT]/work/app.ops/worktrees/manual
    [2]
    $ wf docs status manual
    ! error: the worktree [ROOT]/work/app.ops/worktrees/manual is gone
    [2]
    $ wf status manual
    workstream     manual: Write the manual
    status         planning
    branch         feat/manual from main at [SHA]
    worktree       [ROOT]/work/app.ops/worktrees/manual
    expects        docs/
    touched        0 files, refreshed [TIME]
    plan           0 of 0 done
    needs you      write the plan, then: wf run manual
    [0]
    ");
}

#[test]
fn uncommitted_changes_are_named_for_one_workstream() {
    let person = three();
    person.worktree("manual").write("draft.md", "x");
    insta::assert_snapshot!(person.transcript(&[&["refresh", "manual"], &["refresh"]]), @"
    $ wf refresh manual
    Refreshed 1 workstreams, 0 changed
    ! warning: manual has uncommitted changes, such as draft.md
    [0]
    $ wf refresh
    Refreshed 3 workstreams, 2 changed
    ! warning: manual has uncommitted changes, such as draft.md
    [0]
    ");
}

#[test]
fn the_table_of_active_workstreams() {
    let person = three();
    person.ok(&["refresh"]);
    insta::assert_snapshot!(person.file(&person.project_dir().join("ACTIVE_WORKSTREAMS.md")), @"
    # Active workstreams: app

    | ID | Branch | Worktree | Status | Title | Expected paths | Last refreshed | Touched files |
    |---|---|---|---|---|---|---|---|
    | manual | feat/manual | [ROOT]/work/app.ops/worktrees/manual | planning | Write the manual | docs/ | [TIME] | 0 |
    | search | feat/search | [ROOT]/work/app.ops/worktrees/search | planning | Search | src/ | [TIME] | 2 |
    | tf | feat/tf | [ROOT]/work/app.ops/worktrees/tf | planning | Test framework | mk/ tests/ | [TIME] | 2 |
    ");
}

#[test]
fn the_status_of_a_plan_with_warnings_and_unknown_keys() {
    let person = Person::with_plan(
        "# Plan\n\n### COMMIT-TF-001: One\n\n- Done: [x]\nDone: [x]\n\n## COMMIT-TF-002: Two\n",
    );
    let path = person.workstream_dir("tf").join("meta.env");
    write(&path, &(crate::support::read(&path) + "COLOUR=blue\n"));
    insta::assert_snapshot!(person.transcript(&[&["status", "tf"]]), @"
    $ wf status tf
    workstream     tf: Test framework
    status         planning
    branch         feat/tf from main at [SHA]
    worktree       [ROOT]/work/app.ops/worktrees/tf
    expects        mk/ tests/
    touched        0 files, refreshed [TIME]
    plan           1 of 1 done
                   [x] COMMIT-TF-001: One
    needs you      write the plan, then: wf run tf
    ! warning: [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf/meta.env: unknown key COLOUR
    ! warning: line 5: this is nearly a Done line; it must read 'Done: [ ]' or 'Done: [x]'
    ! warning: line 8: this heading names a micro-commit but is not of level 3, so it is ignored
    [0]
    ");
}

#[test]
fn the_status_of_a_plan_that_cannot_be_read() {
    let person = Person::with_plan("### COMMIT-TF-1: bad\n");
    insta::assert_snapshot!(person.transcript(&[&["status", "tf"]]), @"
    $ wf status tf
    workstream     tf: Test framework
    status         planning
    branch         feat/tf from main at [SHA]
    worktree       [ROOT]/work/app.ops/worktrees/tf
    expects        mk/ tests/
    touched        0 files, refreshed [TIME]
    plan           [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf/plan.md: line 1: a micro-commit heading must read '### COMMIT-XX-001: title'
    needs you      write the plan, then: wf run tf
    [0]
    ");
}

#[test]
fn the_status_after_a_failed_run() {
    let person = Person::with_plan(ONE);
    person.wf(&["run", "tf"]);
    insta::assert_snapshot!(person.transcript(&[&["status", "tf"], &["log", "tf"]]), @"
    $ wf status tf
    workstream     tf: Test framework
    status         implement
    branch         feat/tf from main at [SHA]
    worktree       [ROOT]/work/app.ops/worktrees/tf
    expects        mk/ tests/
    touched        0 files, refreshed [TIME]
    plan           0 of 1 done
                   [ ] COMMIT-TF-001: Add test harness
    last run       [STAMP]_app_tf_COMMIT-TF-001: failed at implement
    [0]
    $ wf log tf
     RUN                                   STATUS  STAGE      TOOK
     [STAMP]_app_tf_COMMIT-TF-001  failed  implement  [N] s
    [0]
    ");
}

#[test]
fn a_failed_run_is_shown() {
    let person = Person::with_plan(ONE);
    person.wf(&["run", "tf"]);
    insta::assert_snapshot!(person.transcript(&[&["show", "--workstream", "tf"], &["diff", "--workstream", "tf"]]), @"
    $ wf show --workstream tf
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
    | implement | failed | [N] | the model's key is not there: set OPENAI_API_KEY, or name a file that holds it (AGENT_*_KEY_VAR, _KEY_FILE or _KEY_CMD in the profile) |
    | refresh | passed | [N] |  |

    ## Notes

    the model's key is not there: set OPENAI_API_KEY, or name a file that holds it (AGENT_*_KEY_VAR, _KEY_FILE or _KEY_CMD in the profile)

    started        [TIME] UTC
    took           [N] s
    directory      [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
    files          commands.log env_snapshot.txt result.json run.jsonl run.lock run_summary.md
    events         10 events, chain verified
    [0]
    $ wf diff --workstream tf
    ! error: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001 has no diff: it ended before the review
    [2]
    ");
}

#[test]
fn skipping_marks_the_plan_and_the_notes() {
    let person = Person::with_plan(ONE);
    let skipped = person.transcript(&[
        &["skip", "tf", "--commit", "COMMIT-TF-002"],
        &["skip", "tf", "--commit", "TF-001"],
        &["skip", "tf", "-m", "not needed"],
        &["skip", "tf"],
        &["status", "tf"],
    ]);
    let notes = person.file(&person.workstream_dir("tf").join("notes.md"));
    insta::assert_snapshot!(format!("{skipped}{notes}"), @r#"
    $ wf skip tf --commit COMMIT-TF-002
    ! error: the plan has no COMMIT-TF-002; did you mean 'COMMIT-TF-001'?
    [2]
    $ wf skip tf --commit TF-001
    ! error: "TF-001" is not a valid micro-commit id: COMMIT-, then letters, digits, '_' or '-', then '-' and three digits, at most 64 characters
    [2]
    $ wf skip tf -m "not needed"
    Skipped COMMIT-TF-001
    [0]
    $ wf skip tf
    ! error: every micro-commit is done; there is nothing to skip
    [2]
    $ wf status tf
    workstream     tf: Test framework
    status         planning
    branch         feat/tf from main at [SHA]
    worktree       [ROOT]/work/app.ops/worktrees/tf
    expects        mk/ tests/
    touched        0 files, refreshed [TIME]
    plan           1 of 1 done
                   [x] COMMIT-TF-001: Add test harness
    needs you      write the plan, then: wf run tf
    [0]
    # Notes: Test framework
    - [TIME]: ada skipped COMMIT-TF-001: not needed
    "#);
}
