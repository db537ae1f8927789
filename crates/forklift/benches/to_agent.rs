//! From the command line to the agent's first breath, beside the git commands that nobody can do without: fetching both
//! remotes with nothing new in them, and a copy of the fork (init, fetch, checkout). The box's own start is allowed on
//! top.

#![expect(clippy::disallowed_methods, reason = "a yardstick is run as a person would run it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use testkit::measure::{Comparison, in_turns, median, time};
use testkit::repo::{Size, make_big};

const SMALL: Size = Size { files: 50, commits: 100 };
const LARGE: Size = Size { files: 50_000, commits: 20_000 };

/// The agent writes down when it began and fails, so that nothing follows. It stays a moment, so that the box is seen ready.
const SCRIPT: &str = "[[step]]\nrun = \"date +%s%N > /harness-state/begun; sleep 0.1; exit 1\"\n";

fn main() {
    for (name, size, rounds) in [("small fork", SMALL, 15), ("50,000 files", LARGE, 3)] {
        let scene = Scene::new(size);
        let mut boxes = Vec::new();
        let mut ours = || {
            let (took, start) = scene.to_agent();
            boxes.push(start);
            took
        };
        let mut yardstick = || scene.bare_git();
        let [ours, git] = in_turns(rounds, [&mut ours, &mut yardstick]).map(median);
        let comparison = Comparison { ours, yardstick: git };
        comparison.print(
            &format!("invocation to agent start, {name}"),
            "fetch x2, init, fetch, checkout",
            1.2,
            median(boxes),
        );
    }
}

/// A fork with its two remotes, all on this disk.
struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    fn new(size: Size) -> Self {
        let scene = Self { dir: tempfile::tempdir().expect("a folder") };
        make_big(&scene.path("origin.git"), size);
        git(&scene.path("."), &["clone", "-q", "--bare", "origin.git", "upstream.git"]);
        let upstream = scene.path("upstream.git");
        let tree = said(&upstream, &["rev-parse", "main^{tree}"]);
        let who = ["-c", "user.name=A", "-c", "user.email=a@example.invalid"];
        let commit = ["commit-tree", "-p", "main", "-m", "one more", &tree];
        let tip = said(&upstream, &[&who[..], &commit[..]].concat());
        git(&upstream, &["update-ref", "refs/heads/main", &tip]);
        git(&scene.path("."), &["clone", "-q", "origin.git", "fork"]);
        git(&scene.path("fork"), &["remote", "add", "upstream", "../upstream.git"]);
        git(&scene.path("fork"), &["fetch", "-q", "upstream"]);
        std::fs::write(scene.path("agent.toml"), SCRIPT).expect("a script");
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// How long it took until the agent was there, and how much of that was the box's own start.
    fn to_agent(&self) -> (Duration, Duration) {
        let state = self.path("state");
        let begun = now();
        let status = Command::new(env!("CARGO_BIN_EXE_forklift"))
            .current_dir(self.path("fork"))
            .args([
                "--provider",
                "scripted",
                "--backend",
                "bwrap",
                "--agent-when",
                "always",
                "--script",
            ])
            .arg(self.path("agent.toml"))
            .env("XDG_STATE_HOME", &state)
            .env("XDG_CACHE_HOME", self.path("cache"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("forklift starts");
        assert_eq!(status.code(), Some(6), "the agent was to fail");
        let runs = std::fs::read_dir(state.join("forklift/runs")).expect("runs");
        let run = runs.flatten().next().expect("a run").path();
        let text = std::fs::read_to_string(run.join("harness-state/begun")).expect("its mark");
        let there = Duration::from_nanos(text.trim().parse().expect("a number"));
        let meta = std::fs::read(run.join("metadata.json")).expect("metadata");
        let meta: serde_json::Value = serde_json::from_slice(&meta).expect("JSON");
        let ready = meta["box"]["ready_ms"].as_u64().expect("a number");
        std::fs::remove_dir_all(&state).expect("removed");
        quiet();
        (there.saturating_sub(begun), Duration::from_millis(ready))
    }

    fn bare_git(&self) -> Duration {
        let (fork, out) = (self.path("fork"), self.path("out"));
        let took = time(|| {
            git(&fork, &["fetch", "-q", "origin"]);
            git(&fork, &["fetch", "-q", "upstream"]);
            git(&self.path("."), &["init", "-q", "out"]);
            let refs = ["refs/remotes/origin/main", "refs/remotes/upstream/main"];
            git(&out, &[&["fetch", "-q", "../fork"], &refs[..]].concat());
            git(&out, &["checkout", "-q", "FETCH_HEAD"]);
        });
        std::fs::remove_dir_all(&out).expect("removed");
        quiet();
        took
    }
}

/// Writing the rest to disk belongs to nobody's time; the next round starts with a quiet disk.
fn quiet() {
    Command::new("sync").status().expect("sync");
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970")
}

fn git(dir: &Path, args: &[&str]) {
    let status = Command::new("git").current_dir(dir).args(args).status().expect("git starts");
    assert!(status.success(), "git {args:?}: {status}");
}

fn said(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git").current_dir(dir).args(args).output().expect("git starts");
    assert!(output.status.success(), "git {args:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
