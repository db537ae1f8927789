//! What wf must always do, each shown.

use std::path::PathBuf;
use std::process::Child;

use testkit::wait::wait_until;

use crate::play::{APPROVE, GOOD, PROFILE, REJECT, person, person_with_one};
use crate::support::{ONE, Person, read, result, write};

/// A run ended with this status, has a directory, and its result says the same.
#[track_caller]
fn recorded(person: &Person, args: &[(&str, &str)], status: i32) {
    let before = person.runs().len();
    let mut command = person.command(&["run", "tf"]);
    command.envs(args.iter().copied());
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(status), "{}", output.snapshot());
    assert_eq!(person.runs().len(), before + 1, "a directory for every run");
    let run = person.last_run();
    assert_eq!(result(&run)["exit_code"], status);
    for file in ["run_summary.md", "commands.log", "env_snapshot.txt"] {
        assert!(run.join(file).is_file(), "{file}");
    }
    is_free(person);
}

/// Nobody holds the workstream.
#[track_caller]
fn is_free(person: &Person) {
    assert!(!person.ok(&["status", "tf"]).contains("a run is active"));
}

#[test]
fn every_kind_of_failure_has_a_result() {
    let Some(person) = person_with_one() else { return };
    person.cast("[[step]]\nexit = 1\n", APPROVE);
    recorded(&person, &[], 4);
    recorded(&person, &[("BOTTLEWORKS_FAILPOINT", "panic:wf-implement")], 9);
    person.cast(&GOOD.replace("echo harness", "touch broken; echo harness"), APPROVE);
    recorded(&person, &[], 5);
    person.cast(&GOOD.replace("echo harness", "git rm -qf broken; echo harness"), REJECT);
    recorded(&person, &[], 6);
    person.profile(&format!("{PROFILE}QA_STRICT=true\nMAKE_TARGET_UNIT=none\n"));
    person.cast(GOOD, APPROVE);
    recorded(&person, &[], 7);
    person.profile("AGENT_REVIEW=gpt\n");
    recorded(&person, &[], 2);
    person.profile(PROFILE);
    person.question("tf", "CLQ-001", "blocking");
    recorded(&person, &[], 8);
}

/// Starts a run and waits until one of its boxes is at work.
fn at_work(person: &Person, name: &str) -> Child {
    let mut child = person.command(&["run", "tf"]).spawn().expect("started");
    let is_at_work = |run: &PathBuf| run.join("boxes").join(name).join("guest").is_dir();
    wait_until(name, || {
        assert!(child.try_wait().expect("looked").is_none(), "it ended before {name}");
        person.runs().iter().any(|run| is_at_work(run) && !run.join("result.json").exists())
    });
    child
}

/// Sends the signal to wf alone, as a service manager would.
fn stopped(person: &Person, mut child: Child, signal: &str, stage: &str) {
    let kill = person
        .hermetic
        .run(person.hermetic.command("kill").args([signal, &child.id().to_string()]));
    assert_eq!(kill.status, Some(0), "{}", kill.snapshot());
    assert_eq!(child.wait().expect("ended").code(), Some(1), "{stage}");
    let run = person.last_run();
    let result = result(&run);
    assert_eq!((&result["status"], &result["failed_stage"]), (&"failed".into(), &stage.into()));
    for place in std::fs::read_dir(run.join("boxes")).expect("boxes").flatten() {
        assert!(place.path().join("exit.json").is_file(), "{:?}", place.path());
    }
    is_free(person);
}

#[test]
fn signals_end_the_boxes_and_release_the_lock() {
    let hang = "[[step]]\nsleep = 600\n";
    for signal in ["-TERM", "-INT"] {
        let Some(person) = person_with_one() else { return };
        person.cast(hang, APPROVE);
        stopped(&person, at_work(&person, "implement"), signal, "implement");
        person.cast(GOOD, hang);
        stopped(&person, at_work(&person, "review"), signal, "review");
        assert_eq!(person.meta("tf", "STATUS"), "implement");
        // What was implemented is neither lost nor made again.
        person.cast("[[step]]\nexit = 9\n", APPROVE);
        person.run_once(0);
        assert_eq!(person.subjects().iter().filter(|line| line.contains("TF-001")).count(), 1);
    }
}

#[test]
fn signals_end_tests_in_a_box_and_on_the_host() {
    for test_in in ["box", "host"] {
        let Some(person) = person_with_one() else { return };
        person.profile(&format!("{PROFILE}TEST_IN={test_in}\nTEST_CMD_UNIT=\"/bin/sleep 600\"\n"));
        if test_in == "box" {
            stopped(&person, at_work(&person, "test-unit"), "-TERM", "test");
        } else {
            let child = person.command(&["run", "tf"]).spawn().expect("started");
            wait_until("the tests", || {
                person.runs().last().is_some_and(|run| run.join("tests/unit").is_dir())
            });
            stopped(&person, child, "-TERM", "test");
        }
    }
}

