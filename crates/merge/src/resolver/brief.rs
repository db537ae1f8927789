//! Briefs: what a person or agent should know about each open conflict.

use std::collections::BTreeSet;

use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::conflict::FileConflict;
use super::decide::Declined;
use super::hunk::{Hunk, hunks};
use super::nearby::{EarlierResolution, Nearby};
use super::scorer::{CandidateAnswer, ScoredConflict, ScoredHunk};
use super::structure::StructuralAnswer;
use super::touch::Touch;
use crate::clean::ConflictKind;
use crate::path::TreePath;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Brief {
    pub path: TreePath,
    pub kind: ConflictKind,
    /// Other paths of the same conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<TreePath>,
    /// Reason why the resolver left it open.
    pub why: String,
    /// Its hunks; empty if they cannot be shown.
    pub hunks: Vec<HunkBrief>,
    /// Answer of the structural merger for the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure: Option<Proposal>,
    /// Earlier resolutions at this path, or else in its folder, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearby: Vec<EarlierResolution>,
    /// The fork's commits that touched it, newest first; see [`add_touches`](super::touch::add_touches).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ours_commits: Vec<Touch>,
    /// Upstream's commits that touched it, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub theirs_commits: Vec<Touch>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HunkBrief {
    pub base: String,
    pub ours: String,
    pub theirs: String,
    /// Best answers, highest confidence first.
    pub proposals: Vec<Proposal>,
}

/// An answer below the trust threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    pub text: String,
    #[serde(alias = "grade")]
    pub answer_class: String,
    /// Measured precision of this class in this fork.
    pub confidence: f64,
    /// Merge that it was learned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned_from: Option<Sha>,
}

/// Most hunks in a brief, most bytes of each side, most answers for a hunk.
const HUNKS_SHOWN: usize = 50;
const SIDE_SHOWN: usize = 8 << 10;
const PROPOSALS_SHOWN: usize = 2;

impl Brief {
    /// Brief for a conflict that stays open for this reason.
    pub(super) fn of(
        conflict: &FileConflict,
        scored: &ScoredConflict,
        why: String,
        nearby: &Nearby,
    ) -> Self {
        let (path, kind) = (conflict.path.clone(), conflict.kind);
        let hunks = hunk_briefs(conflict, scored);
        Self { why, hunks, ..Self::without_hunks(path, kind, Vec::new(), nearby) }
    }

    /// Brief for a conflict whose contents were not read.
    pub(super) fn without_hunks(
        path: TreePath,
        kind: ConflictKind,
        also: Vec<TreePath>,
        nearby: &Nearby,
    ) -> Self {
        Self {
            kind,
            also,
            why: Declined::NoAnswer.to_string(),
            hunks: Vec::new(),
            structure: None,
            nearby: nearby.near(&path.to_string()).to_vec(),
            path,
            ours_commits: Vec::new(),
            theirs_commits: Vec::new(),
        }
    }
}

impl Proposal {
    /// Answer of a structural merger that is below the threshold.
    pub(super) fn of_structure(found: &StructuralAnswer, program: &str) -> Self {
        Self {
            text: shown(&found.text),
            answer_class: program.to_owned(),
            confidence: found.confidence,
            learned_from: None,
        }
    }
}

fn hunk_briefs(conflict: &FileConflict, scored: &ScoredConflict) -> Vec<HunkBrief> {
    let mut scored = scored.hunks.iter();
    let brief = |hunk: &Hunk| HunkBrief {
        base: shown(&hunk.base),
        ours: shown(&hunk.ours),
        theirs: shown(&hunk.theirs),
        proposals: scored.next().map(proposals).unwrap_or_default(),
    };
    hunks(&conflict.pieces).take(HUNKS_SHOWN).map(brief).collect()
}

/// Best answers with different texts.
fn proposals(hunk: &ScoredHunk) -> Vec<Proposal> {
    let mut sorted: Vec<_> = hunk.candidates.iter().collect();
    sorted.sort_by(|one, other| other.precision.total_cmp(&one.precision));
    let mut seen: BTreeSet<&[u8]> = BTreeSet::new();
    sorted.retain(|candidate| seen.insert(&candidate.text));
    let proposal = |candidate: &CandidateAnswer| Proposal {
        text: shown(&candidate.text),
        answer_class: candidate.answer_class.name.clone(),
        confidence: candidate.precision,
        learned_from: candidate.learned_from.clone(),
    };
    sorted.into_iter().take(PROPOSALS_SHOWN).map(proposal).collect()
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(SIDE_SHOWN)]).into_owned()
}
