//! Runs that end before any agent because of the worktree or the base commit.

use crate::support::{ONE, Person};

/// Runs `tf` and shows the output, the summary of the run and the state afterwards.
fn run(person: &Person) -> String {
    let shot = person.shot(&["run", "tf", "--once"], &[]);
    let run = person.runs().pop().expect("a run");
    let summary = person.file(&run.join("run_summary.md"));
    format!("{shot}\n{summary}\n{}", person.meta_lines("tf"))
}

#[test]
fn a_worktree_that_was_removed() {
    let person = Person::with_plan(ONE);
    std::fs::remove_dir_all(person.worktree("tf").dir()).expect("gone");
    insta::assert_snapshot!(run(&person), @"
    $ wf run tf --once
    no micro-commit: failed at load: the worktree [ROOT]/work/app.ops/worktrees/tf does not exist; it was removed by hand: wf close --force, or add it again with git worktree add
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
    | load | failed | [N] | the worktree [ROOT]/work/app.ops/worktrees/tf does not exist; it was removed by hand: wf close --force, or add it again with git worktree add |
    | refresh | passed | [N] |  |

    ## Notes

    the worktree [ROOT]/work/app.ops/worktrees/tf does not exist; it was removed by hand: wf close --force, or add it again with git worktree add

    STATUS=planning
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_none
    LAST_COMMIT_SHA=
    ");
}

#[test]
fn a_worktree_on_another_branch() {
    let person = Person::with_plan(ONE);
    person.worktree("tf").git(&["switch", "-q", "-c", "elsewhere"]);
    insta::assert_snapshot!(run(&person), @"
    $ wf run tf --once
    no micro-commit: failed at load: the worktree is on elsewhere, not on feat/tf; run: git -C [ROOT]/work/app.ops/worktrees/tf switch feat/tf
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
    | load | failed | [N] | the worktree is on elsewhere, not on feat/tf; run: git -C [ROOT]/work/app.ops/worktrees/tf switch feat/tf |
    | refresh | passed | [N] |  |

    ## Notes

    the worktree is on elsewhere, not on feat/tf; run: git -C [ROOT]/work/app.ops/worktrees/tf switch feat/tf

    STATUS=planning
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_none
    LAST_COMMIT_SHA=
    ");
}

#[test]
fn a_worktree_with_a_detached_head() {
    let person = Person::with_plan(ONE);
    person.worktree("tf").git(&["switch", "-q", "--detach"]);
    insta::assert_snapshot!(run(&person), @"
    $ wf run tf --once
    no micro-commit: failed at load: the worktree is on no branch (HEAD is detached), not on feat/tf; run: git -C [ROOT]/work/app.ops/worktrees/tf switch feat/tf
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
    | load | failed | [N] | the worktree is on no branch (HEAD is detached), not on feat/tf; run: git -C [ROOT]/work/app.ops/worktrees/tf switch feat/tf |
    | refresh | passed | [N] |  |

    ## Notes

    the worktree is on no branch (HEAD is detached), not on feat/tf; run: git -C [ROOT]/work/app.ops/worktrees/tf switch feat/tf

    STATUS=planning
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_none
    LAST_COMMIT_SHA=
    ");
}

#[test]
fn a_plain_folder_in_the_place_of_the_worktree() {
    let person = Person::with_plan(ONE);
    let dir = person.worktree("tf").dir().to_path_buf();
    std::fs::remove_dir_all(&dir).expect("gone");
    std::fs::create_dir(&dir).expect("made");
    insta::assert_snapshot!(run(&person), @"
    $ wf run tf --once
    no micro-commit: failed at load: [ROOT]/work/app.ops/worktrees/tf is not a worktree of the product repository
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
    | load | failed | [N] | [ROOT]/work/app.ops/worktrees/tf is not a worktree of the product repository |
    | refresh | passed | [N] |  |

    ## Notes

    [ROOT]/work/app.ops/worktrees/tf is not a worktree of the product repository

    STATUS=planning
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_none
    LAST_COMMIT_SHA=
    ");
}

#[test]
fn a_worktree_outside_of_the_ops_directory() {
    let person = Person::with_plan(ONE);
    person.set_meta("tf", "WORKTREE", person.repo.dir().to_str().expect("UTF-8"));
    insta::assert_snapshot!(run(&person), @"
    $ wf run tf --once
    no micro-commit: failed at load: the worktree [ROOT]/work/app is not inside [ROOT]/work/app.ops/worktrees
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
    | load | failed | [N] | the worktree [ROOT]/work/app is not inside [ROOT]/work/app.ops/worktrees |
    | refresh | passed | [N] |  |

    ## Notes

    the worktree [ROOT]/work/app is not inside [ROOT]/work/app.ops/worktrees

    STATUS=planning
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_none
    LAST_COMMIT_SHA=
    ");
}

#[test]
fn a_base_commit_that_does_not_exist() {
    let person = Person::with_plan(ONE);
    person.set_meta("tf", "BASE_SHA", &"a".repeat(40));
    insta::assert_snapshot!(run(&person), @"
    $ wf run tf --once
    no micro-commit: failed at load: BASE_SHA [SHA] does not exist in the repository
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
    | load | failed | [N] | BASE_SHA [SHA] does not exist in the repository |
    | refresh | passed | [N] |  |

    ## Notes

    BASE_SHA [SHA] does not exist in the repository

    STATUS=planning
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_none
    LAST_COMMIT_SHA=
    ");
}
