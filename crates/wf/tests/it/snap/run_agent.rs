//! IMPLEMENT: how runs end, by what the agent does.

use crate::play::{APPROVE, GOOD, PROFILE, person_with_one};
use crate::support::{Person, write};

/// An agent that runs a line in the workspace and claims success.
fn agent(line: &str) -> String {
    format!(
        "[[step]]\nrun = '''\n{line}\n'''\n[[step]]\nprint = '''{{\"status\": \"success\", \"notes\": \"made it\"}}\n'''\n"
    )
}

fn prints(text: &str) -> String {
    format!("[[step]]\nprint = '''{text}\n'''\n")
}

/// Runs this agent and shows the output, the failed stage with its notes, and the state afterwards.
fn run(person: &Person, script: &str) -> String {
    person.cast(script, APPROVE);
    let shot = person.shot(&["run", "tf", "--once"], &[]);
    let subjects = person.subjects();
    format!("{shot}{}branch: {}\n", person.meta_lines("tf"), subjects.join(" | "))
}

macro_rules! refused {
    ($name:ident, $script:expr, @$snapshot:literal) => {
        #[test]
        fn $name() {
            let Some(person) = person_with_one() else { return };
            insta::assert_snapshot!(run(&person, &$script), @$snapshot);
        }
    };
}

