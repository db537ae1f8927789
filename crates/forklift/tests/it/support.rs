//! A fork to run in, and the verbs of a person who runs forklift.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use testkit::hermetic::{Hermetic, Output};
use testkit::part::{Part, require};
use testkit::repo::{Fork, Repo};
use testkit::wait::wait_until;

/// What a well-behaved agent does on a fork that merges cleanly.
pub(crate) const MERGE: &str = "[[step]]\nrun = \"git merge --no-edit upstream/main\"\n";

/// A step at which an agent waits until [`Person::open_gate`].
pub(crate) const GATE: &str =
    "[[step]]\nrun = \"until [ -e /harness-state/go ]; do sleep 0.05; done\"\n";

/// A person at their fork.
pub(crate) struct Person {
    pub(crate) hermetic: Hermetic,
    pub(crate) fork: Fork,
}

impl Person {
    /// Sets up a fork as `make` says; `None` when bubblewrap is missing, which is then reported by name.
    pub(crate) fn with(make: impl FnOnce(&Hermetic) -> Fork) -> Option<Self> {
        require(Part::Bwrap)?;
        let hermetic = Hermetic::new();
        let fork = make(&hermetic);
        Some(Self { hermetic, fork })
    }

    /// A fork whose upstream has one new commit that merges cleanly.
    pub(crate) fn new() -> Option<Self> {
        Self::with(|hermetic| Fork::new(hermetic).clean_merge())
    }

    /// Any forklift command line, in the fork.
    pub(crate) fn forklift(&self, args: &[&str]) -> Command {
        let mut command = self.hermetic.command(env!("CARGO_BIN_EXE_forklift"));
        command.current_dir(self.fork.checkout.dir()).args(args);
        command
    }

    /// The command line of a scripted run in the fork.
    pub(crate) fn command(&self, script: &str, flags: &[&str]) -> Command {
        self.command_on(&["--backend", "bwrap"], script, flags)
    }

    /// The same with another box.
    pub(crate) fn command_on(&self, backend: &[&str], script: &str, flags: &[&str]) -> Command {
        let path = self.hermetic.root().join("agent.toml");
        std::fs::write(&path, script).expect("the script");
        let mut command = self.forklift(&["--provider", "scripted"]);
        command.args(backend);
        // These tests are about agents, also where git could do without one.
        command.args(["--agent-when", "always"]);
        command.arg("--script").arg(path).args(flags);
        command
    }

    /// A run that needs no agent: one that is started all the same fails it.
    pub(crate) fn alone(&self, flags: &[&str]) -> Command {
        let path = self.hermetic.root().join("never.toml");
        std::fs::write(&path, "[[step]]\nexit = 9\n").expect("the script");
        let mut command = self.forklift(&["--provider", "scripted", "--backend", "bwrap"]);
        command.arg("--script").arg(path).args(flags);
        command
    }

    /// Runs forklift with a scripted agent.
    pub(crate) fn run(&self, script: &str, flags: &[&str]) -> Output {
        self.hermetic.run(&mut self.command(script, flags))
    }

    /// Starts a run and does not wait for it.
    pub(crate) fn start(&self, script: &str, flags: &[&str]) -> Child {
        let mut command = self.command(script, flags);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("forklift starts")
    }

