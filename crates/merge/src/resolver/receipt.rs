//! Receipts: for everything that was resolved, by what, from what, and how sure it was.

use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::answer_class::ResolveStrategy;
use super::conflict::{FileConflict, FileVersion};
use super::decide::{ResolvedContent, ResolverDecision};
use super::gate::{Dropped, dropped};
use super::habit::Resolution;
use super::scorer::{CandidateAnswer, ScoredConflict};
use super::structure::StructuralAnswer;
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
    #[serde(alias = "deed")]
    pub action: FileAction,
    /// How sure that was; 1 where the owner ruled it.
    pub confidence: f64,
    /// What it was made from.
    pub inputs: Inputs,
    /// By what, for each hunk in order; for a whole file there is one step.
    pub steps: Vec<ReceiptStep>,
    /// Lines that one side had added and that are not in the result.
    pub dropped: Dropped,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileAction {
    /// The fork's version was kept.
    TookOurs,
    /// Upstream's version was taken.
    TookTheirs,
    /// The file is gone, as one side had it.
    Deleted,
    /// The two versions were merged.
    Merged,
    /// The program that makes the file made it anew.
    #[serde(alias = "remade")]
    Regenerated,
}

impl FileAction {
    /// In words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TookOurs => "kept the fork's version",
            Self::TookTheirs => "took upstream's version",
            Self::Deleted => "deleted",
            Self::Merged => "merged",
            Self::Regenerated => "made anew by its program",
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
pub struct ReceiptStep {
    /// The rung.
    #[serde(alias = "rung")]
    pub strategy: ResolveStrategy,
    /// Its version.
    pub version: u32,
    /// The grade of its answer.
    #[serde(alias = "grade")]
    pub answer_class: String,
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
    pub fn of(
        conflict: &FileConflict,
        scored: &ScoredConflict,
        decision: &ResolverDecision,
    ) -> Self {
        let steps = match &decision.outcome {
            ResolvedContent::Whole(_) => scored
                .whole
                .iter()
                .map(|whole| step(&whole.answer_class, whole.precision))
                .collect(),
            ResolvedContent::Text(_) => scored
                .hunks
                .iter()
                .filter_map(|hunk| hunk.candidates.get(hunk.best?).map(step_of))
                .collect(),
        };
        Self::new(conflict, &decision.outcome, decision.confidence, steps)
    }

    /// The receipt for what the owner ruled.
    #[must_use]
    pub fn of_rule(
        conflict: &FileConflict,
        outcome: &ResolvedContent,
        strategy: ResolveStrategy,
    ) -> Self {
        Self::new(conflict, outcome, 1.0, vec![ruled(strategy)])
    }

    /// The receipt for a file that the owner's command made anew.
    #[must_use]
    pub fn of_regenerated(
        conflict: &FileConflict,
        outcome: &ResolvedContent,
        command: &str,
    ) -> Self {
        let step =
            ReceiptStep { program: Some(command.to_owned()), ..ruled(ResolveStrategy::Regenerate) };
        Self { action: FileAction::Regenerated, ..Self::new(conflict, outcome, 1.0, vec![step]) }
    }

    /// The receipt for what a program that knows the language made.
    #[must_use]
    pub fn of_structure(
        conflict: &FileConflict,
        found: StructuralAnswer,
        program: &str,
    ) -> (Self, ResolvedContent) {
        let StructuralAnswer { text, answer_class, confidence } = found;
        let step =
            ReceiptStep { program: Some(program.to_owned()), ..step(&answer_class, confidence) };
        let outcome = ResolvedContent::Text(text);
        (Self::new(conflict, &outcome, confidence, vec![step]), outcome)
    }

    fn new(
        conflict: &FileConflict,
        outcome: &ResolvedContent,
        confidence: f64,
        steps: Vec<ReceiptStep>,
    ) -> Self {
        let id = |side: &Option<FileVersion>| side.as_ref().map(|side| side.id.clone());
        Self {
            path: conflict.path.clone(),
            kind: conflict.kind,
            action: action_of(outcome),
            confidence,
            inputs: Inputs {
                base: id(&conflict.base),
                ours: id(&conflict.ours),
                theirs: id(&conflict.theirs),
            },
            steps,
            dropped: dropped_by(conflict, outcome),
        }
    }
}

fn action_of(outcome: &ResolvedContent) -> FileAction {
    match outcome {
        ResolvedContent::Whole(Resolution::Ours) => FileAction::TookOurs,
        ResolvedContent::Whole(Resolution::Theirs) => FileAction::TookTheirs,
        ResolvedContent::Whole(_) => FileAction::Deleted,
        ResolvedContent::Text(_) => FileAction::Merged,
    }
}

fn dropped_by(conflict: &FileConflict, outcome: &ResolvedContent) -> Dropped {
    let bytes = |side: &'_ Option<FileVersion>| {
        side.as_ref().and_then(|side| side.bytes.clone()).unwrap_or_default()
    };
    let result = match outcome {
        ResolvedContent::Whole(Resolution::Ours) => bytes(&conflict.ours),
        ResolvedContent::Whole(Resolution::Theirs) => bytes(&conflict.theirs),
        ResolvedContent::Whole(_) => Vec::new(),
        ResolvedContent::Text(text) => text.clone(),
    };
    dropped(&bytes(&conflict.base), &bytes(&conflict.ours), &bytes(&conflict.theirs), &result)
}

fn ruled(strategy: ResolveStrategy) -> ReceiptStep {
    ReceiptStep {
        strategy,
        version: strategy.version(),
        answer_class: format!("{strategy} ruled by the owner"),
        confidence: 1.0,
        learned_from: None,
        program: None,
    }
}

fn step_of(candidate: &CandidateAnswer) -> ReceiptStep {
    ReceiptStep {
        learned_from: candidate.learned_from.clone(),
        ..step(&candidate.answer_class, candidate.precision)
    }
}

fn step(answer_class: &super::answer_class::AnswerClass, precision: f64) -> ReceiptStep {
    ReceiptStep {
        strategy: answer_class.strategy,
        version: answer_class.strategy.version(),
        answer_class: answer_class.name.clone(),
        confidence: precision,
        learned_from: None,
        program: None,
    }
}