refused!(nothing_is_committed, agent("true"), @r#"
$ wf run tf --once
COMMIT-TF-001: failed at implement: no commit was created
  Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
  Next: look: wf show -w tf; go on: wf run tf
! > implement
!   run: true
!   print: {"status": "success", "notes": "made it"}
[4]
STATUS=implement
BLOCKED_BY=
LAST_RESULT=failed
LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
LAST_COMMIT_SHA=
branch: tests | start
"#);
refused!(a_subject_without_the_id, agent("echo x > x && git add x && git commit -qm wip"), @r#"
$ wf run tf --once
COMMIT-TF-001: failed at implement: the commit "wip" does not start with COMMIT-TF-001:
  Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
  Next: look: wf show -w tf; go on: wf run tf
! > implement
!   run: echo x > x && git add x && git commit -qm wip
!   print: {"status": "success", "notes": "made it"}
[4]
STATUS=implement
BLOCKED_BY=
LAST_RESULT=failed
LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
LAST_COMMIT_SHA=
branch: tests | start
"#);
refused!(a_forbidden_path, agent("mkdir secrets && echo x > secrets/x"), @r#"
$ wf run tf --once
COMMIT-TF-001: failed at implement: secrets/x was changed, but secrets/ is forbidden
  Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
  Next: look: wf show -w tf; go on: wf run tf
! > implement
!   run: mkdir secrets && echo x > secrets/x
!   print: {"status": "success", "notes": "made it"}
[4]
STATUS=implement
BLOCKED_BY=
LAST_RESULT=failed
LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
LAST_COMMIT_SHA=
branch: tests | start
"#);
refused!(too_many_files, agent("for i in 1 2 3 4 5 6 7 8 9 10 11; do echo $i > f$i; done"), @r#"
$ wf run tf --once
COMMIT-TF-001: failed at implement: 11 files were changed; at most 10 are allowed
  Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
  Next: look: wf show -w tf; go on: wf run tf
! > implement
!   run: for i in 1 2 3 4 5 6 7 8 9 10 11; do echo $i > f$i; done
!   print: {"status": "success", "notes": "made it"}
[4]
STATUS=implement
BLOCKED_BY=
LAST_RESULT=failed
LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
LAST_COMMIT_SHA=
branch: tests | start
"#);
refused!(too_many_lines, agent("seq 1 201 > long"), @r#"
$ wf run tf --once
COMMIT-TF-001: failed at implement: 201 lines were changed; at most 200 are allowed
  Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
  Next: look: wf show -w tf; go on: wf run tf
! > implement
!   run: seq 1 201 > long
!   print: {"status": "success", "notes": "made it"}
[4]
STATUS=implement
BLOCKED_BY=
LAST_RESULT=failed
LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
LAST_COMMIT_SHA=
branch: tests | start
"#);
refused!(a_link_out_of_the_repository, agent("ln -s /etc/passwd link"), @r#"
$ wf run tf --once
COMMIT-TF-001: failed at implement: link is a link out of the repository
  Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
  Next: look: wf show -w tf; go on: wf run tf
! > implement
!   run: ln -s /etc/passwd link
!   print: {"status": "success", "notes": "made it"}
[4]
STATUS=implement
BLOCKED_BY=
LAST_RESULT=failed
LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
LAST_COMMIT_SHA=
branch: tests | start
"#);
refused!(another_branch, agent("git checkout -q -b other && echo x > x"), @r#"
$ wf run tf --once
COMMIT-TF-001: failed at implement: the agent left its workspace on another branch than feat/tf
  Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
  Next: look: wf show -w tf; go on: wf run tf
! > implement
!   run: git checkout -q -b other && echo x > x
!   print: {"status": "success", "notes": "made it"}
[4]
STATUS=implement
BLOCKED_BY=
LAST_RESULT=failed
LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
LAST_COMMIT_SHA=
branch: tests | start
"#);
refused!(a_rewritten_history, agent("git commit -q --amend -m 'COMMIT-TF-001: mine'"), @r#"
$ wf run tf --once
COMMIT-TF-001: failed at implement: the history of the branch was rewritten
  Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
  Next: look: wf show -w tf; go on: wf run tf
! > implement
!   run: git commit -q --amend -m 'COMMIT-TF-001: mine'
!   print: {"status": "success", "notes": "made it"}
[4]
STATUS=implement
BLOCKED_BY=
LAST_RESULT=failed
LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
LAST_COMMIT_SHA=
branch: tests | start
"#);
refused!(no_answer, prints("all done!"), @"
$ wf run tf --once
COMMIT-TF-001: failed at implement: the agent gave no answer that could be read
  Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
  Next: look: wf show -w tf; go on: wf run tf
! > implement
!   print: all done!
[4]
STATUS=implement
BLOCKED_BY=
LAST_RESULT=failed
LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
LAST_COMMIT_SHA=
branch: tests | start
");
refused!(a_failure_that_is_admitted, prints("{\"status\": \"failure\", \"notes\": \"too hard\"}"), @r#"
$ wf run tf --once
COMMIT-TF-001: failed at implement: the agent gave up: too hard
  Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
  Next: look: wf show -w tf; go on: wf run tf
! > implement
!   print: {"status": "failure", "notes": "too hard"}
[4]
STATUS=implement
BLOCKED_BY=
LAST_RESULT=failed
LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
LAST_COMMIT_SHA=
branch: tests | start
"#);
refused!(an_exit_status, "[[step]]\nexit = 3\n", @"
$ wf run tf --once
COMMIT-TF-001: failed at implement: the agent failed: the script ended with status 3
  Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
  Next: look: wf show -w tf; go on: wf run tf
! > implement
!   exit: 3
[4]
STATUS=implement
BLOCKED_BY=
LAST_RESULT=failed
LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
LAST_COMMIT_SHA=
branch: tests | start
");
refused!(a_question, prints("{\"status\": \"clarification_needed\", \"question\": \"Which?\", \"options\": [\"a\", \"b\"]}"), @r#"
$ wf run tf --once
COMMIT-TF-001: blocked at implement: blocked by CLQ-001
  Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
  Next: answer: wf clarify show CLQ-001 -w tf
! > implement
!   print: {"status": "clarification_needed", "question": "Which?", "options": ["a", "b"]}
[8]
STATUS=blocked:clarification
BLOCKED_BY=CLQ-001
LAST_RESULT=blocked
LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
LAST_COMMIT_SHA=
branch: tests | start
"#);

#[test]
fn work_that_passes() {
    let Some(person) = person_with_one() else { return };
    insta::assert_snapshot!(run(&person, &agent("mkdir -p mk && echo a > mk/a")), @r#"
    $ wf run tf --once
    COMMIT-TF-001: passed
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: try it: wf uat list
    ! > implement
    !   run: mkdir -p mk && echo a > mk/a
    !   print: {"status": "success", "notes": "made it"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [0]
    STATUS=uat:pending
    BLOCKED_BY=UAT-001
    LAST_RESULT=passed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=[SHA]
    branch: COMMIT-TF-001: Add test harness | tests | start
    "#);
}

#[test]
fn work_outside_of_the_expected_paths_passes_with_a_note() {
    let Some(person) = person_with_one() else { return };
    let shot = run(&person, &agent("echo a > elsewhere"));
    let notes = person.file(&person.last_run().join("run_summary.md"));
    let notes = notes.split("## Notes").nth(1).unwrap_or_default().to_owned();
    insta::assert_snapshot!(format!("{shot}{notes}"), @r#"
    $ wf run tf --once
    COMMIT-TF-001: passed
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: try it: wf uat list
    ! > implement
    !   run: echo a > elsewhere
    !   print: {"status": "success", "notes": "made it"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [0]
    STATUS=uat:pending
    BLOCKED_BY=UAT-001
    LAST_RESULT=passed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=[SHA]
    branch: COMMIT-TF-001: Add test harness | tests | start


    made it
    elsewhere is outside the expected paths
    "#);
}

#[test]
fn an_agent_that_takes_too_long() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}IMPLEMENT_TIMEOUT=2\n"));
    insta::assert_snapshot!(run(&person, "[[step]]\nsleep = 600\n"), @"
    $ wf run tf --once
    COMMIT-TF-001: failed at implement: the agent was out of time after 2 s
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   sleep: 600 s
    [4]
    STATUS=implement
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    branch: tests | start
    ");
}

#[test]
fn a_file_of_the_user_is_in_the_way() {
    let Some(person) = person_with_one() else { return };
    person.worktree("tf").write("mk/test.mk", "mine\n");
    insta::assert_snapshot!(run(&person, GOOD), @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at implement: mk/test.mk has uncommitted changes in the worktree and is changed by this micro-commit; put yours aside (git stash) and run wf again
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    [4]
    STATUS=implement
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    branch: tests | start
    "#);
}

#[test]
fn a_hook_of_the_product_refuses_the_commit() {
    use std::os::unix::fs::PermissionsExt;
    let Some(person) = person_with_one() else { return };
    let hook = person.repo.git_dir().join("hooks/pre-commit");
    write(&hook, "#!/bin/sh\necho not today >&2\nexit 1\n");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("executable");
    insta::assert_snapshot!(run(&person, &agent("mkdir -p mk && echo a > mk/a")), @r#"
    $ wf run tf --once
    COMMIT-TF-001: failed at implement: what the agent left could not be committed (status 1): not today
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    !   run: mkdir -p mk && echo a > mk/a
    !   print: {"status": "success", "notes": "made it"}
    [4]
    STATUS=implement
    BLOCKED_BY=
    LAST_RESULT=failed
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    branch: tests | start
    "#);
}

#[test]
fn a_script_that_cannot_be_used() {
    let Some(person) = person_with_one() else { return };
    let wrong = run(&person, "[[step]]\ndance = true\n");
    let shown: Vec<&str> = wrong.lines().filter(|line| !line.contains("TOML")).collect();
    let shown: String = shown.iter().take(4).map(|line| format!("{line}\n")).collect();
    person.profile(&format!(
        "{}AGENT_PLAN=scripted\n",
        PROFILE.replace("implement.toml", "nowhere.toml")
    ));
    let missing = person.shot(&["run", "tf", "--once"], &[]);
    person.profile(&format!("{PROFILE}SECRETS_IMPLEMENT=TOKEN\n"));
    let secrets = person.shot(&["run", "tf", "--once"], &[]);
    assert!(shown.contains("[2]") || wrong.contains("[2]"), "{wrong}");
    insta::assert_snapshot!(format!("{missing}{secrets}"), @"
    $ wf run tf --once
    no micro-commit: failed at load: [ROOT]/work/app.ops/workflow/projects/app/project_profile.env: AGENT_PLAN_SCRIPT must be a file, since the agent is 'scripted'
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: look: wf doctor
    [2]
    $ wf run tf --once
    COMMIT-TF-001: failed at implement: SECRETS_IMPLEMENT cannot be granted: nothing secret goes into a box
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: look: wf show -w tf; go on: wf run tf
    ! > implement
    [2]
    ");
}
