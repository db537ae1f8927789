//! A checkout to work on, a forge with an issue, and the verbs of whoever starts bottles.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use testkit::fake_forge::{FakeGitea, OWNER, REPO, TOKEN};
use testkit::hermetic::{Hermetic, Output};
use testkit::part::{Part, require};
use testkit::repo::Fork;

/// What a well-behaved agent does: one commit.
pub(crate) const COMMIT: &str =
    "[[step]]\nrun = \"echo work >> work.txt && git add -A && git commit -qm 'do the work'\"\n";

/// And its last word.
pub(crate) const DONE: &str = "[[step]]\nrun = [\"forge\", \"done\", \"success\", \"all done\"]\n";

/// What the scripted agent prints after its first step. The step's own words stand in the log before it is done.
pub(crate) const FIRST_STEP_DONE: &str = "\"type\":\"step-done\",\"index\":0";

/// Somebody with a checkout.
pub(crate) struct Person {
    pub(crate) hermetic: Hermetic,
    pub(crate) fork: Fork,
}

impl Person {
    /// `None` when bubblewrap is missing, which is then reported by name.
    pub(crate) fn new() -> Option<Self> {
        require(Part::Bwrap)?;
        let hermetic = Hermetic::new();
        let fork = Fork::new(&hermetic);
        let person = Self { hermetic, fork };
        person.agent("worker", "");
        Some(person)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.hermetic.home().join(".bot-bottle")
    }

    /// Writes a manifest.
    pub(crate) fn manifest(&self, shelf: &str, name: &str, text: &str) {
        let folder = self.home().join(shelf);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(format!("{name}.toml")), text).expect("written");
    }

    /// A scripted agent, with more lines for its manifest.
    pub(crate) fn agent(&self, name: &str, more: &str) {
        let text = format!("provider = \"scripted\"\nscript = \"{name}-script.txt\"\n{more}");
        self.manifest("agents", name, &text);
    }

    /// What the scripted agent `worker` plays next.
    pub(crate) fn script(&self, script: &str) {
        std::fs::write(self.home().join("agents/worker-script.txt"), script).expect("written");
    }

    /// Any command line, in the checkout.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.hermetic.command(env!("CARGO_BIN_EXE_bot-bottle"));
        command.current_dir(self.fork.checkout.dir()).args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.hermetic.run(&mut self.command(args))
    }

    /// A plain headless start of the scripted agent.
    pub(crate) fn start(&self, script: &str, more: &[&str]) -> Output {
        self.script(script);
        let args = ["start", "worker", "--headless", "--prompt", "Do it.", "--backend", "bwrap"];
        self.run(&[&args, more].concat())
    }

    pub(crate) fn resume(&self, slug: &str, script: &str) -> Output {
        self.script(script);
        self.run(&["resume", slug, "--headless", "--prompt", "Go on."])
    }

    /// The document of a command that prints one.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        serde_json::from_str(&output.stdout).expect("a document")
    }

    pub(crate) fn provenance(&self, name: &str) -> Value {
        self.json(&["provenance", "show", name])
    }

    /// The folder of a bottle.
    pub(crate) fn bottle(&self, slug: &str) -> PathBuf {
        self.home().join("cellar").join(slug)
    }

    /// The directory of the newest run, once there is one.
    pub(crate) fn newest_run(&self, slug: &str) -> Option<PathBuf> {
        let runs = std::fs::read_dir(self.bottle(slug).join("runs")).ok()?;
        let created = |path: &PathBuf| std::fs::metadata(path).and_then(|it| it.created()).ok();
        runs.flatten().map(|entry| entry.path()).max_by_key(created)
    }

    /// The directory of the newest run, which must exist.
    pub(crate) fn last_run(&self, slug: &str) -> PathBuf {
        self.newest_run(slug).expect("a run")
    }

    /// The agent's log of the newest run; empty before the first run begins.
    pub(crate) fn log(&self, slug: &str) -> String {
        let Some(run) = self.newest_run(slug) else { return String::new() };
        let place = run.join("boxes/agent");
        let read = |name: &str| std::fs::read_to_string(place.join(name)).unwrap_or_default();
        read("stdout.log") + &read("stderr.log")
    }
}

/// A person whose repository has a forge, with one issue for `worker`.
pub(crate) struct Scene {
    pub(crate) person: Person,
    pub(crate) forge: FakeGitea,
    pub(crate) issue: u64,
}

/// The bottle of the scene's issue.
pub(crate) const SLUG: &str = "worker-issue-1";

impl Scene {
    pub(crate) fn new() -> Option<Self> {
        let person = Person::new()?;
        let forge = FakeGitea::start();
        forge.add_member("bot-bottle", "bot1");
        forge.add_member("bot-bottle", "alice");
        let issue = forge.add_issue("Do it", "What is wanted.", &["bot-bottle:worker"], &["bot1"]);
        Some(Self { person, forge, issue })
    }

    /// An orchestrator's command line.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.person.command(args);
        command
            .env("FORGE_GITEA_API", format!("{}/api/v1", self.forge.url()))
            .env("FORGE_OWNER", OWNER)
            .env("FORGE_REPO", REPO)
            .env("FORGE_ISSUE_NUMBER", self.issue.to_string())
            .env("FORGE_TOKEN", TOKEN);
        command
    }

    pub(crate) fn start_command(&self, script: &str) -> Command {
        self.person.script(script);
        self.command(&[
            "orchestrate",
            "start",
            "--agent",
            "worker",
            "--prompt",
            "Do it.",
            "--backend",
            "bwrap",
        ])
    }

    pub(crate) fn start(&self, script: &str) -> Output {
        self.person.hermetic.run(&mut self.start_command(script))
    }

    /// The same for a script that has to end well.
    pub(crate) fn start_ok(&self, script: &str) -> Output {
        let output = self.start(script);
        assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), self.log());
        output
    }

    pub(crate) fn resume(&self, script: &str) -> Output {
        self.person.script(script);
        let args = ["orchestrate", "resume", "--slug", SLUG, "--prompt", "Go on."];
        self.person.hermetic.run(&mut self.command(&args))
    }

    /// Starts and does not wait.
    pub(crate) fn spawn(&self, script: &str) -> Child {
        let mut command = self.start_command(script);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("bot-bottle starts")
    }

    pub(crate) fn log(&self) -> String {
        if self.person.bottle(SLUG).join("runs").exists() {
            self.person.log(SLUG)
        } else {
            String::new()
        }
    }

    pub(crate) fn provenance(&self) -> Value {
        self.person.provenance(SLUG)
    }

    /// The sentences of the semantic operation log.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let document = self.provenance();
        let lines = document["operations"].as_array().expect("a list");
        let sentence = |line: &Value| line.pointer("/detail/sentence")?.as_str().map(str::to_owned);
        lines.iter().filter_map(sentence).collect()
    }

    /// Where the bottle's branch is at origin.
    pub(crate) fn published(&self) -> Option<String> {
        let name = format!("refs/heads/bot-bottle/{SLUG}");
        self.person.fork.origin.try_git(&["rev-parse", "--verify", "--quiet", &name]).ok()
    }
}
