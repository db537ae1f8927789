//! Acceptance tests by a person: made from the plan, passed or failed, superseded by a new one after fixes.

use jiff::Timestamp;
use model::id::{Sha, UatId, WorkstreamId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::meta::stamp;
use super::plan::MicroCommit;

/// An acceptance test as stored. Unknown fields are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Uat {
    pub(crate) version: u32,
    pub(crate) id: UatId,
    pub(crate) status: UatStatus,
    pub(crate) created: String,
    #[serde(default)]
    pub(crate) completed: Option<String>,
    pub(crate) workstream: String,
    /// The commit that is to be accepted; a failed test is superseded once HEAD has left it.
    #[serde(default)]
    pub(crate) commit: Option<String>,
    #[serde(default)]
    pub(crate) requirements: Vec<String>,
    pub(crate) scenarios: Vec<Scenario>,
    #[serde(default)]
    pub(crate) result: Option<String>,
    #[serde(default)]
    pub(crate) validated_by: Option<String>,
    #[serde(default)]
    pub(crate) issues: Vec<String>,
    #[serde(flatten)]
    pub(crate) others: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UatStatus {
    Pending,
    Passed,
    Failed,
    Superseded,
}

impl UatStatus {
    pub(crate) const ALL: [Self; 4] = [Self::Pending, Self::Passed, Self::Failed, Self::Superseded];

    /// The folder under `uat/`.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Superseded => "superseded",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) steps: Vec<String>,
    pub(crate) expected: String,
    #[serde(default)]
    pub(crate) result: Option<String>,
}

/// Generates the acceptance test of a finished plan: a scenario per micro-commit and per acceptance criterion.
pub(crate) fn new_uat(
    id: UatId,
    workstream: &WorkstreamId,
    commits: &[MicroCommit],
    head: Option<&Sha>,
    now: Timestamp,
) -> Uat {
    Uat {
        version: 1,
        id,
        status: UatStatus::Pending,
        created: stamp(now),
        completed: None,
        workstream: workstream.to_string(),
        commit: head.map(Sha::to_string),
        requirements: commits.iter().map(|commit| commit.id.to_string()).collect(),
        scenarios: commits.iter().flat_map(scenarios_of).collect(),
        result: None,
        validated_by: None,
        issues: Vec::new(),
        others: Map::new(),
    }
}

fn scenarios_of(commit: &MicroCommit) -> Vec<Scenario> {
    let scenario = |name: String, expected: String| Scenario {
        name,
        steps: vec![format!("Try what {} brought: {}", commit.id, commit.title)],
        expected,
        result: None,
    };
    if commit.acceptance.is_empty() {
        let expected = "It works as the plan says".to_owned();
        return vec![scenario(format!("{}: {}", commit.id, commit.title), expected)];
    }
    let bullets = commit.acceptance.iter();
    bullets.map(|bullet| scenario(format!("{}: {bullet}", commit.id), bullet.clone())).collect()
}

impl Uat {
    pub(crate) fn passed(mut self, by: String, now: Timestamp) -> Self {
        for scenario in &mut self.scenarios {
            scenario.result.get_or_insert_with(|| "passed".to_owned());
        }
        self.issues.clear();
        self.close(UatStatus::Passed, by, now)
    }

    pub(crate) fn failed(mut self, issues: Vec<String>, by: String, now: Timestamp) -> Self {
        self.issues = issues;
        self.close(UatStatus::Failed, by, now)
    }

    pub(crate) fn superseded(mut self) -> Self {
        self.status = UatStatus::Superseded;
        self
    }

    fn close(mut self, status: UatStatus, by: String, now: Timestamp) -> Self {
        self.status = status;
        self.result = Some(status.folder().to_owned());
        self.completed = Some(stamp(now));
        self.validated_by = Some(by);
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Everything was accepted.
    Open,
    /// These tests wait for a person.
    Pending(Vec<UatId>),
    /// These tests failed, and nothing was fixed since.
    Failed(Vec<UatId>),
    /// A new test is needed; these are replaced by it.
    Generate { supersede: Vec<UatId> },
}

/// Judges the gate from the tests that are not superseded.
pub(crate) fn judge_gate(tests: &[Uat], head: Option<&Sha>) -> Gate {
    let ids = |wanted: UatStatus| -> Vec<UatId> {
        tests.iter().filter(|uat| uat.status == wanted).map(|uat| uat.id.clone()).collect()
    };
    let failed = ids(UatStatus::Failed);
    let is_fixed = |uat: &Uat| uat.commit.as_deref() != head.map(Sha::as_str);
    let all_fixed = tests.iter().filter(|uat| uat.status == UatStatus::Failed).all(is_fixed);
    let pending = ids(UatStatus::Pending);
    match () {
        () if !failed.is_empty() && all_fixed => Gate::Generate { supersede: failed },
        () if !failed.is_empty() => Gate::Failed(failed),
        () if !pending.is_empty() => Gate::Pending(pending),
        () if ids(UatStatus::Passed).is_empty() => Gate::Generate { supersede: Vec::new() },
        () => Gate::Open,
    }
}

pub(crate) fn render_uat(uat: &Uat) -> String {
    let mut page = format!(
        "# {}: acceptance of {}\n\n- Status: {}\n- Created: {}\n",
        uat.id,
        uat.workstream,
        uat.status.folder(),
        uat.created
    );
    if let Some(commit) = &uat.commit {
        page.push_str(&format!("- Commit: {commit}\n"));
    }
    if let (Some(by), Some(at)) = (&uat.validated_by, &uat.completed) {
        page.push_str(&format!("- Validated by {by} at {at}\n"));
    }
    page.push_str("\n## Scenarios\n");
    for (at, scenario) in uat.scenarios.iter().enumerate() {
        page.push_str(&format!("\n### {}. {}\n\n", at + 1, scenario.name));
        for step in &scenario.steps {
            page.push_str(&format!("- {step}\n"));
        }
        page.push_str(&format!("\nExpected: {}\n", scenario.expected));
        if let Some(result) = &scenario.result {
            page.push_str(&format!("\nResult: {result}\n"));
        }
    }
    if !uat.issues.is_empty() {
        page.push_str("\n## Issues\n\n");
        for issue in &uat.issues {
            page.push_str(&format!("- {issue}\n"));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::plan::parse_plan;
    use crate::rules::schema::Schema;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn sample(number: u32, head: &str) -> Uat {
        let text = "### COMMIT-A-001: a\nDone: [x]\n### COMMIT-A-002: b\nAcceptance:\n- one\n- two\n\nDone: [x]\n";
        let plan = parse_plan(text).unwrap();
        let workstream = WorkstreamId::parse("tf").unwrap();
        new_uat(
            UatId::numbered(number),
            &workstream,
            &plan.commits,
            Some(&Sha::parse(head).unwrap()),
            Timestamp::UNIX_EPOCH,
        )
    }

    #[test]
    fn there_is_a_scenario_per_commit_and_bullet() {
        let names: Vec<String> = sample(1, A).scenarios.into_iter().map(|s| s.name).collect();
        assert_eq!(names, ["COMMIT-A-001: a", "COMMIT-A-002: one", "COMMIT-A-002: two"]);
    }

    #[test]
    fn what_is_written_keeps_the_schema() {
        let now = Timestamp::UNIX_EPOCH;
        for uat in [
            sample(1, A),
            sample(1, A).passed("ada".to_owned(), now),
            sample(1, A).failed(vec!["no".to_owned()], "ada".to_owned(), now),
            sample(1, A).superseded(),
        ] {
            let value = serde_json::to_value(&uat).unwrap();
            assert_eq!(Schema::Uat.check(&value), Ok(()));
            assert!(render_uat(&uat).contains("COMMIT-A-002: two"));
        }
    }

    #[test]
    fn the_gate_opens_only_when_everything_was_accepted() {
        let now = Timestamp::UNIX_EPOCH;
        let (here, there) = (Sha::parse(A).unwrap(), Sha::parse(&A.replace('a', "b")).unwrap());
        let passed = sample(1, A).passed("ada".to_owned(), now);
        let failed = sample(2, A).failed(vec!["no".to_owned()], "ada".to_owned(), now);
        let id = |number| vec![UatId::numbered(number)];
        assert_eq!(judge_gate(&[], Some(&here)), Gate::Generate { supersede: Vec::new() });
        assert_eq!(judge_gate(std::slice::from_ref(&passed), Some(&here)), Gate::Open);
        assert_eq!(judge_gate(&[passed.clone(), sample(3, A)], Some(&here)), Gate::Pending(id(3)));
        assert_eq!(judge_gate(&[passed.clone(), failed.clone()], Some(&here)), Gate::Failed(id(2)));
        assert_eq!(
            judge_gate(&[passed, failed], Some(&there)),
            Gate::Generate { supersede: id(2) }
        );
    }
}
