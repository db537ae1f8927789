//! A fork to run in, and the verbs of a person who runs forklift.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use testkit::hermetic::{Hermetic, Output};
use testkit::part::{Part, require};
use testkit::repo::Fork;

/// What a well-behaved agent does on a fork that merges cleanly.
pub(crate) const MERGE: &str = "[[step]]\nrun = \"git merge --no-edit upstream/main\"\n";

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

    /// The only run.
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
}
