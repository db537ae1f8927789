//! An attempt that cannot succeed anywhere proves nothing. Here attempts are seen to succeed where nothing stops
//! them, as far as that is harmless, and to fail in a plain bubblewrap box, as far as that stops them.

mod scene;

use std::fs;
use std::thread;
use std::time::Duration;

use scene::Scene;
use testkit::abuse::{ATTEMPTS, Attempt, Expect, Outcome, SECRET_MARK, variable};
use testkit::part::{Part, require};

/// Attempts that succeed for every user without a box, and do no harm.
const SUCCEED_OUTSIDE: [&str; 14] = [
    "host-files",
    "host-processes",
    "host-kill",
    "init-environ",
    "secrets-in-sight",
    "init-files",
    "stop-init",
    "kill-init",
    "engine-sockets",
    "host-loopback",
    "abstract-socket",
    "hostname",
    "privileges",
    "guest-folder",
];

/// Attempts that a box without a system call filter and our init does not stop, at least on some kernels; and the
/// limits, which have a test of their own.
const NEED_MORE_THAN_A_PLAIN_BOX: [&str; 23] = [
    "init-environ",
    "ptrace-init",
    "read-init-memory",
    "init-files",
    "vsock",
    "odd-families",
    "fork-bomb",
    "fill-tmp",
    "fill-shm",
    "large-file",
    "setns",
    "bpf",
    "perf-event-open",
    "keyctl",
    "add-key",
    "request-key",
    "userfaultfd",
    "io-uring-setup",
    "open-by-handle",
    "pidfd-getfd",
    "kcmp",
    "wider-affinity",
    "privileges",
];

#[test]
fn attempts_succeed_where_nothing_stops_them() {
    let Some(_) = require(Part::Perl) else { return };
    for name in SUCCEED_OUTSIDE {
        let scene = Scene::new();
        let mut target = scene.hermetic.command("sleep").arg("60").spawn().unwrap();
        let outcome = scene.outside(
            &Attempt::named(name),
            &[
                (variable::TARGET_PID, target.id().to_string()),
                (variable::GUEST_FOLDER, scene.guest.display().to_string()),
                ("TOKEN", format!("{SECRET_MARK}in-the-environment")),
                ("SSH_AUTH_SOCK", "/nonexistent".to_owned()),
            ],
        );
        target.kill().unwrap();
        target.wait().unwrap();
        assert!(matches!(outcome, Some(Outcome::Reached(_))), "{name}: {outcome:?}");
    }
}

#[test]
fn a_plain_box_stops_what_it_can() {
    let Some(_) = require(Part::Perl) else { return };
    let Some(bwrap) = require(Part::Bwrap) else { return };
    let mut scene = Scene::new();
    let mut complaints = Vec::new();
    for attempt in ATTEMPTS.iter().filter(|attempt| attempt.expect == Expect::Blocked) {
        if !NEED_MORE_THAN_A_PLAIN_BOX.contains(&attempt.name) {
            let printed = scene.boxed(&bwrap, attempt, "", &[]);
            complaints.extend(attempt.judge(&printed).err());
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
    assert!(scene.canaries.process_lives());
}

/// One box, two promises: what the box allows is too much for the smaller one and just right for the larger one.
#[test]
fn greed_is_measured_against_the_promised_limit() {
    let Some(_) = require(Part::Perl) else { return };
    let Some(bwrap) = require(Part::Bwrap) else { return };
    let kib = |count: u64| (count << 10).to_string();
    for (name, limit, smaller, larger, before) in [
        (
            "fork-bomb",
            variable::PIDS_LIMIT,
            "5".to_owned(),
            "20".to_owned(),
            "ulimit -p 20 2>/dev/null || ulimit -u 20",
        ),
        ("memory-hog", variable::MEMORY_LIMIT, kib(4 << 10), kib(128 << 10), "ulimit -v 131072"),
        ("fill-tmp", variable::TMP_LIMIT, kib(1 << 10), kib(scene::TMP_KIB), ""),
        ("fill-shm", variable::TMP_LIMIT, kib(1 << 10), kib(scene::TMP_KIB), ""),
        ("large-file", variable::FILE_LIMIT, kib(512), kib(1 << 10), "ulimit -f 2048"),
    ] {
        let scene = Scene::new();
        let attempt = Attempt::named(name);
        let printed = scene.boxed(&bwrap, &attempt, before, &[(limit, smaller)]);
        assert!(matches!(Outcome::parse(&printed), Some(Outcome::Reached(_))), "{name}: {printed}");
        let printed = scene.boxed(&bwrap, &attempt, before, &[(limit, larger)]);
        assert!(matches!(Outcome::parse(&printed), Some(Outcome::Blocked(_))), "{name}: {printed}");
    }
}

#[test]
fn what_is_planted_is_really_there() {
    let Some(bwrap) = require(Part::Bwrap) else { return };
    for attempt in ATTEMPTS.iter().filter(|attempt| attempt.expect == Expect::HostSide) {
        let scene = Scene::new();
        let printed = scene.boxed(&bwrap, attempt, "", &[]);
        let outcome = Outcome::parse(&printed);
        assert!(matches!(outcome, Some(Outcome::Planted(_))), "{}: {outcome:?}", attempt.name);
    }
}

/// Git of the host, run in what the box left, executes the agent's code: the danger is real.
#[test]
fn a_repository_from_the_box_executes_code_on_the_host() {
    let Some(bwrap) = require(Part::Bwrap) else { return };
    let scene = Scene::new();
    scene.boxed(&bwrap, &Attempt::named("hostile-git"), "", &[]);
    drop(testkit::Repo::open(&scene.workspace).try_git(&["status"]));
    assert!(testkit::repo::markers(&scene.markers()).contains(&"fsmonitor".to_owned()));
}

#[test]
fn daemons_beat_until_their_box_ends() {
    let Some(_) = require(Part::Perl) else { return };
    let Some(bwrap) = require(Part::Bwrap) else { return };
    let scene = Scene::new();
    let daemons = Attempt::named("daemons");
    // The box goes on until each has beaten more than once.
    let wait = "trap 'for n in 1 2 3 4 5; do until [ \"$(wc -l </workspace/heartbeat-$n)\" -gt 2 ]; do sleep 0.05; done; done' EXIT";
    let printed = scene.boxed(&bwrap, &daemons, wait, &[]);
    assert_eq!(daemons.judge(&printed), Ok(()));
    let beats = || -> Vec<usize> {
        let files = (1..=5).map(|number| scene.workspace.join(format!("heartbeat-{number}")));
        files.map(|file| fs::read_to_string(file).unwrap().lines().count()).collect()
    };
    let before = beats();
    assert!(before.iter().all(|beat| *beat > 2), "{before:?}");
    thread::sleep(Duration::from_millis(500));
    assert_eq!(before, beats(), "they beat on after the box");
}
