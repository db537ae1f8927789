//! `wf new`, `wf use` and `wf close`: output, refusals, and the files that they leave.

use testkit::repo::Repo;

use crate::support::{ONE, Person};

#[test]
fn a_workstream_is_created() {
    let person = Person::new();
    insta::assert_snapshot!(person.transcript(&[&["new", "tf", "Test framework", "./mk/ tests/"]]), @r#"
    $ wf new tf "Test framework" "./mk/ tests/"
    Created workstream: tf
      Branch: feat/tf
      Worktree: [ROOT]/work/app.ops/worktrees/tf
      Plan: [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf/plan.md
    ! Write the plan, then: wf run tf --loop
    [0]
    "#);
}

#[test]
fn a_workstream_is_created_as_json() {
    let person = Person::new();
    insta::assert_snapshot!(person.transcript(&[&["new", "tf", "Test framework", "mk/", "--json"]]), @r#"
    $ wf new tf "Test framework" mk/ --json
    {
      "id": "tf",
      "title": "Test framework",
      "branch": "feat/tf",
      "worktree": "[ROOT]/work/app.ops/worktrees/tf",
      "base_branch": "main",
      "base_sha": "[SHA]",
      "status": "planning",
      "expected_paths": [
        "mk/"
      ],
      "created_at": "[TIME]",
      "last_refreshed": "[TIME]",
      "last_run_id": null,
      "last_commit_sha": null,
      "last_result": null,
      "blocked_by": [],
      "approved_sha": null,
      "merge_pull": null,
      "merge_pull_sha": null,
      "touched_head": "[SHA]",
      "touched_base": "[SHA]"
    }
    ! Write the plan, then: wf run tf --loop
    [0]
    "#);
}

#[test]
fn the_tree_of_a_new_workstream() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(person.tree(&person.ops(), &["worktrees/tf"]), @"
    locks/
    locks/global.lock
    state/
    workflow/
    workflow/projects/
    workflow/projects/app/
    workflow/projects/app/ACTIVE_WORKSTREAMS.md
    workflow/projects/app/project.env
    workflow/projects/app/project_profile.env
    workflow/projects/app/workstreams/
    workflow/projects/app/workstreams/tf/
    workflow/projects/app/workstreams/tf/clarifications/
    workflow/projects/app/workstreams/tf/clarifications/answered/
    workflow/projects/app/workstreams/tf/clarifications/pending/
    workflow/projects/app/workstreams/tf/meta.env
    workflow/projects/app/workstreams/tf/notes.md
    workflow/projects/app/workstreams/tf/plan.md
    workflow/projects/app/workstreams/tf/touched_files.txt
    workflow/projects/app/workstreams/tf/uat/
    workflow/projects/app/workstreams/tf/uat/failed/
    workflow/projects/app/workstreams/tf/uat/passed/
    workflow/projects/app/workstreams/tf/uat/pending/
    worktrees/
    worktrees/tf/
    ");
}

#[test]
fn the_meta_file_of_a_new_workstream() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(person.file(&person.workstream_dir("tf").join("meta.env")), @r#"
    ID=tf
    TITLE="Test framework"
    BRANCH=feat/tf
    WORKTREE=[ROOT]/work/app.ops/worktrees/tf
    BASE_BRANCH=main
    BASE_SHA=[SHA]
    STATUS=planning
    EXPECTED_PATHS="mk/ tests/"
    CREATED_AT=[TIME]
    LAST_REFRESHED=[TIME]
    TOUCHED_HEAD=[SHA]
    TOUCHED_BASE=[SHA]
    "#);
}

#[test]
fn the_plan_and_the_table_of_a_new_workstream() {
    let person = Person::new();
    person.ok(&["new", "user_auth", "Log in", "src/auth"]);
    let plan = person.file(&person.workstream_dir("user_auth").join("plan.md"));
    let table = person.file(&person.project_dir().join("ACTIVE_WORKSTREAMS.md"));
    insta::assert_snapshot!(format!("{plan}\n{table}"), @"
    # Plan: Log in

    ## Goal

    ## Micro-commits

    <!--
    One block per micro-commit, in the order in which they are to be made. For example:

    ### COMMIT-UA-001: What this commit does

    Why, and how it should be done.

    Acceptance:
    - what a person sees when it works

    Done: [ ]

    Then: wf run user_auth
    -->

    # Active workstreams: app

    | ID | Branch | Worktree | Status | Title | Expected paths | Last refreshed | Touched files |
    |---|---|---|---|---|---|---|---|
    | user_auth | feat/user_auth | [ROOT]/work/app.ops/worktrees/user_auth | planning | Log in | src/auth | [TIME] | 0 |
    ");
}

#[test]
fn arguments_that_are_refused() {
    let person = Person::new();
    insta::assert_snapshot!(person.transcript(&[
        &["new", "Bad", "t"],
        &["new", "../x", "t"],
        &["new", "tf", ""],
        &["new", "tf", " "],
        &["new", "tf", "a;b"],
        &["new", "tf", "say \"x\""],
        &["new", "tf", "t", "/etc"],
        &["new", "tf", "t", "ok ../x"],
        &["new", "tf", "t", "--prefix", "a..b"],
    ]), @r#"
    $ wf new Bad t
    ! error: "Bad" is not a valid workstream id: 1 to 64 of a-z, 0-9, '_' and '-', starting with a letter
    [2]
    $ wf new ../x t
    ! error: "../x" is not a valid workstream id: 1 to 64 of a-z, 0-9, '_' and '-', starting with a letter
    [2]
    $ wf new tf ""
    ! error: the title is empty; it must have 1 to 100 characters
    [2]
    $ wf new tf " "
    ! error: the title is empty; it must have 1 to 100 characters
    [2]
    $ wf new tf a;b
    ! error: the value of TITLE has ';', which is not allowed; remove it
    [2]
    $ wf new tf "say \"x\""
    ! error: the value of TITLE has a double quote, which cannot be written; remove it
    [2]
    $ wf new tf t /etc
    ! error: the expected path '/etc' must name a file or folder inside the repository, without '..'
    [2]
    $ wf new tf t "ok ../x"
    ! error: the expected path '../x' must name a file or folder inside the repository, without '..'
    [2]
    $ wf new tf t --prefix a..b
    ! error: "a..b/tf" is not a valid branch name: it must not contain '..' or '@{'
    [2]
    "#);
    assert_eq!(person.repo.git(&["branch", "--list", "feat/*"]), "");
}

#[test]
fn names_that_are_taken() {
    let person = Person::with_plan(ONE);
    person.repo.branch("feat/other");
    std::fs::create_dir_all(person.ops().join("worktrees/third")).expect("made");
    insta::assert_snapshot!(person.transcript(&[
        &["new", "tf", "Two"],
        &["new", "other", "Two"],
        &["new", "other", "Two", "--prefix", "fix/"],
        &["new", "third", "Three"],
    ]), @"
    $ wf new tf Two
    ! error: the workstream tf exists already; see: wf status tf
    [2]
    $ wf new other Two
    ! error: the branch feat/other exists already; a closed workstream keeps its branch: choose another id or --prefix
    [2]
    $ wf new other Two --prefix fix/
    Created workstream: other
      Branch: fix/other
      Worktree: [ROOT]/work/app.ops/worktrees/other
      Plan: [ROOT]/work/app.ops/workflow/projects/app/workstreams/other/plan.md
    ! Write the plan, then: wf run other --loop
    [0]
    $ wf new third Three
    ! error: the worktree folder [ROOT]/work/app.ops/worktrees/third exists already
    [2]
    ");
}

#[test]
fn a_branch_on_origin_and_an_origin_that_does_not_answer() {
    let person = Person::new();
    let origin = Repo::init_bare(person.hermetic.root().join("origin.git"));
    person.repo.git(&["remote", "add", "origin", origin.dir().to_str().expect("UTF-8")]);
    person.repo.git(&["push", "-q", "origin", "main:refs/heads/feat/tf"]);
    let taken = person.shot(&["new", "tf", "One"], &[]);
    std::fs::remove_dir_all(origin.dir()).expect("gone");
    let silent = person.wf(&["new", "tf", "One"]);
    assert!(silent.stderr.contains("could not be asked"), "{}", silent.snapshot());
    insta::assert_snapshot!(taken, @"
    $ wf new tf One
    ! error: the branch feat/tf exists on origin; choose another id or --prefix
    [2]
    ");
}

#[test]
fn a_default_branch_that_is_gone() {
    let person = Person::new();
    person.repo.git(&["branch", "-q", "-m", "main", "trunk"]);
    insta::assert_snapshot!(person.transcript(&[&["new", "tf", "One"]]), @"
    $ wf new tf One
    ! error: the repository has no branch 'main'; correct DEFAULT_BRANCH in project.env
    [2]
    ");
}

#[test]
fn the_current_workstream() {
    let person = Person::with_plan(ONE);
    person.ok(&["new", "other", "Other"]);
    insta::assert_snapshot!(person.transcript(&[&["use", "tf"], &["list"], &["use", "other", "--json"], &["list"]]), @r#"
    $ wf use tf
    Current workstream of app: tf
    [0]
    $ wf list
     ID     STATUS    BRANCH      FILES  OVERLAP  WAITS FOR  TITLE
     other  planning  feat/other  0                          Other
     tf*    planning  feat/tf     0                          Test framework
    [0]
    $ wf use other --json
    {
      "project": "app",
      "workstream": "other"
    }
    [0]
    $ wf list
     ID      STATUS    BRANCH      FILES  OVERLAP  WAITS FOR  TITLE
     other*  planning  feat/other  0                          Other
     tf      planning  feat/tf     0                          Test framework
    [0]
    "#);
}

#[test]
fn a_workstream_is_closed() {
    let person = Person::with_plan(ONE);
    let refused = person.shot(&["close", "tf"], &[]);
    person.worktree("tf").write("stray", "x").write("other", "y");
    person.set_meta("tf", "STATUS", "merge-ready");
    let dirty = person.shot(&["close", "tf"], &[]);
    let closed = person.shot(&["close", "tf", "--force"], &[]);
    insta::assert_snapshot!([refused, dirty, closed].concat(), @"
    $ wf close tf
    ! error: tf is not complete (planning); close it anyway: --force
    [2]
    $ wf close tf
    ! error: [ROOT]/work/app.ops/worktrees/tf has 2 uncommitted changes, such as other; commit them, or discard them: --force
    [2]
    $ wf close tf --force
    Closed workstream: tf
      Archived to: [ROOT]/work/app.ops/workflow/projects/app/workstreams/_closed/tf-[STAMP]
      Branch kept: feat/tf
    [0]
    ");
}

#[test]
fn the_tree_of_a_closed_workstream() {
    let person = Person::with_plan(ONE);
    person.ok(&["close", "tf", "--force"]);
    let tree = person.tree(&person.project_dir(), &[]);
    let tree: Vec<&str> =
        tree.lines().map(|line| line.split("[TIME]").next().unwrap_or(line)).collect();
    insta::assert_snapshot!(tree.join("\n").replace(|c: char| c.is_ascii_digit(), "0"), @"
    ACTIVE_WORKSTREAMS.md
    project.env
    project_profile.env
    workstreams/
    workstreams/_closed/
    workstreams/_closed/tf-[STAMP]/
    workstreams/_closed/tf-[STAMP]/clarifications/
    workstreams/_closed/tf-[STAMP]/clarifications/answered/
    workstreams/_closed/tf-[STAMP]/clarifications/pending/
    workstreams/_closed/tf-[STAMP]/meta.env
    workstreams/_closed/tf-[STAMP]/notes.md
    workstreams/_closed/tf-[STAMP]/plan.md
    workstreams/_closed/tf-[STAMP]/touched_files.txt
    workstreams/_closed/tf-[STAMP]/uat/
    workstreams/_closed/tf-[STAMP]/uat/failed/
    workstreams/_closed/tf-[STAMP]/uat/passed/
    workstreams/_closed/tf-[STAMP]/uat/pending/
    ");
}

#[test]
fn a_deletion_is_previewed_and_done() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(person.transcript(&[&["delete", "tf"], &["delete", "tf", "--json"], &["delete", "tf", "--confirm"], &["list"]]), @r#"
    $ wf delete tf
    This will permanently delete workstream tf
      Branch: feat/tf
      Worktree: [ROOT]/work/app.ops/worktrees/tf
      Folder: [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf
      Remote branch: none
    Use --confirm to proceed
    [0]
    $ wf delete tf --json
    {
      "branch": "feat/tf",
      "confirmed": false,
      "remote": "none",
      "workstream": "tf",
      "worktree": "[ROOT]/work/app.ops/worktrees/tf"
    }
    [0]
    $ wf delete tf --confirm
    Deleted workstream: tf
      Branch feat/tf was at [SHA]
    [0]
    $ wf list
    No active workstreams. Start one: wf new <id> "<title>" "<paths>"
    [0]
    "#);
}

#[test]
fn a_deletion_with_a_branch_on_origin() {
    let person = Person::with_plan(ONE);
    let origin = Repo::init_bare(person.hermetic.root().join("origin.git"));
    person.repo.git(&["remote", "add", "origin", origin.dir().to_str().expect("UTF-8")]);
    person.worktree("tf").write("x", "x").commit("COMMIT-TF-001: x");
    person.worktree("tf").git(&["push", "-q", "origin", "feat/tf"]);
    insta::assert_snapshot!(person.transcript(&[
        &["delete", "tf"],
        &["delete", "tf", "--keep-remote"],
        &["delete", "tf", "--confirm", "--json"],
    ]), @r#"
    $ wf delete tf
    This will permanently delete workstream tf
      Branch: feat/tf
      Worktree: [ROOT]/work/app.ops/worktrees/tf
      Folder: [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf
      Remote branch: feat/tf is deleted on origin too (--keep-remote leaves it)
    Use --confirm to proceed
    [0]
    $ wf delete tf --keep-remote
    This will permanently delete workstream tf
      Branch: feat/tf
      Worktree: [ROOT]/work/app.ops/worktrees/tf
      Folder: [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf
      Remote branch: left alone
    Use --confirm to proceed
    [0]
    $ wf delete tf --confirm --json
    {
      "deleted": {
        "remote_deleted": true,
        "tip": "[SHA]",
        "warnings": []
      },
      "workstream": "tf"
    }
    [0]
    "#);
}

#[test]
fn a_worktree_outside_of_the_ops_directory_is_not_removed() {
    let person = Person::with_plan(ONE);
    person.set_meta("tf", "WORKTREE", person.repo.dir().to_str().expect("UTF-8"));
    insta::assert_snapshot!(person.transcript(&[&["delete", "tf", "--confirm"], &["close", "tf", "--force"]]), @"
    $ wf delete tf --confirm
    ! error: WORKTREE [ROOT]/work/app is not inside [ROOT]/work/app.ops/worktrees
    [2]
    $ wf close tf --force
    ! error: WORKTREE [ROOT]/work/app is not inside [ROOT]/work/app.ops/worktrees
    [2]
    ");
}
