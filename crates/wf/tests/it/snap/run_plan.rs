//! Runs that end before any agent because of the plan, the profile or a gate.

use crate::support::{ONE, Person, write};

/// Runs `tf` and shows the output, the summary of the run and the state afterwards.
fn run(person: &Person) -> String {
    let shot = person.shot(&["run", "tf", "--once"], &[]);
    let run = person.runs().pop().expect("a run");
    let summary = person.file(&run.join("run_summary.md"));
    format!("{shot}\n{summary}\n{}", person.meta_lines("tf"))
}

#[test]
fn a_plan_that_is_missing() {
    let person = Person::with_plan(ONE);
    std::fs::remove_file(person.workstream_dir("tf").join("plan.md")).expect("gone");
    insta::assert_snapshot!(run(&person), @"
    $ wf run tf --once
    no micro-commit: failed at load: the plan is missing: [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf/plan.md
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: look: wf doctor
    [4]

    # Run [STAMP]_app_tf_none

    - Project: app
    - Workstream: tf
    - Micro-commit: none
    - Status: failed
    - Failed stage: load
    - Base: [SHA]
    - Started: [TIME]
    - Ended: [TIME] ([N] s)

    ## Stages

    | Stage | Status | Seconds | Notes |
    |---|---|---|---|
    | lock | passed | [N] |  |
    | load | failed | [N] | the plan is missing: [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf/plan.md |
    | refresh | passed | [N] |  |

    ## Notes

    the plan is missing: [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf/plan.md

    STATUS=planning
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_none
    LAST_COMMIT_SHA=
    ");
}

#[test]
fn a_plan_without_micro_commits() {
    let person = Person::with_plan("# nothing yet\n");
    insta::assert_snapshot!(run(&person), @"
    $ wf run tf --once
    no micro-commit: failed at select: the plan has no micro-commits
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: plan: wf plan add TITLE -w tf
    [4]

    # Run [STAMP]_app_tf_none

    - Project: app
    - Workstream: tf
    - Micro-commit: none
    - Status: failed
    - Failed stage: select
    - Base: [SHA]
    - Started: [TIME]
    - Ended: [TIME] ([N] s)

    ## Stages

    | Stage | Status | Seconds | Notes |
    |---|---|---|---|
    | lock | passed | [N] |  |
    | load | passed | [N] |  |
    | select | failed | [N] | the plan has no micro-commits |
    | refresh | passed | [N] |  |

    ## Notes

    the plan has no micro-commits

    STATUS=planning
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_none
    LAST_COMMIT_SHA=
    ");
}

#[test]
fn a_plan_with_a_mistake() {
    let person = Person::with_plan("# Plan\n\n### COMMIT-TF-1: bad\nDone: [ ]\n");
    insta::assert_snapshot!(run(&person), @"
    $ wf run tf --once
    no micro-commit: failed at select: [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf/plan.md: line 3: a micro-commit heading must read '### COMMIT-XX-001: title'
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: plan: wf plan add TITLE -w tf
    [2]

    # Run [STAMP]_app_tf_none

    - Project: app
    - Workstream: tf
    - Micro-commit: none
    - Status: failed
    - Failed stage: select
    - Base: [SHA]
    - Started: [TIME]
    - Ended: [TIME] ([N] s)

    ## Stages

    | Stage | Status | Seconds | Notes |
    |---|---|---|---|
    | lock | passed | [N] |  |
    | load | passed | [N] |  |
    | select | failed | [N] | [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf/plan.md: line 3: a micro-commit heading must read '### COMMIT-XX-001: title' |
    | refresh | passed | [N] |  |

    ## Notes

    [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf/plan.md: line 3: a micro-commit heading must read '### COMMIT-XX-001: title'

    STATUS=planning
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_none
    LAST_COMMIT_SHA=
    ");
}

#[test]
fn a_profile_with_a_mistake() {
    let person = Person::with_plan(ONE);
    person.profile("TEST_TIMEOUT=soon\n");
    insta::assert_snapshot!(run(&person), @"
    $ wf run tf --once
    no micro-commit: failed at load: [ROOT]/work/app.ops/workflow/projects/app/project_profile.env: TEST_TIMEOUT must be a number of seconds from 1 to 86400
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: look: wf doctor
    [2]

    # Run [STAMP]_app_tf_none

    - Project: app
    - Workstream: tf
    - Micro-commit: none
    - Status: failed
    - Failed stage: load
    - Base: [SHA]
    - Started: [TIME]
    - Ended: [TIME] ([N] s)

    ## Stages

    | Stage | Status | Seconds | Notes |
    |---|---|---|---|
    | lock | passed | [N] |  |
    | load | failed | [N] | [ROOT]/work/app.ops/workflow/projects/app/project_profile.env: TEST_TIMEOUT must be a number of seconds from 1 to 86400 |
    | refresh | passed | [N] |  |

    ## Notes

    [ROOT]/work/app.ops/workflow/projects/app/project_profile.env: TEST_TIMEOUT must be a number of seconds from 1 to 86400

    STATUS=planning
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_none
    LAST_COMMIT_SHA=
    ");
}

#[test]
fn a_profile_with_unknown_keys_and_no_key_for_the_model() {
    let person = Person::with_plan(ONE);
    person.profile("TEST_IN=host\nCOLOUR=blue\n");
    person.worktree("tf").write("stray.txt", "x");
    insta::assert_snapshot!(run(&person), @"
    $ wf run tf --once
    COMMIT-TF-001: failed at implement: the model's key is not there: set OPENAI_API_KEY, or name a file that holds it (AGENT_*_KEY_VAR, _KEY_FILE or _KEY_CMD in the profile)
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    [2]

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

    [ROOT]/work/app.ops/workflow/projects/app/project_profile.env: unknown key COLOUR
    uncommitted before the run: stray.txt
    the model's key is not there: set OPENAI_API_KEY, or name a file that holds it (AGENT_*_KEY_VAR, _KEY_FILE or _KEY_CMD in the profile)

    STATUS=implement
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    ");
}

#[test]
fn a_product_that_moved() {
    let person = Person::with_plan(ONE);
    let project = person.project_dir().join("project.env");
    let moved = crate::support::read(&project).replace("/work/app\n", "/work/moved\n");
    write(&project, &moved);
    let shot = person.shot(&["run", "tf", "--project", "app"], &[]);
    insta::assert_snapshot!(shot, @"
    $ wf run tf --project app
    no micro-commit: failed at load: REPO_PATH [ROOT]/work/moved does not exist; correct project.env
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: look: wf doctor
    [2]
    ");
}

#[test]
fn a_blocking_question() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "blocking");
    person.question("tf", "CLQ-002", "nonsense");
    person.question("tf", "CLQ-003", "low");
    insta::assert_snapshot!(run(&person), @"
    $ wf run tf --once
    COMMIT-TF-001: blocked at clarification: blocked by CLQ-001, CLQ-002
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: answer: wf clarify show CLQ-001 -w tf
    [8]

    # Run [STAMP]_app_tf_COMMIT-TF-001

    - Project: app
    - Workstream: tf
    - Micro-commit: COMMIT-TF-001
    - Status: blocked
    - Failed stage: clarification
    - Blocked by: CLQ-001,CLQ-002
    - Base: [SHA]
    - Started: [TIME]
    - Ended: [TIME] ([N] s)

    ## Stages

    | Stage | Status | Seconds | Notes |
    |---|---|---|---|
    | lock | passed | [N] |  |
    | load | passed | [N] |  |
    | select | passed | [N] |  |
    | clarification | blocked | [N] | CLQ-001,CLQ-002 |
    | refresh | passed | [N] |  |

    ## Notes

    blocked by CLQ-001, CLQ-002

    STATUS=blocked:clarification
    BLOCKED_BY=CLQ-001,CLQ-002
    LAST_RESULT=blocked
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    ");
}

#[test]
fn a_workstream_that_does_not_exist() {
    let person = Person::with_plan(ONE);
    let shots = person.transcript(&[&["run", "tff"], &["run", "../tf"], &["run"]]);
    let run = person.runs().pop().expect("a run");
    insta::assert_snapshot!(format!("{shots}\n{}", person.file(&run.join("run_summary.md"))), @r#"
    $ wf run tff
    no micro-commit: failed at lock: there is no workstream 'tff'; did you mean 'tf'? See: wf list
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tff_none
      Next: who runs: wf status tff
    [2]
    $ wf run ../tf
    ! error: "../tf" is not a valid workstream id: 1 to 64 of a-z, 0-9, '_' and '-', starting with a letter
    [2]
    $ wf run
    ! error: which workstream? Name it, run the command in its worktree, or choose one: wf use ID
    [2]

    # Run [STAMP]_app_tff_none

    - Project: app
    - Workstream: tff
    - Micro-commit: none
    - Status: failed
    - Failed stage: lock
    - Started: [TIME]
    - Ended: [TIME] ([N] s)

    ## Stages

    | Stage | Status | Seconds | Notes |
    |---|---|---|---|
    | lock | failed | [N] | there is no workstream 'tff'; did you mean 'tf'? See: wf list |

    ## Notes

    there is no workstream 'tff'; did you mean 'tf'? See: wf list
    "#);
}

#[test]
fn a_workstream_that_is_merge_ready() {
    let person = Person::with_plan(crate::support::ONE_DONE);
    person.set_meta("tf", "STATUS", "merge-ready");
    insta::assert_snapshot!(run(&person), @"
    $ wf run tf --once
    no micro-commit: passed
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: merge: wf merge tf
    [0]

    # Run [STAMP]_app_tf_none

    - Project: app
    - Workstream: tf
    - Micro-commit: none
    - Status: passed
    - Base: [SHA]
    - Started: [TIME]
    - Ended: [TIME] ([N] s)

    ## Stages

    | Stage | Status | Seconds | Notes |
    |---|---|---|---|
    | lock | passed | [N] |  |
    | load | passed | [N] |  |
    | select | passed | [N] |  |
    | refresh | passed | [N] |  |

    STATUS=merge-ready
    BLOCKED_BY=
    LAST_RESULT=passed
    LAST_RUN_ID=[STAMP]_app_tf_none
    LAST_COMMIT_SHA=
    ");
}