    /// The run directories, oldest first.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let mut command = self.forklift(&["runs", "--json"]);
        let listed = self.hermetic.run(&mut command).stdout;
        let rows: Vec<serde_json::Value> = serde_json::from_str(&listed).expect("a list");
        let path = |row: &serde_json::Value| PathBuf::from(row["path"].as_str().expect("a path"));
        rows.iter().rev().map(path).collect()
    }

    pub(crate) fn only_run(&self) -> PathBuf {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0].clone()
    }

    /// A field of the only run's metadata.
    pub(crate) fn metadata(&self, pointer: &str) -> serde_json::Value {
        let text = std::fs::read(self.only_run().join("metadata.json")).expect("metadata");
        let value: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        value.pointer(pointer).cloned().unwrap_or(serde_json::Value::Null)
    }

    /// The branches that forklift published to origin.
    pub(crate) fn published(&self) -> Vec<String> {
        let args = ["for-each-ref", "--format=%(refname)", "refs/heads/forklift"];
        self.fork.origin.git(&args).lines().map(str::to_owned).collect()
    }

    /// Waits until the box of the only run has begun, while `child` is at work on it.
    pub(crate) fn wait_for_box(&self, child: &mut Child) {
        wait_until("the box", || {
            assert!(child.try_wait().expect("it can be asked").is_none(), "it ended too early");
            self.runs().first().is_some_and(|run| run.join("boxes/agent/shim.json").exists())
        });
    }

    /// Lets an agent go on that waits at its [`GATE`].
    pub(crate) fn open_gate(&self, run: &Path) {
        wait_until("the box", || run.join("boxes/agent/shim.json").exists());
        std::fs::write(run.join("harness-state/go"), "").expect("the gate");
    }

    /// Makes origin refuse every branch, as a server with protected branches does.
    pub(crate) fn reject_pushes(&self) {
        self.origin_hook("pre-receive", "echo protected >&2\nexit 1\n");
    }

    /// Gives origin a hook of this name.
    pub(crate) fn origin_hook(&self, name: &str, script: &str) {
        write_hook(&self.fork.origin, name, script);
    }

    pub(crate) fn accept_pushes(&self) {
        let hook = self.fork.origin.git_dir().join("hooks/pre-receive");
        std::fs::remove_file(hook).expect("removed");
    }

    /// A command about a run.
    pub(crate) fn about(&self, run: &Path, words: &[&str]) -> Output {
        let [first, rest @ ..] = words else { panic!("no command") };
        let name = name_of(run);
        let args = [&[*first, name.as_str()], rest].concat();
        self.hermetic.run(&mut self.forklift(&args))
    }
}

/// Gives a repository a hook and returns its path.
pub(crate) fn write_hook(repo: &Repo, name: &str, script: &str) -> PathBuf {
    let hook = repo.git_dir().join("hooks").join(name);
    std::fs::create_dir_all(hook.parent().expect("a parent")).expect("made");
    std::fs::write(&hook, format!("#!/bin/sh\n{script}")).expect("written");
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).expect("set");
    hook
}

pub(crate) fn name_of(run: &Path) -> String {
    run.file_name().expect("a name").to_string_lossy().into_owned()
}

/// A field of a run's metadata.
pub(crate) fn field_of(run: &Path, pointer: &str) -> serde_json::Value {
    let text = std::fs::read(run.join("metadata.json")).expect("metadata");
    let value: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    value.pointer(pointer).cloned().unwrap_or(serde_json::Value::Null)
}

/// Runs the default agent with an env file of this text, which only its owner can read.
pub(crate) fn with_env_file(person: &Person, text: &str, flags: &[&str]) -> Output {
    let path = person.hermetic.root().join("my opencode.env");
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("set");
    let mut command = person.forklift(flags);
    person.hermetic.run(command.env("FORKLIFT_OPENCODE_ENV", path))
}

/// A rule that resolves one of [`two_conflicts`].
pub(crate) const THEIRS: &str = "---\nresolve:\n  - {path: ruled.txt, take: theirs}\n---\n";

/// Two files in conflict, and rules of the fork's about them.
pub(crate) fn two_conflicts(rules: &str) -> Option<Person> {
    Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.upstream_commit("ruled.txt", "one\ntwo\nthree\n", "a file to rule about");
        fork.checkout.git(&["fetch", "-q", "upstream"]);
        fork.checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
        fork.checkout.write("ruled.txt", "one\nours\nthree\n").write("FORK.md", rules);
        fork.fork_commit("the fork's way");
        fork.upstream_commit("ruled.txt", "one\ntheirs\nthree\n", "upstream's way");
        fork.conflicting_merge()
    })
}

/// Runs forklift with a scripted agent, which is started only for a conflict.
pub(crate) fn run_if_needed(person: &Person, script: &str, flags: &[&str]) -> Output {
    let path = person.hermetic.root().join("agent.toml");
    std::fs::write(&path, script).expect("the script");
    let mut command = person.forklift(&["--provider", "scripted", "--backend", "bwrap"]);
    person.hermetic.run(command.arg("--script").arg(path).args(flags))
}
