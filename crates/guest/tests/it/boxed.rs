//! The init in a real box, made with bubblewrap as the host makes it, but without a system call filter.
//!
//! Where bubblewrap is missing the promises are reported as not tried; `REQUIRE_BWRAP=1` makes that a failure.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use guest::config::{GuestConfig, GuestReport, PreflightCheck, Relay};
use tempfile::TempDir;
use testkit::part::{Part, require};
use testkit::wait::wait_until;

/// Any user but root; only used when the tests run as root, which may not make boxes.
const UID: &str = "1000";

/// A grace that no test waits for: what depends on it in vain hangs, and is ended by the test runner.
const LONG_MS: u64 = 3_600_000;

#[test]
fn a_sealed_box_is_ready_and_says_what_it_found() {
    let Some(mut bottle) = Bottle::start("true", |config| {
        config.probe_addresses = vec!["10.0.0.1:80".parse().unwrap()];
        config.limits.nproc = Some(64);
        config.limits.cpu_secs = Some(20);
    }) else {
        return;
    };
    assert!(bottle.report.ready, "{:?}", bottle.report);
    assert_eq!(bottle.report.limits.nproc, Some(64));
    assert_eq!(bottle.report.limits.cpu_secs, Some(20));
    let blocked = |name| {
        bottle.report.preflight.iter().filter(|item| item.name == name).all(|item| item.blocked)
    };
    for name in PreflightCheck::ALL {
        assert!(waivable().contains(&name) || blocked(name), "{name:?}: {:?}", bottle.report);
    }
    assert_eq!(bottle.finish().0, Some(0));
}

#[test]
fn a_leak_keeps_the_command_from_starting() {
    let Some(mut bottle) =
        Bottle::start("echo started", |config| config.demand = PreflightCheck::ALL.to_vec())
    else {
        return;
    };
    assert!(!bottle.report.ready);
    assert!(bottle.report.reasons()[0].starts_with("unfiltered-syscalls"), "{:?}", bottle.report);
    assert_eq!(bottle.finish(), (Some(guest::EXIT_GUEST_FAILED), String::new()));
}

#[test]
fn statuses_pass_through() {
    for (line, status) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -40 $$", 168)]
    {
        let Some(mut bottle) = Bottle::start(line, |_| {}) else { return };
        assert_eq!(bottle.finish().0, Some(status), "{line}");
    }
}

#[test]
fn a_command_that_is_not_there_is_127() {
    let Some(mut bottle) =
        Bottle::start("", |config| config.argv = vec!["no-such-program".to_owned()])
    else {
        return;
    };
    assert!(bottle.report.ready);
    assert_eq!(bottle.finish().0, Some(127));
}

#[test]
fn the_command_gets_its_environment_its_folder_and_nothing_else() {
    let line = "env | sort; pwd; ls /proc/self/fd | wc -l; readlink /proc/self/fd/0; ulimit -c; ulimit -t; \
        grep SigBlk /proc/self/status; cat /proc/1/environ | wc -c";
    let Some(mut bottle) = Bottle::start(line, |config| config.limits.cpu_secs = Some(20)) else {
        return;
    };
    let (status, printed) = bottle.finish();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(status, Some(0));
    // The fourth descriptor is the listing itself. The last number is what can be read of the init's environment.
    assert_eq!(
        lines,
        [
            "GREETING=hello",
            "PATH=/usr/bin:/bin",
            "PWD=/workspace",
            "/workspace",
            "4",
            "/dev/null",
            "0",
            "20",
            "SigBlk:\t0000000000000000",
            "0"
        ]
    );
}

#[test]
fn leftovers_do_not_outlive_the_command() {
    let daemons = "for i in 1 2 3 4 5; do \
        (setsid sh -c 'trap \"\" TERM HUP; while :; do date +%s%N >/workspace/beat$0; sleep 0.02; done' $i &) ; \
        done; until [ -s beat1 -a -s beat2 -a -s beat3 -a -s beat4 -a -s beat5 ]; do sleep 0.02; done; exit 4";
    let Some(mut bottle) = Bottle::start(daemons, |config| config.grace_ms = LONG_MS) else {
        return;
    };
    assert_eq!(bottle.finish().0, Some(4));
    bottle.assert_quiet(5);
}

#[test]
fn a_polite_request_ends_the_whole_tree() {
    // With so long a grace, only those who listen end in time.
    let Some(mut bottle) =
        Bottle::start("sleep 900 & sleep 900", |config| config.grace_ms = LONG_MS)
    else {
        return;
    };
    bottle.terminate_init();
    assert_eq!(bottle.finish().0, Some(guest::EXIT_STOPPED));
}

#[test]
fn those_who_do_not_listen_are_gone_after_the_grace() {
    let line = "trap '' TERM; while :; do date +%s%N >/workspace/beat1; sleep 0.02; done";
    let Some(mut bottle) = Bottle::start(line, |config| config.grace_ms = 300) else { return };
    wait_until("the first beat", || bottle.dir.path().join("workspace/beat1").exists());
    let start = Instant::now();
    bottle.terminate_init();
    assert_eq!(bottle.finish().0, Some(guest::EXIT_STOPPED));
    assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
    bottle.assert_quiet(1);
}

#[test]
fn a_box_that_nobody_ends_ends_itself() {
    let Some(mut bottle) = Bottle::start("sleep 900", |config| config.backstop_secs = 1) else {
        return;
    };
    assert_eq!(bottle.finish().0, Some(guest::EXIT_BACKSTOP));
}

