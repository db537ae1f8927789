//! A product, a project, and the verbs of a person who runs wf.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use testkit::hermetic::{Hermetic, Output};
use testkit::repo::Repo;

/// A plan with one micro-commit that waits.
pub(crate) const ONE: &str =
    "# Plan\n\n### COMMIT-TF-001: Add test harness\n\nAcceptance:\n- it runs\n\nDone: [ ]\n";
/// The same plan, done.
pub(crate) const ONE_DONE: &str =
    "# Plan\n\n### COMMIT-TF-001: Add test harness\n\nAcceptance:\n- it runs\n\nDone: [x]\n";

/// A person with a product and a registered project.
pub(crate) struct Person {
    pub(crate) hermetic: Hermetic,
    pub(crate) repo: Repo,
}

impl Person {
    /// A product with a Makefile, registered as `app` with tests on the host.
    pub(crate) fn new() -> Self {
        let person = Self::unregistered();
        let repo = person.repo.dir().to_str().expect("UTF-8").to_owned();
        person.ok(&["project", "add", "app", "--repo-path", &repo]);
        person.profile("TEST_IN=host\nMERGE_MODE=local\n");
        person
    }

    /// A product that wf knows nothing of.
    pub(crate) fn unregistered() -> Self {
        let hermetic = Hermetic::new();
        let repo = Repo::init(hermetic.work().join("app"));
        repo.write("Makefile", "test-unit:\n\t@echo tested\n").write("README.md", "app\n");
        repo.commit("start");
        Self { hermetic, repo }
    }

    /// The same with a workstream `tf` that has this plan.
    pub(crate) fn with_plan(plan: &str) -> Self {
        let person = Self::new();
        person.ok(&["new", "tf", "Test framework", "mk/ tests/"]);
        person.plan("tf", plan);
        person
    }

    /// The same with a workstream `tf` that was accepted, with one commit.
    pub(crate) fn accepted() -> Self {
        let person = Self::with_plan(ONE_DONE);
        person.worktree("tf").write("feature", "x\n").commit("COMMIT-TF-001: x");
        person.wf(&["run", "tf"]);
        person.ok(&["uat", "pass", "UAT-001"]);
        person
    }

    /// Two workstreams that expect the same paths.
    pub(crate) fn with_two() -> Self {
        let person = Self::new();
        person.ok(&["new", "one", "One", "src/"]);
        person.ok(&["new", "two", "Two", "src/api"]);
        person
    }

    /// A wf command line, in the product.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.hermetic.command(env!("CARGO_BIN_EXE_wf"));
        command.current_dir(self.repo.dir()).env("USER", "ada").args(args);
        command
    }

    pub(crate) fn wf(&self, args: &[&str]) -> Output {
        self.hermetic.run(&mut self.command(args))
    }

    /// A command that must succeed; tells what it printed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.wf(args);
        assert_eq!(output.status, Some(0), "wf {args:?}\n{}", output.snapshot());
        output.stdout
    }

    /// A command that must succeed, as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let text = self.ok(&[args, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// A command that must end with this status and say these words.
    #[track_caller]
    pub(crate) fn refused(&self, args: &[&str], status: i32, words: &[&str]) {
        let output = self.wf(args);
        assert_eq!(output.status, Some(status), "wf {args:?}\n{}", output.snapshot());
        let said = format!("{}{}", output.stdout, output.stderr);
        for word in words {
            assert!(said.contains(word), "{word:?} is not in {said}");
        }
        assert!(!said.contains("panicked"), "{said}");
    }

    pub(crate) fn ops(&self) -> PathBuf {
        self.hermetic.work().join("app.ops")
    }

    pub(crate) fn project_dir(&self) -> PathBuf {
        self.ops().join("workflow/projects/app")
    }

    pub(crate) fn workstream_dir(&self, id: &str) -> PathBuf {
        self.project_dir().join("workstreams").join(id)
    }

    pub(crate) fn worktree(&self, id: &str) -> Repo {
        Repo::open(self.ops().join("worktrees").join(id))
    }

    pub(crate) fn profile(&self, text: &str) {
        write(&self.project_dir().join("project_profile.env"), text);
    }

    pub(crate) fn plan(&self, id: &str, text: &str) {
        write(&self.workstream_dir(id).join("plan.md"), text);
    }

    /// A value of meta.env.
    pub(crate) fn meta(&self, id: &str, key: &str) -> String {
        let text = read(&self.workstream_dir(id).join("meta.env"));
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{key}=")));
        line.unwrap_or_default().trim_matches('"').to_owned()
    }

    /// Changes a value of meta.env by hand.
    pub(crate) fn set_meta(&self, id: &str, key: &str, value: &str) {
        let path = self.workstream_dir(id).join("meta.env");
        let old = self.meta(id, key);
        let text = read(&path).replace(&format!("{key}={old}"), &format!("{key}={value}"));
        assert!(text.contains(&format!("{key}={value}")), "{key} is not in {text}");
        write(&path, &text);
    }

    /// The run directories, oldest first.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.ops().join("runs")) else { return Vec::new() };
        let mut runs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        runs.sort();
        runs
    }

    /// The result of the only run.
    pub(crate) fn only_result(&self) -> Value {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        result(&runs[0])
    }

    /// Leaves a question by hand, as an agent's box would.
    pub(crate) fn question(&self, id: &str, number: &str, urgency: &str) {
        let text = format!(
            "{{\"version\":1,\"id\":\"{number}\",\"status\":\"pending\",\"created\":\"2025-01-15T10:00:00Z\",\"urgency\":\"{urgency}\",\"workstream\":\"{id}\",\"question\":\"Which?\",\"options\":[{{\"id\":\"jwt\",\"label\":\"Tokens\"}}]}}"
        );
        write(
            &self.workstream_dir(id).join(format!("clarifications/pending/{number}.json")),
            &text,
        );
    }
}

pub(crate) fn result(run: &Path) -> Value {
    serde_json::from_str(&read(&run.join("result.json"))).expect("JSON")
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
    std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// The operation log of the project: kind, target and outcome of each line.
pub(crate) fn operations(person: &Person) -> Vec<String> {
    let text = read(&person.ops().join("state/app.operations.jsonl"));
    let line = |line: &str| {
        let value: Value = serde_json::from_str(line).expect("JSON");
        let word = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", word("op"), word("target"), word("outcome"))
    };
    text.lines().map(line).collect()
}
