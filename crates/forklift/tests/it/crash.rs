//! kill -9 of forklift at every phase: the box still ends at its deadline, the record is complete, and a second
//! forklift finishes what the first began.

use std::path::Path;
use std::time::{Duration, Instant};

use testkit::hermetic::Output;
use testkit::wait::{wait_for, wait_until};

use crate::support::{MERGE, Person, name_of};

pub(crate) fn killed_at(person: &Person, phase: &str, script: &str, flags: &[&str]) {
    let mut command = person.command(script, flags);
    command.env("BOTTLEWORKS_FAILPOINT", phase);
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.signal, Some(9), "not killed at {phase}: {}", output.snapshot());
}

fn attach(person: &Person) -> Output {
    let run = person.only_run();
    let name = run.file_name().expect("a name").to_str().expect("UTF-8");
    person.hermetic.run(&mut person.forklift(&["attach", name]))
}

fn finishes_after(phase: &str) {
    let Some(person) = Person::new() else { return };
    killed_at(&person, phase, MERGE, &[]);
    let output = attach(&person);
    assert_eq!(output.status, Some(0), "after {phase}: {}", output.snapshot());
    assert_eq!(person.published().len(), 1, "after {phase}");
    assert_eq!(person.metadata("/phase"), "closed");
    let log = std::fs::read_to_string(person.only_run().join("operations.jsonl")).expect("a log");
    let pushed = |line: &&str| line.contains("\"push\"") && line.contains("\"done\"");
    assert_eq!(log.lines().filter(pushed).count(), 1, "{log}");
}

#[test]
fn killed_after_the_commits_were_pinned() {
    finishes_after("pinned");
}

#[test]
fn killed_after_the_workspace_was_made() {
    finishes_after("prepared");
}

#[test]
fn killed_after_the_box_was_launched() {
    finishes_after("launched");
}

#[test]
fn killed_after_the_box_ended() {
    finishes_after("ended");
}

#[test]
fn killed_after_the_import() {
    finishes_after("imported");
}

#[test]
fn killed_after_the_verdict() {
    finishes_after("judged");
}

#[test]
fn killed_after_publishing() {
    finishes_after("published");
}

#[test]
fn the_deadline_outlives_the_forklift_that_set_it() {
    let Some(person) = Person::new() else { return };
    let script = "[[step]]\ndaemon = \"while :; do date +%s%N > heartbeat; sleep 0.1; done\"\n\
                  [[step]]\nsleep = 600\n";
    let began = Instant::now();
    killed_at(&person, "launched", script, &["--timeout", "8"]);
    let run = person.only_run();
    wait_until("the end of the box", || run.join("boxes/agent/exit.json").exists());
    assert!(began.elapsed() >= Duration::from_secs(8), "ended early");
    let last = std::fs::read(run.join("workspace/heartbeat")).expect("it beat");
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(std::fs::read(run.join("workspace/heartbeat")).expect("there"), last, "it lives on");
    let output = attach(&person);
    assert_eq!(output.status, Some(5), "{}", output.snapshot());
    assert_eq!(person.metadata("/box/ended/kind"), "out-of-time");
    assert_eq!(person.metadata("/box/report/ready"), true);
}

#[test]
fn a_second_forklift_waits_for_a_box_that_still_runs() {
    let Some(person) = Person::new() else { return };
    killed_at(&person, "launched", &format!("[[step]]\nsleep = 1.5\n{MERGE}"), &[]);
    let output = attach(&person);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
}

#[test]
fn a_run_whose_box_was_lost_with_its_forklift_is_made_again() {
    let Some(person) = Person::new() else { return };
    killed_at(&person, "launched", "[[step]]\nsleep = 600\n", &[]);
    let lost = person.only_run();
    let shim = wait_for("the shim's record", || {
        let record = std::fs::read(lost.join("boxes/agent/shim.json")).ok()?;
        let record: serde_json::Value = serde_json::from_slice(&record).ok()?;
        record["process"]["pid"].as_u64().map(|pid| pid.to_string())
    });
    person.hermetic.run_ok(person.hermetic.command("kill").args(["-KILL", &shim]));
    wait_until("the shim to be gone", || !Path::new("/proc").join(&shim).exists());
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let note =
        format!("the box of {} was lost with its forklift: a new run starts", name_of(&lost));
    assert!(output.stderr.contains(&note), "{}", output.stderr);
    assert_eq!((person.runs().len(), person.published().len()), (2, 1));
}

#[test]
fn an_interrupted_person_gets_a_stopped_run() {
    let Some(person) = Person::new() else { return };
    let mut child = person.start("[[step]]\nsleep = 600\n", &[]);
    person.wait_for_box(&mut child);
    let pid = child.id().to_string();
    person.hermetic.run_ok(person.hermetic.command("kill").args(["-INT", &pid]));
    let status = child.wait().expect("ends");
    assert_eq!(status.code(), Some(130));
    assert_eq!(person.metadata("/verdict/kind"), "stopped");
}

#[test]
fn a_closed_run_is_shown_and_not_run_again() {
    let Some(person) = Person::new() else { return };
    person.run(MERGE, &[]);
    let output = attach(&person);
    assert_eq!(output.status, Some(0));
    assert_eq!(person.published().len(), 1);
}
