//! Wrong usage of the command line: one clear message, status 2, and nothing changes.

use crate::support::{ONE, Person};

#[test]
fn without_a_command_the_help_is_shown() {
    let person = Person::unregistered();
    let text = person.shot(&[], &[]);
    let head: Vec<&str> = text.lines().take(12).collect();
    insta::assert_snapshot!(head.join("\n"), @r"
    $ wf 
    ! Takes a planned workstream through micro-commits: implement, test, review, QA, docs, UAT, merge
    ! 
    ! Usage: wf [OPTIONS] <COMMAND>
    ! 
    ! Commands:
    !   init         Register this repository with a profile from what is there, and choose the agent
    !   interview    Register a project and describe how it is built and tested
    !   project      Register, list and show projects
    !   list         List active workstreams
    !   new          Create a workstream: a branch, a worktree and an empty plan
    !   story        Stories of the product: list, write, show, and start a workstream for one
    ");
}

#[test]
fn the_exit_statuses_end_the_help() {
    let person = Person::unregistered();
    let help = person.ok(&["--help"]);
    let at = help.find("Exit status:").expect("the statuses");
    insta::assert_snapshot!(&help[at..], @"
    Exit status:
      0  done
      1  general error, or ended by a signal
      2  wrong configuration or usage
      3  another process held the lock for too long
      4  implementation failed, or there was nothing valid to implement
      5  tests failed
      6  review failed or requested changes
      7  the QA gate failed
      8  blocked until a person answers, accepts or resolves
      9  internal error; please report it
    ");
}

#[test]
fn unknown_commands_and_flags() {
    let person = Person::unregistered();
    insta::assert_snapshot!(person.transcript(&[&["statsu"], &["run", "--fast"], &["new", "tf"]]), @"
    $ wf statsu
    ! error: unknown command 'statsu'; did you mean 'stats'? See: wf --help
    [2]
    $ wf run --fast
    ! error: unknown option '--fast'; see: wf run --help
    [2]
    $ wf new tf
    ! error: <TITLE> is missing; see: wf new --help
    [2]
    ");
}

#[test]
fn flags_that_exclude_each_other_and_values_that_are_missing() {
    let person = Person::unregistered();
    insta::assert_snapshot!(person.transcript(&[
        &["run", "tf", "--once", "--loop"],
        &["reject", "tf"],
        &["uat", "fail", "UAT-001"],
        &["clarify", "ask", "tf"],
        &["update", "--trust", "2"],
        &["log", "-n", "many"],
    ]), @"
    $ wf run tf --once --loop
    ! error: --once cannot be used with --loop; see: wf run --help
    [2]
    $ wf reject tf
    ! error: --message <TEXT> is missing; see: wf reject --help
    [2]
    $ wf uat fail UAT-001
    ! error: --issues <TEXT> is missing; see: wf uat fail --help
    [2]
    $ wf clarify ask tf
    ! error: --question <TEXT> is missing; see: wf clarify ask --help
    [2]
    $ wf update --trust 2
    ! error: --trust: 2 is not a trust threshold: it must be a number from 0 to 1; see: wf update --help
    [2]
    $ wf log -n many
    ! error: --limit needs a whole number, not 'many'; see: wf log --help
    [2]
    ");
}

#[test]
fn outside_of_every_project() {
    let person = Person::unregistered();
    insta::assert_snapshot!(person.transcript(&[&["list"], &["status", "tf"], &["project", "list"], &["list", "--json"]]), @r#"
    $ wf list
    ! error: no project is registered yet; in a checkout of your product run: wf init, or set AOS_WORKFLOW_REPO
    [2]
    $ wf status tf
    ! error: no project is registered yet; in a checkout of your product run: wf init, or set AOS_WORKFLOW_REPO
    [2]
    $ wf project list
    ! error: no project is registered yet; in a checkout of your product run: wf init
    [2]
    $ wf list --json
    {
      "error": {
        "name": "config",
        "status": 2,
        "text": "no project is registered yet; in a checkout of your product run: wf init, or set AOS_WORKFLOW_REPO"
      }
    }
    ! error: no project is registered yet; in a checkout of your product run: wf init, or set AOS_WORKFLOW_REPO
    [2]
    "#);
}

#[test]
fn a_workstream_that_does_not_exist() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(person.transcript(&[
        &["status", "tff"],
        &["status", "../tf"],
        &["status"],
        &["use", "zzz"],
        &["close", "other"],
        &["delete", "other"],
        &["conflicts", "TF"],
        &["plan", "tff", "--from", "x"],
        &["skip", "tff"],
        &["docs", "status", "tff"],
        &["log", "tff"],
    ]), @r#"
    $ wf status tff
    ! error: there is no workstream 'tff'; did you mean 'tf'? See: wf list
    [2]
    $ wf status ../tf
    ! error: "../tf" is not a valid workstream id: 1 to 64 of a-z, 0-9, '_' and '-', starting with a letter
    [2]
    $ wf status
    ! error: which workstream? Name it, run the command in its worktree, or choose one: wf use ID
    [2]
    $ wf use zzz
    ! error: there is no workstream 'zzz'; see: wf list
    [2]
    $ wf close other
    ! error: there is no workstream 'other'; see: wf list
    [2]
    $ wf delete other
    ! error: there is no workstream 'other'; see: wf list
    [2]
    $ wf conflicts TF
    ! error: "TF" is not a valid workstream id: 1 to 64 of a-z, 0-9, '_' and '-', starting with a letter
    [2]
    $ wf plan tff --from x
    ! error: there is no workstream 'tff'; did you mean 'tf'? See: wf list
    [2]
    $ wf skip tff
    ! error: there is no workstream 'tff'; did you mean 'tf'? See: wf list
    [2]
    $ wf docs status tff
    ! error: there is no workstream 'tff'; did you mean 'tf'? See: wf list
    [2]
    $ wf log tff
    ! error: there is no workstream 'tff'; did you mean 'tf'? See: wf list
    [2]
    "#);
}

#[test]
fn the_same_as_json() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(person.transcript(&[&["status", "tff", "--json"], &["uat", "show", "UAT-009", "--json"]]), @r#"
    $ wf status tff --json
    {
      "error": {
        "name": "config",
        "status": 2,
        "text": "there is no workstream 'tff'; did you mean 'tf'? See: wf list"
      }
    }
    ! error: there is no workstream 'tff'; did you mean 'tf'? See: wf list
    [2]
    $ wf uat show UAT-009 --json
    {
      "error": {
        "name": "config",
        "status": 2,
        "text": "there is no acceptance test UAT-009; see: wf uat list"
      }
    }
    ! error: there is no acceptance test UAT-009; see: wf uat list
    [2]
    "#);
}

#[test]
fn runs_that_do_not_exist() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(person.transcript(&[
        &["show", "--workstream", "tf"],
        &["show", "20250115"],
        &["diff", "--workstream", "tf"],
        &["log", "tf"],
        &["log", "tf", "--json"],
    ]), @"
    $ wf show --workstream tf
    ! error: tf has no run yet; start one: wf run tf
    [2]
    $ wf show 20250115
    ! error: there is no run '20250115'; see: wf log
    [2]
    $ wf diff --workstream tf
    ! error: tf has no run yet; start one: wf run tf
    [2]
    $ wf log tf
     RUN  STATUS  STAGE  TOOK
    [0]
    $ wf log tf --json
    []
    [0]
    ");
}

#[test]
fn environment_variables_are_checked() {
    let person = Person::with_plan(ONE);
    let shots = [
        person.shot(&["list"], &[("AOS_LOG_LEVEL", "loud")]),
        person.shot(&["refresh"], &[("AOS_LOCK_TIMEOUT", "soon")]),
        person.shot(&["list"], &[("AOS_WORKFLOW_REPO", "relative/path")]),
        person.shot(&["list"], &[("AOS_OPS_DIR", "relative/path")]),
        person.shot(&["list"], &[("AOS_PROJECT", "ap")]),
        person.shot(&["list"], &[("AOS_PROJECT", "app"), ("AOS_LOG_LEVEL", "error")]),
    ];
    insta::assert_snapshot!(shots.concat(), @"
    $ wf list
    ! error: AOS_LOG_LEVEL must be debug, info, warn or error
    [2]
    $ wf refresh
    ! error: AOS_LOCK_TIMEOUT must be a number of seconds: invalid digit found in string
    [2]
    $ wf list
    ! error: AOS_WORKFLOW_REPO must be an absolute path
    [2]
    $ wf list
    ! error: AOS_OPS_DIR must be an absolute path
    [2]
    $ wf list
    ! error: there is no project 'ap'; did you mean 'app'? See: wf project list
    [2]
    $ wf list
     ID  STATUS    BRANCH   FILES  OVERLAP  WAITS FOR  TITLE
     tf  planning  feat/tf  0                          Test framework
    [0]
    ");
}

#[test]
fn quiet_keeps_results_and_warnings_and_drops_notes() {
    let person = Person::new();
    insta::assert_snapshot!(person.transcript(&[
        &["new", "a", "A", "--quiet"],
        &["clarify", "ask", "a", "--question", "Well?", "--quiet"],
        &["delete", "a", "-q"],
    ]), @"
    $ wf new a A --quiet
    Created workstream: a
      Branch: feat/a
      Worktree: [ROOT]/work/app.ops/worktrees/a
      Plan: [ROOT]/work/app.ops/workflow/projects/app/workstreams/a/plan.md
    [0]
    $ wf clarify ask a --question Well? --quiet
    Asked CLQ-001; a is blocked:clarification
    [0]
    $ wf delete a -q
    This will permanently delete workstream a
      Branch: feat/a
      Worktree: [ROOT]/work/app.ops/worktrees/a
      Folder: [ROOT]/work/app.ops/workflow/projects/app/workstreams/a
      Remote branch: none
    Use --confirm to proceed
    [0]
    ");
}

#[test]
fn shells_without_completions() {
    let person = Person::unregistered();
    insta::assert_snapshot!(person.transcript(&[&["completions", "tcsh"], &["watch"]]), @"
    $ wf completions tcsh
    ! error: the shell 'tcsh' is not one of bash, elvish, fish, powershell, zsh
    [2]
    $ wf watch
    ! error: wf watch needs a terminal; elsewhere use: wf list --json
    [2]
    ");
}
