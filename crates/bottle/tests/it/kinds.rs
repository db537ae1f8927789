//! `bot-bottle serve` beside a fake forge of each kind, which is looked at by sweeps.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use serde_json::Value;
use testkit::fake_forge::{FakeForge, Flavour, OWNER, REPO, TOKEN};
use testkit::wait::wait_for;

use crate::support::{Person, SLUG};

/// A person with a forge of one kind, and an orchestrator.
pub(crate) struct KindServing<F: Flavour> {
    pub(crate) person: Person,
    pub(crate) forge: FakeForge<F>,
    pub(crate) issue: u64,
    kind: &'static str,
    child: Option<Child>,
}

impl<F: Flavour> KindServing<F> {
    /// A forge with one issue for `worker`, and nothing that serves it yet.
    pub(crate) fn new(kind: &'static str, labels: &[&str]) -> Option<Self> {
        let person = Person::new()?;
        let forge = FakeForge::<F>::start();
        forge.serve_git(person.fork.origin.dir());
        forge.add_member("bot-bottle", "bot1");
        forge.add_member("bot-bottle", "alice");
        let issue = forge.add_issue("Do it", "What is wanted.", labels, &["bot1"]);
        Some(Self { person, forge, issue, kind, child: None })
    }

    /// Serves it, with more lines in the configuration.
    pub(crate) fn serve(&mut self, more: &str) {
        let home = self.person.home();
        let token = home.join("forge-token");
        std::fs::write(&token, TOKEN).expect("written");
        std::fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("private");
        let text = format!(
            "listen = \"127.0.0.1:0\"\nbackend = \"bwrap\"\nretention_days = 0\ndrain_secs = 1\nsweep_secs = 1\n{more}\n\
             [[forge]]\nkind = \"{}\"\nurl = \"{}\"\ntoken_file = {token:?}\nrepos = [\"{OWNER}/{REPO}\"]\n",
            self.kind,
            self.forge.url(),
        );
        std::fs::write(home.join("serve.toml"), text).expect("written");
        self.launch(&[]);
    }

    fn launch(&mut self, env: &[(&str, &str)]) {
        let config = self.person.home().join("serve.toml");
        let log = self.person.hermetic.work().join("serve.log");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
        let mut command =
            self.person.command(&["serve", "--json", "--config", config.to_str().expect("a path")]);
        command.envs(env.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let listening = lines.by_ref().map_while(Result::ok).any(|line| {
            let event: Value = serde_json::from_str(&line).unwrap_or_default();
            event["event"] == "listening"
        });
        assert!(listening, "{}", self.log());
        // What it prints later goes on being read, so that it never waits for a reader.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        self.child = Some(child);
    }

    /// Kills it and starts it again.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.launch(&[]);
    }

    /// Kills it and starts it again, to die at this moment.
    pub(crate) fn restart_to_die_at(&mut self, moment: &str) {
        self.kill();
        self.launch(&[("BOTTLEWORKS_FAILPOINT", moment)]);
    }

    pub(crate) fn wait_for_death(&mut self) {
        let mut child = self.child.take().expect("it runs");
        wait_for("its death", || child.try_wait().expect("a status"));
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().expect("ended");
        }
    }

    pub(crate) fn log(&self) -> String {
        let log = self.person.hermetic.work().join("serve.log");
        std::fs::read_to_string(log).unwrap_or_default()
    }

    /// State and reason of the work on the issue.
    pub(crate) fn work(&self) -> Option<(String, String)> {
        let path = self.person.home().join("bot-bottle.db");
        let database = rusqlite::Connection::open(path).ok()?;
        let sql = "SELECT state, reason FROM work WHERE issue_number = ?1";
        database.query_row(sql, [self.issue], |row| Ok((row.get(0)?, row.get(1)?))).ok()
    }

    /// Waits for a state, and returns its reason.
    #[track_caller]
    pub(crate) fn wait(&self, state: &str) -> String {
        wait_for(state, || self.work().filter(|(now, _)| now == state).map(|(_, why)| why))
    }

    /// Waits until the bottle has had this many runs and is in this state.
    #[track_caller]
    pub(crate) fn wait_runs(&self, count: usize, state: &str) -> String {
        wait_for(&format!("{count} runs and {state}"), || {
            let work = self.work().filter(|(now, _)| now == state)?;
            (self.runs() >= count).then_some(work.1)
        })
    }

    pub(crate) fn runs(&self) -> usize {
        let runs = std::fs::read_dir(self.person.bottle(SLUG).join("runs"));
        runs.map_or(0, |entries| entries.flatten().count())
    }

    /// Prompt of the newest run.
    pub(crate) fn last_prompt(&self) -> String {
        let run = self.person.last_run(SLUG);
        let plan = std::fs::read_to_string(run.join("plan.json")).unwrap_or_default();
        plan.replace("\\n", "\n")
    }

    pub(crate) fn branch(&self) -> String {
        format!("bot-bottle/{SLUG}")
    }

    /// Where the bottle's branch is at origin; the forge is told.
    pub(crate) fn publish_head(&self) -> String {
        let name = format!("refs/heads/{}", self.branch());
        let tip = self.person.fork.origin.git(&["rev-parse", &name]).trim().to_owned();
        self.forge.set_branch(&self.branch(), &tip);
        tip
    }

    /// Number of requests whose path contains these words.
    pub(crate) fn requests(&self, words: &str) -> usize {
        self.forge.requests().iter().filter(|request| request.path.contains(words)).count()
    }
}

impl<F: Flavour> Drop for KindServing<F> {
    fn drop(&mut self) {
        self.kill();
    }
}