#[test]
fn signals_in_every_stage_leave_a_result_and_no_lock() {
    let stages =
        ["load", "select", "clarification", "implement", "test", "review", "qa_gate", "docs"];
    for (at, stage) in stages.into_iter().enumerate() {
        let Some(person) = person_with_one() else { return };
        let how = if at % 2 == 0 { "term" } else { "int" };
        let point = format!("{how}:wf-{stage}");
        recorded(&person, &[("BOTTLEWORKS_FAILPOINT", &point)], 1);
        person.run_once(0);
        assert_eq!(person.subjects().iter().filter(|line| line.contains("TF-001")).count(), 1);
    }
}

#[test]
fn who_is_told_to_stop_after_acceptance_has_accepted() {
    let Some(person) = person_with_one() else { return };
    recorded(&person, &[("BOTTLEWORKS_FAILPOINT", "term:wf-accepted")], 0);
    assert!(read(&person.workstream_dir("tf").join("plan.md")).contains("Done: [x]"));
}

#[test]
fn every_command_is_in_the_log() {
    let Some(person) = person_with_one() else { return };
    person.run_once(0);
    let log = read(&person.last_run().join("commands.log"));
    for command in [
        "bottle-guest play",
        "[CMD:make -f Makefile -- test-unit] [EXIT:0]",
        "merge --ff-only",
        "fetch",
    ] {
        assert!(log.contains(command), "{command} is not in {log}");
    }
}

#[test]
fn configuration_is_read_and_never_run() {
    let Some(person) = person_with_one() else { return };
    let marker = person.hermetic.root().join("marker");
    person.profile(&format!("{PROFILE}NOTIFY_CMD=\"$(touch {})\"\n", marker.display()));
    recorded(&person, &[], 2);
    let plan = person.workstream_dir("tf").join("plan.md");
    person.profile(PROFILE);
    write(&plan, "### COMMIT-TF-1: bad\n");
    recorded(&person, &[], 2);
    write(&plan, ONE);
    write(&person.workstream_dir("tf").join("clarifications/pending/CLQ-001.json"), "{");
    recorded(&person, &[], 8);
    assert!(!marker.exists());
}

#[test]
fn what_would_destroy_work_is_refused_first() {
    let Some(person) = person_with_one() else { return };
    person.run_once(0);
    person.worktree("tf").write("unsaved.txt", "x");
    person.ok(&["uat", "pass", "UAT-001"]);
    person.refused(&["close", "tf"], 2, &["uncommitted"]);
    person.ok(&["delete", "tf"]);
    assert!(person.worktree("tf").dir().join("unsaved.txt").exists());
}

#[test]
fn history_only_grows() {
    let Some(person) = person_with_one() else { return };
    let mut heads = vec![person.worktree("tf").head()];
    for review in [REJECT, REJECT, APPROVE] {
        person.cast(GOOD, review);
        person.wf(&["run", "tf"]);
        heads.push(person.worktree("tf").head());
    }
    for pair in heads.windows(2) {
        person.worktree("tf").git(&["merge-base", "--is-ancestor", &pair[0], &pair[1]]);
        assert_ne!(pair[0], pair[1]);
    }
}

#[test]
fn a_second_run_waits_and_then_gives_up_with_3() {
    let Some(person) = person_with_one() else { return };
    person.cast("[[step]]\nsleep = 600\n", APPROVE);
    let first = at_work(&person, "implement");
    let mut second = person.command(&["run", "tf"]);
    let output = person.hermetic.run(second.env("AOS_LOCK_TIMEOUT", "1"));
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    let refused = person.last_run();
    assert_eq!(result(&refused)["failed_stage"], "lock");
    std::fs::rename(&refused, person.hermetic.root().join("refused")).expect("out of the way");
    stopped(&person, first, "-TERM", "implement");
}

#[test]
fn a_second_run_gets_its_turn_when_the_first_is_over() {
    let Some(person) = person_with_one() else { return };
    person.cast(&format!("[[step]]\nsleep = 2\n{GOOD}"), APPROVE);
    let mut first = at_work(&person, "implement");
    let output = person.wf(&["run", "tf"]);
    assert_eq!(first.wait().expect("ended").code(), Some(0));
    assert_eq!(output.status, Some(8), "the plan is complete by then: {}", output.snapshot());
    assert_eq!(person.subjects().iter().filter(|line| line.contains("TF-001")).count(), 1);
}

#[test]
fn two_workstreams_run_side_by_side() {
    let Some(person) = person(ONE) else { return };
    person.ok(&["new", "other", "Other"]);
    person.plan("other", ONE);
    person.cast(&format!("[[step]]\nsleep = 3\n{GOOD}"), APPROVE);
    let mut first = at_work(&person, "implement");
    let output = person.wf(&["run", "other"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(first.wait().expect("ended").code(), Some(0));
    for id in ["tf", "other"] {
        assert_eq!(person.meta(id, "LAST_RESULT"), "passed");
        assert!(
            person.worktree(id).git(&["log", "-1", "--format=%s"]).starts_with("COMMIT-TF-001:")
        );
    }
}

#[test]
fn what_the_workspace_lacks_is_noted() {
    let Some(person) = person_with_one() else { return };
    person.worktree("tf").write_lfs_file().commit("large files elsewhere");
    person.run_once(0);
    let notes = result(&person.last_run())["notes"].to_string();
    assert!(notes.contains("large files (LFS) are in the workspace as pointers"), "{notes}");
}
