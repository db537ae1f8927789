//! Receipts: for everything that was settled, by what, from what, and how sure it was.

use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::decide::{Decision, Outcome};
use super::dispute::{Dispute, Version};
use super::gate::{Dropped, dropped};
use super::grade::Rung;
use super::habit::Choice;
use super::structure::Structural;
use super::weigh::{Candidate, Weighed};
use crate::clean::ConflictKind;
use crate::path::TreePath;

/// What was done about a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The path.
    pub path: TreePath,
    /// Why it was in conflict.
    pub kind: ConflictKind,
    /// What was done.
    pub deed: Deed,
    /// How sure that was; 1 where the owner ruled it.
    pub confidence: f64,
    /// What it was made from.
    pub inputs: Inputs,
    /// By what, for each hunk in order; for a whole file there is one step.
    pub steps: Vec<Step>,
    /// Lines that one side had added and that are not in the result.
    pub dropped: Dropped,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// The fork's version was kept.
    TookOurs,
    /// Upstream's version was taken.
    TookTheirs,
    /// The file is gone, as one side had it.
    Deleted,
    /// The two versions were merged.
    Merged,
    /// The program that makes the file made it anew.
    Remade,
}

impl Deed {
    /// In words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TookOurs => "kept the fork's version",
            Self::TookTheirs => "took upstream's version",
            Self::Deleted => "deleted",
            Self::Merged => "merged",
            Self::Remade => "made anew by its program",
        }
    }
}

/// The objects that something was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// The common ancestor's.
    pub base: Option<Sha>,
    /// The fork's.
    pub ours: Option<Sha>,
    /// Upstream's.
    pub theirs: Option<Sha>,
}

/// One thing that a rung did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The rung.
    pub rung: Rung,
    /// Its version.
    pub version: u32,
    /// The grade of its answer.
    pub grade: String,
    /// What answers of this grade are worth here.
    pub confidence: f64,
    /// The merge that it was learned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned_from: Option<Sha>,
    /// The program or command that gave the answer, where it was one, with its version as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

impl Receipt {
    /// The receipt for a decision.
    #[must_use]
    pub fn of(dispute: &Dispute, weighed: &Weighed, decision: &Decision) -> Self {
        let steps = match &decision.outcome {
            Outcome::Whole(_) => {
                weighed.whole.iter().map(|whole| step(&whole.grade, whole.worth)).collect()
            }
            Outcome::Text(_) => weighed
                .hunks
                .iter()
                .filter_map(|hunk| hunk.candidates.get(hunk.best?).map(step_of))
                .collect(),
        };
        Self::new(dispute, &decision.outcome, decision.confidence, steps)
    }

    /// The receipt for what the owner ruled.
    #[must_use]
    pub fn of_ruling(dispute: &Dispute, outcome: &Outcome, rung: Rung) -> Self {
        Self::new(dispute, outcome, 1.0, vec![ruled(rung)])
    }

    /// The receipt for a file that the owner's command made anew.
    #[must_use]
    pub fn of_remade(dispute: &Dispute, outcome: &Outcome, command: &str) -> Self {
        let step = Step { program: Some(command.to_owned()), ..ruled(Rung::Regenerate) };
        Self { deed: Deed::Remade, ..Self::new(dispute, outcome, 1.0, vec![step]) }
    }

    /// The receipt for what a program that knows the language made.
    #[must_use]
    pub fn of_structure(dispute: &Dispute, found: Structural, program: &str) -> (Self, Outcome) {
        let Structural { text, grade, confidence } = found;
        let step = Step { program: Some(program.to_owned()), ..step(&grade, confidence) };
        let outcome = Outcome::Text(text);
        (Self::new(dispute, &outcome, confidence, vec![step]), outcome)
    }

    fn new(dispute: &Dispute, outcome: &Outcome, confidence: f64, steps: Vec<Step>) -> Self {
        let id = |side: &Option<Version>| side.as_ref().map(|side| side.id.clone());
        Self {
            path: dispute.path.clone(),
            kind: dispute.kind,
            deed: deed_of(outcome),
            confidence,
            inputs: Inputs {
                base: id(&dispute.base),
                ours: id(&dispute.ours),
                theirs: id(&dispute.theirs),
            },
            steps,
            dropped: dropped_by(dispute, outcome),
        }
    }
}

fn deed_of(outcome: &Outcome) -> Deed {
    match outcome {
        Outcome::Whole(Choice::Ours) => Deed::TookOurs,
        Outcome::Whole(Choice::Theirs) => Deed::TookTheirs,
        Outcome::Whole(_) => Deed::Deleted,
        Outcome::Text(_) => Deed::Merged,
    }
}

fn dropped_by(dispute: &Dispute, outcome: &Outcome) -> Dropped {
    let bytes = |side: &'_ Option<Version>| {
        side.as_ref().and_then(|side| side.bytes.clone()).unwrap_or_default()
    };
    let result = match outcome {
        Outcome::Whole(Choice::Ours) => bytes(&dispute.ours),
        Outcome::Whole(Choice::Theirs) => bytes(&dispute.theirs),
        Outcome::Whole(_) => Vec::new(),
        Outcome::Text(text) => text.clone(),
    };
    dropped(&bytes(&dispute.base), &bytes(&dispute.ours), &bytes(&dispute.theirs), &result)
}

fn ruled(rung: Rung) -> Step {
    Step {
        rung,
        version: rung.version(),
        grade: format!("{rung} ruled by the owner"),
        confidence: 1.0,
        learned_from: None,
        program: None,
    }
}

fn step_of(candidate: &Candidate) -> Step {
    Step { learned_from: candidate.learned_from.clone(), ..step(&candidate.grade, candidate.worth) }
}

fn step(grade: &super::grade::Grade, worth: f64) -> Step {
    Step {
        rung: grade.rung,
        version: grade.rung.version(),
        grade: grade.name.clone(),
        confidence: worth,
        learned_from: None,
        program: None,
    }
}
