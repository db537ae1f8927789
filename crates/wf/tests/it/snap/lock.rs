//! Locks: what each command says while a run is active.

use host::lock::{FileLock, LockKind};

use crate::support::{ONE, Person};

fn held() -> (Person, FileLock) {
    let person = Person::with_plan(ONE);
    let path = person.ops().join("locks/workstream.app.tf.lock");
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    let lock = FileLock::try_acquire(&path, LockKind::Exclusive { note: "wf run tf" });
    (person, lock.expect("free"))
}

/// The lines without the process that holds the lock.
fn without_pid(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut words = Vec::new();
        for word in line.split(' ') {
            let digits = word.trim_matches(|c: char| !c.is_ascii_digit());
            let is_pid = digits.len() > 2 && digits.parse::<u32>() == Ok(std::process::id());
            words.push(if is_pid { word.replace(digits, "[PID]") } else { word.to_owned() });
        }
        out.push_str(&words.join(" "));
        out.push('\n');
    }
    out
}

#[test]
fn commands_that_wait_for_the_end_of_a_run() {
    let (person, _lock) = held();
    let text = person.transcript(&[
        &["close", "tf", "--force"],
        &["delete", "tf", "--confirm"],
        &["merge", "tf"],
        &["update", "tf"],
        &["skip", "tf"],
        &["plan", "tf", "--from", "x"],
        &["reject", "tf", "-m", "x"],
        &["docs", "cleanup", "tf", "--apply"],
    ]);
    insta::assert_snapshot!(without_pid(&text), @"
    $ wf close tf --force
    ! error: [ROOT]/work/app.ops/locks/workstream.app.tf.lock is locked by process [PID] (wf run tf)
    [3]
    $ wf delete tf --confirm
    ! error: [ROOT]/work/app.ops/locks/workstream.app.tf.lock is locked by process [PID] (wf run tf)
    [3]
    $ wf merge tf
    ! error: [ROOT]/work/app.ops/locks/workstream.app.tf.lock is locked by process [PID] (wf run tf)
    [3]
    $ wf update tf
    ! error: [ROOT]/work/app.ops/locks/workstream.app.tf.lock is locked by process [PID] (wf run tf)
    [3]
    $ wf skip tf
    ! error: [ROOT]/work/app.ops/locks/workstream.app.tf.lock is locked by process [PID] (wf run tf)
    [3]
    $ wf plan tf --from x
    ! error: [ROOT]/work/app.ops/locks/workstream.app.tf.lock is locked by process [PID] (wf run tf)
    [3]
    $ wf reject tf -m x
    ! error: [ROOT]/work/app.ops/locks/workstream.app.tf.lock is locked by process [PID] (wf run tf)
    [3]
    $ wf docs cleanup tf --apply
    ! error: [ROOT]/work/app.ops/locks/workstream.app.tf.lock is locked by process [PID] (wf run tf)
    [3]
    ");
}

#[test]
fn commands_that_work_during_a_run() {
    let (person, _lock) = held();
    insta::assert_snapshot!(person.transcript(&[
        &["status", "tf"],
        &["clarify", "ask", "tf", "--question", "Well?"],
        &["clarify", "answer", "CLQ-001", "yes"],
        &["list"],
        &["refresh"],
        &["delete", "tf"],
    ]), @"
    $ wf status tf
    workstream     tf: Test framework
    status         planning (a run is active)
    branch         feat/tf from main at [SHA]
    worktree       [ROOT]/work/app.ops/worktrees/tf
    expects        mk/ tests/
    touched        0 files, refreshed [TIME]
    plan           0 of 1 done
                   [ ] COMMIT-TF-001: Add test harness
    needs you      write the plan, then: wf run tf
    [0]
    $ wf clarify ask tf --question Well?
    Asked CLQ-001; tf is blocked:clarification
    [0]
    $ wf clarify answer CLQ-001 yes
    Answered CLQ-001: yes
      tf is implement
    [0]
    $ wf list
     ID  STATUS     BRANCH   FILES  OVERLAP  WAITS FOR  TITLE
     tf  implement  feat/tf  0                          Test framework
    [0]
    $ wf refresh
    Refreshed 1 workstreams, 0 changed
    [0]
    $ wf delete tf
    This will permanently delete workstream tf
      Branch: feat/tf
      Worktree: [ROOT]/work/app.ops/worktrees/tf
      Folder: [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf
      Remote branch: none
    Use --confirm to proceed
    [0]
    ");
}

#[test]
fn a_second_run_gives_up_after_its_time() {
    let (person, _lock) = held();
    let shot = person.shot(&["run", "tf"], &[("AOS_LOCK_TIMEOUT", "0")]);
    let run = person.runs().pop().expect("a run");
    let summary = person.file(&run.join("run_summary.md"));
    insta::assert_snapshot!(without_pid(&format!("{shot}{}{summary}", person.meta_lines("tf"))), @"
    $ wf run tf
    no micro-commit: failed at lock: [ROOT]/work/app.ops/locks/workstream.app.tf.lock is locked by process [PID] (wf run tf)
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_none
      Next: who runs: wf status tf
    [3]
    STATUS=planning
    BLOCKED_BY=
    LAST_RESULT=
    LAST_RUN_ID=
    LAST_COMMIT_SHA=
    # Run [STAMP]_app_tf_none

    - Project: app
    - Workstream: tf
    - Micro-commit: none
    - Status: failed
    - Failed stage: lock
    - Started: [TIME]
    - Ended: [TIME] ([N] s)

    ## Stages

    | Stage | Status | Seconds | Notes |
    |---|---|---|---|
    | lock | failed | [N] | [ROOT]/work/app.ops/locks/workstream.app.tf.lock is locked by process [PID] (wf run tf) |

    ## Notes

    [ROOT]/work/app.ops/locks/workstream.app.tf.lock is locked by process [PID] (wf run tf)
    ");
}
