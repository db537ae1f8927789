//! `wf project`, `wf interview` and `wf doctor`: output, refusals, files.

use crate::play::person_with_one;
use crate::support::{ONE, Person, read, write};

#[test]
fn a_project_is_registered() {
    let person = Person::unregistered();
    let repo = person.repo.dir().to_str().expect("UTF-8").to_owned();
    insta::assert_snapshot!(person.transcript(&[
        &["project", "add", "app", "--repo-path", &repo],
        &["project", "list"],
        &["project", "list", "--json"],
    ]), @r#"
    $ wf project add app --repo-path [ROOT]/work/app
    Registered app in [ROOT]/work/app.ops/workflow/projects/app
    ! Remembered [ROOT]/work/app.ops/workflow as your workflow repository in [ROOT]/home/.config/wf/config.env
    [0]
    $ wf project list
     PROJECT  REPOSITORY                BRANCH
     app      [ROOT]/work/app  main
    [0]
    $ wf project list --json
    [
      {
        "branch_prefix": "feat",
        "default_branch": "main",
        "name": "app",
        "ops": "[ROOT]/work/app.ops",
        "repo": "[ROOT]/work/app"
      }
    ]
    [0]
    "#);
}

#[test]
fn registrations_that_are_refused() {
    let person = Person::unregistered();
    let repo = person.repo.dir().to_str().expect("UTF-8").to_owned();
    let work = person.hermetic.work().to_str().expect("UTF-8").to_owned();
    insta::assert_snapshot!(person.transcript(&[
        &["project", "add", "a/b", "--repo-path", &repo],
        &["project", "add", "app", "--repo-path", "/nonexistent"],
        &["project", "add", "app", "--repo-path", &repo, "--default-branch", "trunk"],
        &["project", "add", "app", "--repo-path", &repo, "--branch-prefix", "-x"],
        &["project", "show", "app"],
    ]), @r#"
    $ wf project add a/b --repo-path [ROOT]/work/app
    ! error: "a/b" is not a valid project name: 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-', starting with a letter or digit, without '..'
    [2]
    $ wf project add app --repo-path /nonexistent
    ! error: /nonexistent does not exist
    [2]
    $ wf project add app --repo-path [ROOT]/work/app --default-branch trunk
    ! error: [ROOT]/work/app has no branch 'trunk'; name another: --default-branch BRANCH
    [2]
    $ wf project add app --repo-path [ROOT]/work/app --branch-prefix -x
    ! error: unknown option '-x'; see: wf project add --help
    [2]
    $ wf project show app
    ! error: no project is registered yet; in a checkout of your product run: wf init, or set AOS_WORKFLOW_REPO
    [2]
    "#);
    let outside = person.wf(&["project", "add", "app", "--repo-path", &work]);
    assert_eq!(outside.status, Some(2), "{}", outside.snapshot());
}

#[test]
fn a_project_is_shown() {
    let person = Person::new();
    insta::assert_snapshot!(person.transcript(&[&["project", "show"], &["project", "show", "ap"]]), @"
    $ wf project show
    project        app
    repository     [ROOT]/work/app
    ops            [ROOT]/work/app.ops
    files          [ROOT]/work/app.ops/workflow/projects/app
    branches       feat/<id> from main
    makefile       Makefile
    tests unit     make test-unit
    tests integration make test-integration
    tests smoke    make test-smoke
    tests e2e      make test-e2e
    agents         codex implements, claude reviews
    [0]
    $ wf project show ap
    ! error: there is no project 'ap'; did you mean 'app'? See: wf project list
    [2]
    ");
}

#[test]
fn a_project_with_unknown_keys_and_other_suites_is_shown() {
    let person = Person::new();
    person.profile("COLOUR=blue\nMAKEFILE_PATH=\nTEST_CMD_UNIT=\"npm test\"\nAGENT_IMPLEMENT=pi\n");
    insta::assert_snapshot!(person.transcript(&[&["project", "show"]]), @"
    $ wf project show
    project        app
    repository     [ROOT]/work/app
    ops            [ROOT]/work/app.ops
    files          [ROOT]/work/app.ops/workflow/projects/app
    branches       feat/<id> from main
    makefile       not used
    tests unit     npm test
    tests integration no command configured and make is not used
    tests smoke    no command configured and make is not used
    tests e2e      no command configured and make is not used
    agents         pi implements, claude reviews
    ! warning: [ROOT]/work/app.ops/workflow/projects/app/project_profile.env: unknown key COLOUR
    [0]
    ");
}

#[test]
fn the_files_of_an_interview_without_questions() {
    let person = Person::unregistered();
    let said = person.shot(
        &["interview", "--non-interactive", "--hitl-mode", "off", "--make-target-e2e", ""],
        &[],
    );
    let dir = person.project_dir();
    let files = ["project.env", "project_profile.env", "project_profile.md"]
        .map(|name| format!("== {name}\n{}", person.file(&dir.join(name))));
    insta::assert_snapshot!(format!("{said}{}", files.concat()), @r#"
    $ wf interview --non-interactive --hitl-mode off --make-target-e2e ""
    Project configured successfully!
    ! Writing project_profile.env... done
    ! Writing project_profile.md... done
    ! Remembered [ROOT]/work/app.ops/workflow as your workflow repository in [ROOT]/home/.config/wf/config.env
    ! Next: wf --project app new <id> "<title>" "<paths>"
    [0]
    == project.env
    PROJECT_NAME=app
    REPO_PATH=[ROOT]/work/app
    OPS_PATH=[ROOT]/work/app.ops
    DEFAULT_BRANCH=main
    BRANCH_PREFIX=feat
    == project_profile.env
    MAKEFILE_PATH=Makefile
    MAKE_TARGET_UNIT=test-unit
    MAKE_TARGET_INTEGRATION=""
    MAKE_TARGET_SMOKE=""
    MAKE_TARGET_E2E=""
    DOCS_PATH=docs
    HITL_MODE=off
    RAW_REQUIREMENTS_PATHS=requirements/raw
    == project_profile.md
    # Project profile: app

    - Repository: [ROOT]/work/app
    - Default branch: main

    | Key | Value |
    |---|---|
    | MAKEFILE_PATH | Makefile |
    | MAKE_TARGET_UNIT | test-unit |
    | MAKE_TARGET_INTEGRATION |  |
    | MAKE_TARGET_SMOKE |  |
    | MAKE_TARGET_E2E |  |
    | DOCS_PATH | docs |
    | HITL_MODE | off |
    | RAW_REQUIREMENTS_PATHS | requirements/raw |
    "#);
}

#[test]
fn the_tree_of_a_new_project() {
    let person = Person::unregistered();
    person.ok(&["interview", "--non-interactive"]);
    insta::assert_snapshot!(person.tree(person.hermetic.root(), &["work/app", "home/.cache"]), @"
    home/
    home/.cache/
    home/.config/
    home/.config/wf/
    home/.config/wf/config.env
    home/.local/
    home/.local/share/
    home/.local/state/
    runtime/
    tmp/
    work/
    work/app/
    ");
}

#[test]
fn answers_of_an_interview_that_are_refused() {
    let person = Person::unregistered();
    let with =
        |flags: &[&str]| person.shot(&[&["interview", "--non-interactive"], flags].concat(), &[]);
    let shots = [
        person.shot(&["interview"], &[]),
        with(&["--hitl-mode", "maybe"]),
        with(&["--makefile-path", "nowhere.mk"]),
        with(&["--makefile-path", "../Makefile"]),
        with(&["--docs-path", "/etc"]),
        with(&["--raw-requirements-paths", "a,../b"]),
        with(&["--default-branch", "trunk"]),
        with(&["--name", "a/b"]),
    ];
    assert!(!person.ops().exists());
    insta::assert_snapshot!(shots.concat(), @r#"
    $ wf interview
    ! error: there is no terminal to ask on; use: wf interview --non-interactive
    [2]
    $ wf interview --non-interactive --hitl-mode maybe
    ! error: HITL mode: 'maybe' is not one of strict, stage-only, exceptions, off
    [2]
    $ wf interview --non-interactive --makefile-path nowhere.mk
    ! error: MAKEFILE_PATH: nowhere.mk does not exist in [ROOT]/work/app
    [2]
    $ wf interview --non-interactive --makefile-path ../Makefile
    ! error: MAKEFILE_PATH: '../Makefile' must be relative to the repository and without '..'
    [2]
    $ wf interview --non-interactive --docs-path /etc
    ! error: DOCS_PATH: '/etc' must be relative to the repository and without '..'
    [2]
    $ wf interview --non-interactive --raw-requirements-paths a,../b
    ! error: RAW_REQUIREMENTS_PATHS: '../b' must be relative to the repository and without '..'
    [2]
    $ wf interview --non-interactive --default-branch trunk
    ! error: [ROOT]/work/app has no branch 'trunk'; name another: --default-branch BRANCH
    [2]
    $ wf interview --non-interactive --name a/b
    ! error: "a/b" is not a valid project name: 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-', starting with a letter or digit, without '..'
    [2]
    "#);
}

#[test]
fn several_projects_and_one_that_is_broken() {
    let person = Person::new();
    let other = testkit::repo::Repo::init(person.hermetic.work().join("other"));
    other.write("a", "a").commit("start");
    let path = other.dir().to_str().expect("UTF-8").to_owned();
    person.ok(&["project", "add", "other", "--repo-path", &path]);
    let broken = person.ops().join("workflow/projects/broken/project.env");
    write(&broken, "PROJECT_NAME=broken\n");
    let mut at_root = person.command(&["list"]);
    let lost = person.hermetic.run(at_root.current_dir(person.hermetic.root()));
    let lost = person.redacted(&lost.stderr);
    insta::assert_snapshot!(format!("{}{lost}", person.transcript(&[&["project", "list"], &["project", "show", "broken"]])), @"
    $ wf project list
     PROJECT  REPOSITORY                  BRANCH
     app      [ROOT]/work/app    main
     other    [ROOT]/work/other  main
    ! warning: [ROOT]/work/app.ops/workflow/projects/broken/project.env: missing or empty: REPO_PATH, DEFAULT_BRANCH
    [2]
    $ wf project show broken
    ! error: [ROOT]/work/app.ops/workflow/projects/broken/project.env: missing or empty: REPO_PATH, DEFAULT_BRANCH
    [2]
    error: several projects are registered (app, broken, other); say which: --project NAME, or set AOS_PROJECT
    ");
}

#[test]
fn an_env_file_that_breaks_the_grammar() {
    let person = Person::with_plan(ONE);
    let path = person.project_dir().join("project.env");
    let good = read(&path);
    write(&path, &format!("{good}OPS_PATH=`id`\n"));
    let shell = person.shot(&["list"], &[]);
    write(&path, &format!("{good}no assignment\n"));
    let line = person.shot(&["list"], &[]);
    write(&path, &format!("{good}COLOUR=blue\n"));
    let unknown = person.shot(&["list"], &[]);
    insta::assert_snapshot!([shell, line, unknown].concat(), @"
    $ wf list
    ! error: [ROOT]/work/app.ops/workflow/projects/app/project.env: line 6: the value of OPS_PATH has '`', which is not allowed; remove it
    [2]
    $ wf list
    ! error: [ROOT]/work/app.ops/workflow/projects/app/project.env: line 6: expected KEY=value; if this is a comment, start it with #
    [2]
    $ wf list
     ID  STATUS    BRANCH   FILES  OVERLAP  WAITS FOR  TITLE
     tf  planning  feat/tf  0                          Test framework
    ! warning: [ROOT]/work/app.ops/workflow/projects/app/project.env: unknown key COLOUR
    [0]
    ");
}

/// The findings of the doctor that do not depend on the machine.
fn doctor(person: &Person) -> String {
    let text = person.shot(&["doctor"], &[]);
    let machine = [
        "git ",
        "make ",
        "bwrap ",
        "user ",
        "engine ",
        "box ",
        "egress ",
        "backend ",
        "memory ",
        "disk ",
        "agent ",
        "implement ",
        "review ",
    ];
    let lines = text.lines().filter(|line| !machine.iter().any(|name| line.starts_with(name)));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_doctor_of_a_healthy_project() {
    let Some(person) = person_with_one() else { return };
    insta::assert_snapshot!(doctor(&person), @"
    $ wf doctor
    project        ok   app in [ROOT]/work/app.ops/workflow/projects/app
    ops            ok   [ROOT]/work/app.ops
    profile        ok   valid
    tests          ok   unit
    effects        ok   all finished
    repository     ok   [ROOT]/work/app
    tf             ok   planning
    [0]
    ");
}

#[test]
fn the_doctor_of_a_broken_project() {
    let person = Person::with_plan(ONE);
    for id in ["gone", "elsewhere", "plan", "meta"] {
        person.ok(&["new", id, "Broken"]);
    }
    std::fs::remove_dir_all(person.worktree("gone").dir()).expect("gone");
    person.worktree("elsewhere").git(&["switch", "-q", "-c", "other"]);
    person.plan("plan", "### COMMIT-P-1: bad\n");
    person.set_meta("meta", "STATUS", "odd");
    person.profile("TEST_TIMEOUT=soon\n");
    insta::assert_snapshot!(doctor(&person), @"
    $ wf doctor
    project        ok   app in [ROOT]/work/app.ops/workflow/projects/app
    ops            ok   [ROOT]/work/app.ops
    profile        BAD  [ROOT]/work/app.ops/workflow/projects/app/project_profile.env: TEST_TIMEOUT must be a number of seconds from 1 to 86400
    effects        ok   all finished
    repository     ok   [ROOT]/work/app
    workstream     BAD  [ROOT]/work/app.ops/workflow/projects/app/workstreams/meta/meta.env: STATUS is not one of planning, implement, blocked:clarification, blocked:review, blocked:test, docs, uat:pending, uat:failed, merge-ready, done
    elsewhere      BAD  the worktree is on other, not on feat/elsewhere; run: git -C [ROOT]/work/app.ops/worktrees/elsewhere switch feat/elsewhere
    gone           BAD  the worktree [ROOT]/work/app.ops/worktrees/gone does not exist; it was removed by hand: wf close --force, or add it again with git worktree add
    plan           BAD  [ROOT]/work/app.ops/workflow/projects/app/workstreams/plan/plan.md: line 1: a micro-commit heading must read '### COMMIT-XX-001: title'
    tf             ok   planning
    [2]
    ");
}

#[test]
fn the_doctor_without_a_project() {
    let person = Person::unregistered();
    insta::assert_snapshot!(doctor(&person), @"
    $ wf doctor
    workflow       ok   none
    project        BAD  no project is registered yet; in a checkout of your product run: wf init, or set AOS_WORKFLOW_REPO
    [2]
    ");
}
