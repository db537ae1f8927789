//! The train: a gap to upstream as a list of steps, each a clean batch or a single commit that needs a decision.
//!
//! - `window`: search for the longest clean batch
//! - `bisect`: search for the first commit with which the check fails
//! - `brief`: text about a commit for the agent
//! - `seed`: files that a break is seeded into
//! - `table`, `page`: a plan for people
//! - `pull`: text of a train's pull request

pub(crate) mod bisect;
pub(crate) mod brief;
pub(crate) mod page;
pub(crate) mod pull;
pub(crate) mod seed;
pub(crate) mod table;
pub(crate) mod window;

use std::path::PathBuf;

use model::id::{BranchName, Sha};
use serde::{Deserialize, Serialize};

/// Prefix of the branches of trains.
pub(crate) const TRAIN_BRANCHES: &str = "forklift/train-";

/// Most commits of a clean batch: what can still be reviewed, and bisected with few checks.
pub(crate) const BATCH: usize = 150;

/// Kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StepKind {
    /// Commits that git merges without a conflict.
    Batch,
    /// One commit that conflicts with the fork.
    Conflict,
    /// One commit that merges without a conflict and with which the check fails.
    Break,
}

impl StepKind {
    /// Returns whether an agent may be started for the step.
    pub(crate) fn may_ask(self) -> bool {
        match self {
            Self::Batch => false,
            Self::Conflict | Self::Break => true,
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Batch => "clean",
            Self::Conflict => "conflict",
            Self::Break => "breaks the check",
        }
    }
}

/// A commit of upstream, to show it to people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommitLabel {
    pub(crate) sha: Sha,
    pub(crate) subject: String,
}

impl CommitLabel {
    pub(crate) fn words(&self) -> String {
        format!("{} {}", self.sha.short(), self.subject)
    }
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedStep {
    pub(crate) kind: StepKind,
    /// Number of commits of upstream's main line that it merges.
    pub(crate) commits: usize,
    /// Position of the last one, from 1, among all commits of the plan.
    pub(crate) position: usize,
    pub(crate) first: CommitLabel,
    pub(crate) last: CommitLabel,
    /// Paths in conflict, with the kind of conflict.
    pub(crate) conflicts: Vec<String>,
    /// Commits that conflict alone and do not at the end of the batch, because upstream undid the conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) passes: Vec<CommitLabel>,
    /// True after a step with a conflict, whose resolution is not known yet.
    pub(crate) is_estimate: bool,
}

/// The first commit of upstream that conflicts with the fork, by itself or as a part of what comes before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FirstConflict {
    #[serde(flatten)]
    pub(crate) commit: CommitLabel,
    pub(crate) position: usize,
}

/// Steps from the fork to the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrainPlan {
    /// Commits of upstream's main line that the fork lacks.
    pub(crate) commits: usize,
    /// Most commits of a batch.
    pub(crate) batch: usize,
    pub(crate) first_conflict: Option<FirstConflict>,
    pub(crate) steps: Vec<PlannedStep>,
    /// Merges in memory that it took.
    pub(crate) merges: usize,
}

impl TrainPlan {
    /// Number of steps that need a decision.
    pub(crate) fn asking(&self) -> usize {
        self.steps.iter().filter(|step| step.kind.may_ask()).count()
    }
}

/// Number of pull requests of a train.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PullLayout {
    /// One, which grows with every step.
    #[default]
    Single,
    /// One for each step, each with the steps before it.
    Stack,
}

/// The step of a train that a run makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrainStep {
    /// Name of the train.
    pub(crate) train: String,
    /// Branch of the train in its repository.
    pub(crate) branch: BranchName,
    /// The host's repository with that branch.
    pub(crate) repo: PathBuf,
    pub(crate) layout: PullLayout,
    /// From 1.
    pub(crate) number: usize,
    pub(crate) step: PlannedStep,
    /// Steps that are planned after this one.
    pub(crate) rest: Vec<PlannedStep>,
    /// Display name of the train's target.
    pub(crate) target: String,
}

impl TrainStep {
    /// Number of steps, as far as is planned.
    pub(crate) fn count(&self) -> usize {
        self.number + self.rest.len()
    }

    /// Branch on origin that the step is published to.
    pub(crate) fn published_branch(&self) -> String {
        published_branch(&self.branch, self.layout, self.number)
    }
}

/// Branch on origin of a step with this number.
pub(crate) fn published_branch(branch: &BranchName, layout: PullLayout, number: usize) -> String {
    match layout {
        PullLayout::Single => branch.to_string(),
        PullLayout::Stack => format!("{branch}-step-{number}"),
    }
}

/// Name of a train: by the commits that it leads from and to, and by a number where that is taken.
pub(crate) fn train_name(base: &Sha, target: &Sha, attempt: usize) -> String {
    let name = format!("{}-{}", base.short(), target.short());
    if attempt > 1 { format!("{name}-{attempt}") } else { name }
}

/// The beginning of the id of the commit that a train of this name starts from.
pub(crate) fn base_of_name(name: &str) -> &str {
    name.split('-').next().unwrap_or(name)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sha(number: usize) -> Sha {
        Sha::parse(&format!("{number:040x}")).expect("legal")
    }

    pub(crate) fn label(number: usize) -> CommitLabel {
        CommitLabel { sha: sha(number), subject: format!("commit {number}") }
    }

    /// A step up to the commit at `position`.
    pub(crate) fn step(kind: StepKind, commits: usize, position: usize) -> PlannedStep {
        PlannedStep {
            kind,
            commits,
            position,
            first: label(position + 1 - commits),
            last: label(position),
            conflicts: match kind {
                StepKind::Conflict => vec!["src/a.rs (content)".to_owned()],
                StepKind::Batch | StepKind::Break => Vec::new(),
            },
            passes: Vec::new(),
            is_estimate: false,
        }
    }

    #[test]
    fn a_second_train_between_the_same_commits_has_another_name() {
        let (base, target) = (sha(1), sha(2));
        let first = train_name(&base, &target, 1);
        assert_eq!(train_name(&base, &target, 2), format!("{first}-2"));
        assert_eq!(base_of_name(&first), base.short());
        let branch = BranchName::parse(&format!("{TRAIN_BRANCHES}{first}")).expect("legal");
        assert_eq!(published_branch(&branch, PullLayout::Single, 3), branch.as_str());
        assert_eq!(published_branch(&branch, PullLayout::Stack, 3), format!("{branch}-step-3"));
    }

    #[test]
    fn only_single_commits_start_an_agent() {
        assert!(!StepKind::Batch.may_ask());
        assert!(StepKind::Conflict.may_ask() && StepKind::Break.may_ask());
    }
}
