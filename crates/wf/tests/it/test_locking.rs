//! Locks: one run per workstream, and the registry only for a moment.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use host::lock::{FileLock, LockKind};
use testkit::wait::wait_until;

use crate::support::{ONE, Person, result};

fn hold(person: &Person, name: &str) -> FileLock {
    let dir = person.ops().join("locks");
    std::fs::create_dir_all(&dir).expect("made");
    FileLock::try_acquire(&dir.join(name), LockKind::Exclusive { note: "a test" }).expect("free")
}

#[test]
fn a_second_run_waits_and_then_gives_up_with_3() {
    let person = Person::with_plan(ONE);
    let _held = hold(&person, "workstream.app.tf.lock");
    let mut command = person.command(&["run", "tf"]);
    let output = person.hermetic.run(command.env("AOS_LOCK_TIMEOUT", "0"));
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    let run = person.only_result();
    assert_eq!(
        (run["failed_stage"].as_str(), run["status"].as_str()),
        (Some("lock"), Some("failed"))
    );
    assert_eq!(person.meta("tf", "LAST_RUN_ID"), "", "who has no lock writes nothing");
}

#[test]
fn another_workstream_is_not_held_up() {
    let person = Person::with_plan(ONE);
    person.ok(&["new", "other", "Other"]);
    person.plan("other", ONE);
    let _held = hold(&person, "workstream.app.tf.lock");
    person.refused(&["run", "other"], 2, &["OPENAI_API_KEY"]);
}

#[test]
fn closing_and_merging_are_refused_while_a_run_is_on() {
    let person = Person::with_plan(ONE);
    let _held = hold(&person, "workstream.app.tf.lock");
    person.refused(&["close", "tf", "--force"], 3, &["locked"]);
    person.refused(&["delete", "tf", "--confirm"], 3, &["locked"]);
    person.refused(&["merge", "tf"], 3, &["locked"]);
    assert!(person.ok(&["status", "tf"]).contains("a run is active"));
    // A person may ask and answer meanwhile.
    person.ok(&["clarify", "ask", "tf", "--question", "Well?"]);
    person.ok(&["clarify", "answer", "CLQ-001", "yes"]);
}

#[test]
fn a_bad_timeout_is_a_setting_to_correct() {
    let person = Person::with_plan(ONE);
    let mut command = person.command(&["refresh"]);
    let output = person.hermetic.run(command.env("AOS_LOCK_TIMEOUT", "soon"));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    let mut command = person.command(&["list"]);
    let output = person.hermetic.run(command.env("AOS_LOG_LEVEL", "loud"));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
}

#[test]
fn a_signal_ends_a_waiting_run_in_order() {
    for signal in ["-TERM", "-INT"] {
        let person = Person::with_plan(ONE);
        let held = hold(&person, "workstream.app.tf.lock");
        let mut command = person.command(&["run", "tf"]);
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
        wait_until("the run", || !person.runs().is_empty());
        person
            .hermetic
            .run_ok(person.hermetic.command("kill").arg(signal).arg(child.id().to_string()));
        let status = child.wait().expect("ended");
        assert_eq!((status.code(), status.signal()), (Some(1), None), "{signal}");
        let result = result(&person.runs()[0]);
        assert_eq!(
            (result["failed_stage"].as_str(), result["exit_code"].as_u64()),
            (Some("lock"), Some(1))
        );
        drop(held);
    }
}
