//! What a person waits for with 1,000 workstreams of 200 touched files each, beside what git itself takes.

#![expect(clippy::disallowed_methods, reason = "a yardstick is run as a person would run it")]

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::hermetic::Hermetic;
use testkit::measure::{compare, median, row, time};
use testkit::repo::Repo;

const WORKSTREAMS: usize = 1000;
const FILES: usize = 200;
const ROUNDS: usize = 10;

fn main() {
    let world = World::new();
    for (name, args, promised) in [
        ("wf --help", &["--help"][..], 10),
        ("wf list", &["list"], 50),
        ("wf status", &["status", "ws500"], 50),
        ("wf conflicts", &["conflicts", "ws500"], 50),
        ("wf refresh, nothing changed", &["refresh"], 300),
    ] {
        let times = (0..ROUNDS).map(|_| time(|| world.wf(args))).collect();
        tell(name, median(times), Duration::from_millis(promised));
    }
    let refresh = || {
        world.forget();
        time(|| world.wf(&["refresh"]))
    };
    let comparison = compare(3, refresh, || time(|| world.diffs()));
    let ratio = comparison.ours.as_secs_f64() / comparison.yardstick.as_secs_f64();
    let word = if ratio <= 1.2 { "ok" } else { "OVER" };
    row(&format!(
        "wf refresh, all changed: {ratio:.2} times the diffs two at a time   promised 1.2: {word}"
    ));
    let plan: String = (0..1000).fold(String::new(), |mut text, n| {
        write!(text, "### COMMIT-X{n}-001: Step\n\nWords about it.\n\nDone: [ ]\n\n")
            .expect("a string");
        text
    });
    let times =
        (0..ROUNDS).map(|_| time(|| assert_eq!(wf::fuzz_api::parse(&plan), 1000))).collect();
    tell("a plan of 1,000 micro-commits", median(times), Duration::from_millis(5));
}

fn tell(name: &str, took: Duration, promised: Duration) {
    let word = if took < promised { "ok" } else { "OVER" };
    let (took, promised) = (took.as_secs_f64() * 1000.0, promised.as_millis());
    row(&format!("{name} {took:.2} ms   promised under {promised} ms: {word}"));
}

struct World {
    hermetic: Hermetic,
    repo: Repo,
}

impl World {
    fn new() -> Self {
        let hermetic = Hermetic::new();
        let repo = Repo::init(hermetic.work().join("app"));
        repo.write("README.md", "app\n").commit("start");
        let world = Self { hermetic, repo };
        let path = world.repo.dir().to_str().expect("UTF-8").to_owned();
        world.wf(&["project", "add", "app", "--repo-path", &path]);
        world.import();
        for n in 0..WORKSTREAMS {
            world.workstream(n);
        }
        world.wf(&["refresh"]);
        world
    }

    /// A branch per workstream, with one commit of all its files.
    fn import(&self) {
        let mut stream = String::new();
        for n in 0..WORKSTREAMS {
            write!(stream, "commit refs/heads/feat/ws{n}\ncommitter T <t@example.com> {n} +0000\ndata 1\nx\nfrom refs/heads/main^0\n").expect("a string");
            for file in 0..FILES {
                write!(stream, "M 644 inline src/ws{n}/f{file}\ndata 1\nx\n").expect("a string");
            }
        }
        let mut command = self.hermetic.command("git");
        command.current_dir(self.repo.dir()).args(["fast-import", "--quiet"]).stdin(Stdio::piped());
        let mut child = command.spawn().expect("git");
        child.stdin.take().expect("a pipe").write_all(stream.as_bytes()).expect("written");
        assert!(child.wait().expect("ended").success());
    }

    fn workstream(&self, n: usize) {
        let worktree = self.hermetic.work().join(format!("app.ops/worktrees/ws{n}"));
        let (id, path) = (format!("ws{n}"), worktree.to_str().expect("UTF-8"));
        self.repo.git(&["worktree", "add", "-q", "--no-checkout", path, &format!("feat/{id}")]);
        let dir = self.dir(n);
        fs::create_dir_all(&dir).expect("made");
        let base = self.repo.sha("main");
        let meta = format!(
            "ID={id}\nTITLE=Bench\nBRANCH=feat/{id}\nWORKTREE={path}\nBASE_BRANCH=main\nBASE_SHA={base}\nSTATUS=implement\nEXPECTED_PATHS=src/{id}/\nCREATED_AT=2025-01-15T10:00:00Z\nLAST_REFRESHED=2025-01-15T10:00:00Z\n"
        );
        fs::write(dir.join("meta.env"), meta).expect("written");
        fs::write(dir.join("plan.md"), "### COMMIT-X-001: x\nDone: [ ]\n").expect("written");
    }

    fn dir(&self, n: usize) -> PathBuf {
        self.hermetic.work().join(format!("app.ops/workflow/projects/app/workstreams/ws{n}"))
    }

    /// Makes every list of touched files old.
    fn forget(&self) {
        for n in 0..WORKSTREAMS {
            fs::remove_file(self.dir(n).join("touched_files.txt")).expect("it was there");
        }
    }

    fn wf(&self, args: &[&str]) {
        run(self
            .hermetic
            .command(env!("CARGO_BIN_EXE_wf"))
            .current_dir(self.repo.dir())
            .args(args));
    }

    /// The same diffs, two at a time.
    fn diffs(&self) {
        let mut command = Command::new("xargs");
        command.args([
            "-P2",
            "-I{}",
            "git",
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-renames",
            "main",
            "{}",
            "--",
        ]);
        command.current_dir(self.repo.dir()).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().expect("xargs");
        let names: String =
            (0..WORKSTREAMS).fold(String::new(), |names, n| names + &format!("feat/ws{n}\n"));
        child.stdin.take().expect("a pipe").write_all(names.as_bytes()).expect("written");
        assert!(child.wait().expect("ended").success());
    }
}

fn run(command: &mut Command) {
    let output = command.stdout(Stdio::null()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?} in {:?}: {said}",
        command.get_current_dir().map(Path::display)
    );
}
