//! What a program is given and what is kept of what it says.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Stdio;
use std::sync::Arc;

use host::process::{
    ChildOptions, LogWriter, ProcessError, RunAs, RunLimits, run, run_to_log, run_with_input,
    spawn_child,
};
use host::signal::Cancel;
use model::command::{CommandExit, CommandSpec};
use model::redact::Redactor;
use model::secret::Secret;

fn sh(script: &str) -> CommandSpec {
    CommandSpec::new("/bin/sh").args(["-c", script]).env("PATH", "/usr/bin:/bin")
}

async fn said(spec: &CommandSpec) -> String {
    let output = run(spec, &RunLimits::default(), &Cancel::new()).await.unwrap();
    assert_eq!(output.exit, CommandExit::Exited(0));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_environment_is_exactly_the_one_given() {
    let spec = CommandSpec::new("/usr/bin/env").env("A", "1").env("B", "two words");
    assert_eq!(said(&spec).await, "A=1\nB=two words\n");
}

#[tokio::test]
async fn it_runs_where_it_is_told_with_nothing_to_read() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let spec = sh("pwd; cat").cwd(&dir);
    assert_eq!(said(&spec).await, format!("{}\n", dir.display()));
}

#[tokio::test]
async fn statuses_and_signals_are_told_apart() {
    for (script, expected) in
        [("exit 7", CommandExit::Exited(7)), ("kill -9 $$", CommandExit::Signalled(9))]
    {
        let output = run(&sh(script), &RunLimits::default(), &Cancel::new()).await.unwrap();
        assert_eq!((output.exit, output.cancelled), (expected, None));
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_says_which_and_where() {
    let spec = CommandSpec::new("/no/such/program").cwd("/tmp");
    let error = run(&spec, &RunLimits::default(), &Cancel::new()).await.unwrap_err();
    assert!(matches!(error, ProcessError::Start { .. }));
    assert_eq!(error.to_string(), "could not start /no/such/program in /tmp");
}

#[tokio::test]
async fn input_goes_in_and_need_not_be_read() {
    let input = vec![b'x'; 1 << 20];
    let limits = RunLimits { stdout_cap: 2 << 20, ..RunLimits::default() };
    let output = run_with_input(&sh("cat"), &input, &limits, &Cancel::new()).await.unwrap();
    assert_eq!(output.stdout, input);
    let output = run_with_input(&sh("exit 0"), &input, &limits, &Cancel::new()).await.unwrap();
    assert_eq!(output.exit, CommandExit::Exited(0));
}

#[tokio::test]
async fn a_flood_is_read_to_its_end_and_kept_to_its_limit() {
    let spec = sh("yes | head -c 5000000; yes no | head -c 70000 >&2");
    let limits = RunLimits { stdout_cap: 1000, stderr_cap: 500, ..RunLimits::default() };
    let output = run(&spec, &limits, &Cancel::new()).await.unwrap();
    assert_eq!(output.exit, CommandExit::Exited(0));
    assert_eq!((output.stdout.len(), output.stderr.len()), (1000, 500));
    assert_eq!(output.stdout_dropped, 4_999_000);
    assert_eq!(output.dropped_bytes, 4_999_000 + 69_500);
}

#[tokio::test]
async fn a_log_has_both_streams_in_order_and_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let redactor = Arc::new(Redactor::new([Secret::new("hunter2-hunter2")]));
    let mut log = LogWriter::new(File::create(&path).unwrap(), 10_000, redactor);
    let spec = sh(
        "echo one; echo two >&2; echo hunter2-hunter2; printf hunter2-; printf hunter2 >&2; exit 3",
    );
    let output = run_to_log(&spec, &RunLimits::default(), &Cancel::new(), &mut log).await.unwrap();
    assert_eq!(output.exit, CommandExit::Exited(3));
    assert_eq!(log.finish().unwrap().dropped, 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n***\n***");
}

#[tokio::test]
async fn a_log_does_not_grow_past_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let redactor = Arc::new(Redactor::new([]));
    let mut log = LogWriter::new(File::create(&path).unwrap(), 1000, redactor);
    let spec = sh("yes | head -c 20000000");
    run_to_log(&spec, &RunLimits::default(), &Cancel::new(), &mut log).await.unwrap();
    let summary = log.finish().unwrap();
    assert_eq!(summary.written, 1000);
    assert_eq!(summary.dropped, 19_999_000);
    let text = fs::read_to_string(&path).unwrap();
    let line = "\n[19999000 bytes are left out here: this log is limited to 1000 bytes]\n";
    assert!(text.contains(line) && text.ends_with("y\ny\n"), "{text}");
}

#[tokio::test]
async fn only_named_descriptors_are_inherited_and_only_this_once() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"shared").unwrap();
    let script = format!("cat /proc/self/fd/{}", file.as_raw_fd());
    let keep = [file.as_fd()];
    let options = ChildOptions { stdout: Stdio::piped(), keep_fds: &keep, ..Default::default() };
    let child = spawn_child(&sh(&script), options).unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.stdout, b"shared");
    let output = run(&sh(&script), &RunLimits::default(), &Cancel::new()).await.unwrap();
    assert_ne!(output.exit, CommandExit::Exited(0));
}

#[tokio::test]
async fn root_can_start_a_program_as_somebody_without_other_groups() {
    if !host::env::is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let run_as = Some(RunAs { uid: 12345, gid: 12346 });
    let options = ChildOptions { stdout: Stdio::piped(), run_as, ..Default::default() };
    let child = spawn_child(&sh("id -u; id -G"), options).unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "12345\n12346\n");
}