#[test]
fn orphans_are_reaped_while_the_command_runs() {
    let line = "for i in $(seq 20); do (true &) ; done; \
        while grep -l 'State:.Z' /proc/[0-9]*/status >/dev/null 2>&1; do sleep 0.02; done; echo none";
    let Some(mut bottle) = Bottle::start(line, |_| {}) else { return };
    assert_eq!(bottle.finish(), (Some(0), "none\n".to_owned()));
}

#[test]
fn the_relay_reaches_the_host() {
    let Some(mut bottle) = Bottle::start(
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; echo ping >&3; cat <&3'",
        |config| {
            let relay = Relay {
                listen: "127.0.0.1:3128".parse().unwrap(),
                socket: Path::new(guest::BOX_DIR).join("egress.sock"),
            };
            config.relays.push(relay);
        },
    ) else {
        return;
    };
    let (mut stream, _) = bottle.host.accept().unwrap();
    let mut asked = String::new();
    BufReader::new(&stream).read_line(&mut asked).unwrap();
    stream.write_all(format!("you said {asked}").as_bytes()).unwrap();
    drop(stream);
    assert_eq!(bottle.finish(), (Some(0), "you said ping\n".to_owned()));
}

/// Checks that a box without a system call filter cannot pass.
fn waivable() -> [PreflightCheck; 2] {
    [PreflightCheck::UnfilteredSyscalls, PreflightCheck::Vsock]
}

struct Bottle {
    dir: TempDir,
    host: UnixListener,
    child: Child,
    stdout: BufReader<ChildStdout>,
    report: GuestReport,
}

impl Bottle {
    /// Starts a box that runs a shell line, and reads its report. None where there is no bubblewrap.
    fn start(line: &str, change: impl FnOnce(&mut GuestConfig)) -> Option<Self> {
        let bwrap = require(Part::Bwrap)?;
        let dir = tempfile::tempdir().unwrap();
        let host = lay_out(dir.path(), line, change);
        let mut child = argv_box(&bwrap, dir.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("SECRET", "of the launcher")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let report = GuestReport::parse_line(&line).unwrap();
        Some(Self { dir, host, child, stdout, report })
    }

    fn finish(&mut self) -> (Option<i32>, String) {
        let mut printed = String::new();
        self.stdout.read_to_string(&mut printed).unwrap();
        (self.child.wait().unwrap().code(), printed)
    }

    /// The host's view of pid 1: the only child of bubblewrap.
    fn terminate_init(&self) {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = fs::read_to_string(children).unwrap();
        let init = children.split_whitespace().next().unwrap();
        assert!(Command::new("kill").args(["-TERM", init]).status().unwrap().success());
    }

    /// The daemons beat, and have stopped.
    fn assert_quiet(&self, count: usize) {
        let beats = || -> Vec<String> {
            let names = (1..=count).map(|n| self.dir.path().join(format!("workspace/beat{n}")));
            names.map(|path| fs::read_to_string(path).unwrap()).collect()
        };
        let before = beats();
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(before, beats());
    }
}

fn lay_out(dir: &Path, line: &str, change: impl FnOnce(&mut GuestConfig)) -> UnixListener {
    let run = dir.join("run");
    let workspace = dir.join("workspace");
    fs::create_dir(&run).unwrap();
    fs::create_dir(&workspace).unwrap();
    for open in [dir, &workspace] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o777)).unwrap();
    }
    fs::copy(env!("CARGO_BIN_EXE_bottle-guest"), run.join(guest::BINARY_FILE)).unwrap();
    let argv = ["sh", "-c", line].map(str::to_owned).to_vec();
    let mut config = GuestConfig::new(argv, guest::WORKSPACE, 900);
    config.env.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    config.env.insert("GREETING".to_owned(), "hello".to_owned());
    config.demand.retain(|check| !waivable().contains(check));
    change(&mut config);
    fs::write(run.join(guest::CONFIG_FILE), serde_json::to_string(&config).unwrap()).unwrap();
    let host = UnixListener::bind(run.join("egress.sock")).unwrap();
    fs::set_permissions(run.join("egress.sock"), fs::Permissions::from_mode(0o777)).unwrap();
    host
}

fn argv_box(bwrap: &Path, dir: &Path) -> Command {
    let mut command = if is_root() {
        let mut setpriv = Command::new("/usr/bin/setpriv");
        setpriv.args(["--reuid", UID, "--regid", UID, "--clear-groups"]).arg(bwrap);
        setpriv
    } else {
        Command::new(bwrap)
    };
    let seal = "--unshare-all --unshare-user --disable-userns --die-with-parent --new-session --as-pid-1 \
        --cap-drop ALL --hostname bottle --uid 1000 --gid 1000 --ro-bind /usr /usr --symlink usr/bin /bin \
        --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp";
    command.args(seal.split_whitespace());
    command.arg("--bind").arg(dir.join("workspace")).arg(guest::WORKSPACE);
    command.arg("--ro-bind").arg(dir.join("run")).arg(guest::BOX_DIR);
    command.arg(Path::new(guest::BOX_DIR).join(guest::BINARY_FILE)).arg("init");
    command.arg(Path::new(guest::BOX_DIR).join(guest::CONFIG_FILE));
    command
}

fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t")
}
