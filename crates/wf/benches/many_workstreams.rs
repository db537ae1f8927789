//! What a person waits for with 1,000 workstreams of 200 touched files each, and with 10,000 of 3, beside what git itself
//! takes.

#![expect(clippy::disallowed_methods, reason = "a yardstick is run as a person would run it")]

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::hermetic::Hermetic;
use testkit::measure::{compare, cost, median, row, time};
use testkit::repo::Repo;

/// Workstreams that touch files of the one that is looked at: half of them merge cleanly with it.
const MEETING: usize = 20;
const ROUNDS: usize = 10;
/// Address space of each process of a refresh.
const MAPPED_MAX_KIB: u64 = 1 << 20;

fn main() {
    let world = World::new(1000, 200);
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
    let forecasts = world.hermetic.work().join("app.ops/state/app.forecasts.json");
    let conflicts = || {
        fs::remove_file(&forecasts).ok();
        time(|| world.wf(&["conflicts", "ws500"]))
    };
    let known = cpu_of(|| world.wf(&["conflicts", "ws500"]));
    tell("wf conflicts, time of processors", known, Duration::from_millis(50));
    let merges = compare(3, conflicts, || time(|| world.merges()));
    let ratio = merges.ours.as_secs_f64() / merges.yardstick.as_secs_f64();
    row(&format!(
        "wf conflicts, {MEETING} that meet, none foretold before: {:.0} ms, {ratio:.2} times the {MEETING} merges by git",
        merges.ours.as_secs_f64() * 1000.0
    ));
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
    large();
    let plan: String = (0..1000).fold(String::new(), |mut text, n| {
        write!(text, "### COMMIT-X{n}-001: Step\n\nWords about it.\n\nDone: [ ]\n\n")
            .expect("a string");
        text
    });
    let times =
        (0..ROUNDS).map(|_| time(|| assert_eq!(wf::fuzz_api::parse(&plan), 1000))).collect();
    tell("a plan of 1,000 micro-commits", median(times), Duration::from_millis(5));
}

/// Ten thousand workstreams in which nothing has changed, beside git's own list of their worktrees.
fn large() {
    let world = World::new(10_000, 3);
    let refresh = || time(|| world.wf(&["refresh"]));
    let list = || {
        time(|| {
            let mut git = world.hermetic.command("git");
            run(git.current_dir(world.repo.dir()).args(["worktree", "list", "--porcelain"]));
        })
    };
    let comparison = compare(3, refresh, list);
    tell("wf refresh, 10,000 unchanged", comparison.ours, Duration::from_secs(1));
    let ratio = comparison.ours.as_secs_f64() / comparison.yardstick.as_secs_f64();
    row(&format!("wf refresh, 10,000 unchanged: {ratio:.2} times git worktree list"));
    let mut limited = world.hermetic.command("sh");
    limited.current_dir(world.repo.dir());
    limited.args(["-c", &format!("ulimit -v {MAPPED_MAX_KIB}; exec \"$@\""), "sh"]);
    let output = limited.args([env!("CARGO_BIN_EXE_wf"), "refresh"]).output().expect("sh starts");
    let word = if output.status.success() { "ok" } else { "OVER" };
    row(&format!(
        "wf refresh, 10,000 unchanged, with its gits   promised to map less than {} MiB each: {word}",
        MAPPED_MAX_KIB / 1024
    ));
}

/// Time of processors for one call, gits included, as the mean of many: the kernel counts hundredths of a second.
fn cpu_of(act: impl Fn()) -> Duration {
    cost(|| (0..ROUNDS).for_each(|_| act())).cpu / ROUNDS as u32
}

fn tell(name: &str, took: Duration, promised: Duration) {
    let word = if took < promised { "ok" } else { "OVER" };
    let (took, promised) = (took.as_secs_f64() * 1000.0, promised.as_millis());
    row(&format!("{name} {took:.2} ms   promised under {promised} ms: {word}"));
}

struct World {
    hermetic: Hermetic,
    repo: Repo,
    workstreams: usize,
    files: usize,
}

impl World {
    fn new(workstreams: usize, files: usize) -> Self {
        let hermetic = Hermetic::new();
        let repo = Repo::init(hermetic.work().join("app"));
        repo.write("README.md", "app\n").commit("start");
        let world = Self { hermetic, repo, workstreams, files };
        let path = world.repo.dir().to_str().expect("UTF-8").to_owned();
        world.wf(&["project", "add", "app", "--repo-path", &path]);
        world.import();
        world.repo.git(&["pack-refs", "--all"]);
        for n in 0..workstreams {
            world.workstream(n);
        }
        world.wf(&["refresh"]);
        world
    }

    /// A branch per workstream, with one commit of all its files.
    fn import(&self) {
        let mut stream = String::new();
        for n in 0..self.workstreams {
            write!(stream, "commit refs/heads/feat/ws{n}\ncommitter T <t@example.com> {n} +0000\ndata 1\nx\nfrom refs/heads/main^0\n").expect("a string");
            for file in 0..self.files {
                write!(stream, "M 644 inline src/ws{n}/f{file}\ndata 1\nx\n").expect("a string");
            }
            if n < MEETING {
                let text = if n % 2 == 0 { "x" } else { "y" };
                write!(stream, "M 644 inline src/ws500/f{n}\ndata 1\n{text}\n").expect("a string");
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
        self.record(&worktree, &id);
        let dir = self.dir(n);
        fs::create_dir_all(&dir).expect("made");
        let base = self.repo.sha("main");
        let meta = format!(
            "ID={id}\nTITLE=Bench\nBRANCH=feat/{id}\nWORKTREE={path}\nBASE_BRANCH=main\nBASE_SHA={base}\nSTATUS=implement\nEXPECTED_PATHS=src/{id}/\nCREATED_AT=2025-01-15T10:00:00Z\nLAST_REFRESHED=2025-01-15T10:00:00Z\n"
        );
        fs::write(dir.join("meta.env"), meta).expect("written");
        fs::write(dir.join("plan.md"), "### COMMIT-X-001: x\nDone: [ ]\n").expect("written");
    }

    /// The files that `git worktree add --no-checkout` makes.
    fn record(&self, worktree: &Path, id: &str) {
        let record = self.repo.git_dir().join("worktrees").join(id);
        fs::create_dir_all(&record).expect("made");
        fs::create_dir_all(worktree).expect("made");
        for (path, text) in [
            (worktree.join(".git"), format!("gitdir: {}\n", record.display())),
            (record.join("gitdir"), format!("{}\n", worktree.join(".git").display())),
            (record.join("HEAD"), format!("ref: refs/heads/feat/{id}\n")),
            (record.join("commondir"), "../..\n".to_owned()),
        ] {
            fs::write(path, text).expect("written");
        }
    }

    /// The merges that `wf conflicts ws500` tries.
    fn merges(&self) {
        for n in 0..MEETING {
            let mut git = self.hermetic.command("git");
            git.current_dir(self.repo.dir()).args(["merge-tree", "--write-tree", "feat/ws500"]);
            // A conflict is status 1.
            git.arg(format!("feat/ws{n}")).stdout(Stdio::null()).status().expect("git");
        }
    }

    fn dir(&self, n: usize) -> PathBuf {
        self.hermetic.work().join(format!("app.ops/workflow/projects/app/workstreams/ws{n}"))
    }

    /// Makes every list of touched files old.
    fn forget(&self) {
        for n in 0..self.workstreams {
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
            (0..self.workstreams).fold(String::new(), |names, n| names + &format!("feat/ws{n}\n"));
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
