//! How programs end: with everything they started, when their time or our patience is over.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use host::process::{
    Leftovers, ProcessHandle, RunLimits, Signal, run, send_signal, spawn_detached,
};
use host::signal::{Cancel, CancelReason};
use model::command::{CommandExit, CommandSpec};

const CHILD: &str = "BOTTLEWORKS_TEST_SESSION";

/// Ends a hang; no promise depends on it.
const LIMIT: Duration = Duration::from_secs(300);

fn sh(script: &str, dir: &Path) -> CommandSpec {
    CommandSpec::new("/bin/sh").args(["-c", script]).env("PATH", "/usr/bin:/bin").cwd(dir)
}

/// A process that is forked twice, ignores SIGTERM and beats until it is killed; at most for fifteen minutes, so that a
/// test that is killed leaves nothing behind for long.
const STUBBORN: &str =
    "trap '' TERM; ( (for i in $(seq 18000); do echo x >> beat; sleep 0.05; done) & ) ; sleep 900";

fn limits(timeout: Option<Duration>) -> RunLimits {
    RunLimits { timeout, grace: Duration::from_millis(300), ..RunLimits::default() }
}

/// Waits until the file has grown beyond a length.
async fn grows_beyond(path: &Path, length: u64) {
    let start = Instant::now();
    while !fs::metadata(path).is_ok_and(|meta| meta.len() > length) {
        assert!(start.elapsed() < LIMIT, "{} does not grow", path.display());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Checks that the file was written and is written no more. A last write may be under way when its writer is killed.
async fn falls_silent(path: &Path) {
    let (start, mut before) = (Instant::now(), 0);
    loop {
        let now = fs::metadata(path).unwrap().len();
        if now > 0 && now == before {
            return;
        }
        assert!(start.elapsed() < LIMIT, "{} grows on", path.display());
        before = now;
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
}

#[tokio::test]
async fn out_of_time_means_that_the_whole_group_is_gone() {
    // On a busy machine the shell may need longer than the shortest limit to begin at all.
    for millis in [500, 2000, 8000, 32_000] {
        let dir = tempfile::tempdir().unwrap();
        let limits = limits(Some(Duration::from_millis(millis)));
        let output = run(&sh(STUBBORN, dir.path()), &limits, &Cancel::new()).await.unwrap();
        assert_eq!(output.exit, CommandExit::TimedOut);
        if dir.path().join("beat").exists() {
            falls_silent(&dir.path().join("beat")).await;
            return;
        }
    }
    panic!("it never began");
}

#[tokio::test]
async fn a_program_that_wants_to_end_well_gets_the_time() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap 'echo tidy; exit 0' TERM; while :; do sleep 0.05; done";
    let limits =
        RunLimits { timeout: Some(Duration::from_secs(3)), grace: LIMIT, ..RunLimits::default() };
    let output = run(&sh(script, dir.path()), &limits, &Cancel::new()).await.unwrap();
    assert_eq!(
        (output.exit, output.stdout.as_slice()),
        (CommandExit::TimedOut, b"tidy\n".as_slice())
    );
}

#[tokio::test]
async fn being_told_to_stop_ends_the_whole_group_and_keeps_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let cancel = Cancel::new();
    let spec = sh(STUBBORN, dir.path());
    let limits = limits(None);
    let (output, ()) = tokio::join!(run(&spec, &limits, &cancel), async {
        grows_beyond(&dir.path().join("beat"), 0).await;
        cancel.cancel(CancelReason::Asked("enough".into()));
    });
    let output = output.unwrap();
    assert_eq!(output.cancelled, Some(CancelReason::Asked("enough".into())));
    assert_eq!(output.exit, CommandExit::Signalled(9));
    falls_silent(&dir.path().join("beat")).await;
}

#[tokio::test]
async fn a_wait_that_is_given_up_leaves_nobody_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (spec, limits, cancel) = (sh(STUBBORN, dir.path()), limits(None), Cancel::new());
    let beat = dir.path().join("beat");
    tokio::select! {
        output = run(&spec, &limits, &cancel) => panic!("{output:?}"),
        () = grows_beyond(&beat, 0) => {}
    }
    falls_silent(&beat).await;
}

