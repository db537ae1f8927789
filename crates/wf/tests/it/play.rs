//! Scripted agents in real boxes: what they play, and the person who sends them.

use std::path::PathBuf;

use testkit::hermetic::Output;
use testkit::part::{Part, require};

use crate::support::{ONE, Person, write};

/// Agents by script, boxes by bubblewrap.
pub(crate) const PROFILE: &str = "MERGE_MODE=local\nBOX_BACKEND=bwrap\nAGENT_IMPLEMENT=scripted\nAGENT_IMPLEMENT_SCRIPT=implement.toml\nAGENT_REVIEW=scripted\nAGENT_REVIEW_SCRIPT=review.toml\n";

/// A makefile whose unit tests leave what the test contract asks for, and whose end-to-end tests leave a picture.
pub(crate) const MAKEFILE: &str = "test-unit:\n\t@test ! -e broken\n\t@mkdir -p test-results/app/unit\n\t@echo '{\"passed\": 1, \"failed\": 0, \"skipped\": 0, \"total\": 1}' > test-results/app/unit/summary.json\n\t@echo '<testsuite><testcase name=\"a\"/></testsuite>' > test-results/app/unit/junit.xml\n\t@echo tested\n";

/// An agent that adds a harness, commits it as asked and says so.
pub(crate) const GOOD: &str = r#"
[[step]]
run = "mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'"
[[step]]
print = '''{"status": "success", "notes": "done"}
'''
"#;

/// A reviewer that is content.
pub(crate) const APPROVE: &str = r#"
[[step]]
print = '''{"version": 1, "decision": "approve", "blockers": []}
'''
"#;

/// A reviewer that is not.
pub(crate) const REJECT: &str = r#"
[[step]]
print = '''{"version": 1, "decision": "request_changes", "blockers": [{"file": "mk/test.mk", "line": 1, "issue": "no target", "severity": "major", "fix_hint": "add one"}]}
'''
"#;

/// A plan with one micro-commit, for [`OBEDIENT`].
pub(crate) const PLAN: &str =
    "# Plan\n\n### COMMIT-TF-001: Add one\n\nAcceptance:\n- it is there\n\nDone: [ ]\n";

/// An agent that does the micro-commit that its instructions name.
pub(crate) const OBEDIENT: &str = r#"
[[step]]
run = '''
id=$(grep -o 'COMMIT-TF-00[0-9]' /harness-state/run/harness/instructions.txt | head -n 1)
mkdir -p mk && echo "$id" >> mk/test.mk
'''
[[step]]
print = '''{"status": "success"}
'''
"#;

/// A person with a workstream `tf` of this plan and scripted agents; none where there is no bubblewrap.
pub(crate) fn person(plan: &str) -> Option<Person> {
    require(Part::Bwrap)?;
    let person = Person::unregistered();
    person.repo.write("Makefile", MAKEFILE);
    person.repo.commit("tests");
    let repo = person.repo.dir().to_str().expect("UTF-8").to_owned();
    person.ok(&["project", "add", "app", "--repo-path", &repo]);
    person.profile(PROFILE);
    person.ok(&["new", "tf", "Test framework", "mk/ tests/"]);
    person.plan("tf", plan);
    person.cast(GOOD, APPROVE);
    Some(person)
}

/// The same with one micro-commit.
pub(crate) fn person_with_one() -> Option<Person> {
    person(ONE)
}

impl Person {
    /// What the agents will play.
    pub(crate) fn cast(&self, implement: &str, review: &str) {
        write(&self.project_dir().join("implement.toml"), implement);
        write(&self.project_dir().join("review.toml"), review);
    }

    /// Runs once and expects this status.
    #[track_caller]
    pub(crate) fn run_once(&self, status: i32) -> Output {
        let output = self.wf(&["run", "tf", "--once"]);
        assert_eq!(output.status, Some(status), "{}", output.snapshot());
        output
    }

    /// The youngest run. Names do not tell: two runs of one second differ in what they are about.
    pub(crate) fn last_run(&self) -> PathBuf {
        let born =
            |run: &PathBuf| run.metadata().and_then(|facts| facts.created()).expect("a date");
        self.runs().into_iter().max_by_key(born).expect("a run")
    }

    /// Subjects of the branch, newest first.
    pub(crate) fn subjects(&self) -> Vec<String> {
        let text = self.worktree("tf").git(&["log", "--format=%s"]);
        text.lines().map(str::to_owned).collect()
    }
}