#[tokio::test]
async fn those_left_behind_are_killed_unless_they_may_stay() {
    let script = "(for i in $(seq 18000); do [ -e stop ] && break; echo x >> beat; sleep 0.05; done) > /dev/null 2>&1 &
                  while [ ! -e beat ]; do sleep 0.05; done";
    for leftovers in [Leftovers::Kill, Leftovers::Leave] {
        let dir = tempfile::tempdir().unwrap();
        let limits = RunLimits { leftovers, ..RunLimits::default() };
        let output = run(&sh(script, dir.path()), &limits, &Cancel::new()).await.unwrap();
        assert_eq!(output.exit, CommandExit::Exited(0));
        let beat = dir.path().join("beat");
        match leftovers {
            Leftovers::Kill => falls_silent(&beat).await,
            Leftovers::Leave => grows_beyond(&beat, fs::metadata(&beat).unwrap().len()).await,
        }
        fs::write(dir.path().join("stop"), "").unwrap();
    }
}

#[tokio::test]
async fn one_that_left_the_group_with_our_pipes_does_not_hold_us_up() {
    let dir = tempfile::tempdir().unwrap();
    let linger = "for i in $(seq 3000); do [ -e stop ] && break; sleep 0.1; done; : >gone";
    let script = format!("setsid sh -c '{linger}' & echo done");
    let output = run(&sh(&script, dir.path()), &limits(None), &Cancel::new()).await.unwrap();
    assert_eq!(output.stdout, b"done\n");
    assert!(!dir.path().join("gone").exists(), "it was waited for");
    fs::write(dir.path().join("stop"), "").unwrap();
}

#[tokio::test]
async fn a_detached_process_is_known_by_its_start_and_can_be_ended() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| File::create(dir.path().join(name)).unwrap();
    let spec = sh("exec sleep 60", dir.path());
    let child = spawn_detached(&spec, file("in"), file("err")).unwrap();
    assert!(child.is_alive().unwrap());
    let namesake = ProcessHandle { start_ticks: child.start_ticks + 1, ..child };
    assert!(!send_signal(&namesake, Signal::KILL).unwrap());
    assert!(child.is_alive().unwrap());
    assert!(send_signal(&child, Signal::KILL).unwrap());
    while child.is_alive().unwrap() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!send_signal(&child, Signal::KILL).unwrap());
}

#[tokio::test]
async fn a_detached_process_can_lead_a_session() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| File::create(dir.path().join(name)).unwrap();
    let answer = dir.path().join("answer");
    let spec = CommandSpec::new(host::env::current_exe().unwrap())
        .args(["--exact", "process_end::as_a_child_it_leads_a_session"])
        .env(CHILD, &answer);
    let child = spawn_detached(&spec, file("in"), file("err")).unwrap();
    while child.is_alive().unwrap() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(fs::read_to_string(answer).unwrap(), child.pid.to_string());
}

/// In a container the session that started us often lives outside our pid namespace, where its id reads as 0.
#[tokio::test]
async fn a_session_outside_the_pid_namespace_can_be_left() {
    let dir = tempfile::tempdir().unwrap();
    let answer = dir.path().join("answer");
    let spec = CommandSpec::new("/usr/bin/unshare")
        .args(["--map-root-user", "--pid", "--fork"])
        .arg(host::env::current_exe().unwrap())
        .args(["--exact", "process_end::as_a_child_it_leads_a_session"])
        .env(CHILD, &answer);
    let output = run(&spec, &limits(Some(LIMIT)), &Cancel::new()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(fs::read_to_string(answer).ok().as_deref(), Some("1"), "{said}");
}

/// Does its part only when one of the tests above starts it.
#[test]
fn as_a_child_it_leads_a_session() {
    let Some(answer) = host::env::var_os(CHILD) else { return };
    host::process::become_session_leader().unwrap();
    host::process::become_session_leader().unwrap();
    let session = nix::unistd::getsid(None).unwrap();
    fs::write(answer, session.to_string()).unwrap();
}
