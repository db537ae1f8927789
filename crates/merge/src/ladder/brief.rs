//! Briefs: for everything that was not settled, what whoever settles it should know.

use std::collections::BTreeMap;

use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::decide::Declined;
use super::dispute::Dispute;
use super::hunk::{Hunk, hunks};
use super::nearby::{Earlier, Nearby};
use super::structure::Structural;
use super::touch::Touch;
use super::weigh::{Candidate, Weighed, WeighedHunk};
use crate::clean::ConflictKind;
use crate::path::TreePath;

/// A conflict that somebody has to settle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Brief {
    /// The path.
    pub path: TreePath,
    /// Why it is in conflict.
    pub kind: ConflictKind,
    /// Other paths of the same conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<TreePath>,
    /// Why the rungs did not settle it.
    pub why: String,
    /// The hunks, as far as they can be shown.
    pub hunks: Vec<HunkBrief>,
    /// What a program that knows the language makes of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure: Option<Proposal>,
    /// What earlier merges did at this path, or else in its folder, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearby: Vec<Earlier>,
    /// The fork's commits that touched it, newest first; see [`add_touches`](super::touch::add_touches).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ours_commits: Vec<Touch>,
    /// Upstream's commits that touched it, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub theirs_commits: Vec<Touch>,
}

/// A hunk for somebody to settle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HunkBrief {
    /// In the common ancestor.
    pub base: String,
    /// In the fork.
    pub ours: String,
    /// In upstream.
    pub theirs: String,
    /// The surest answers, most sure first.
    pub proposals: Vec<Proposal>,
}

/// An answer that was not trusted enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The text.
    pub text: String,
    /// What kind of answer it is.
    pub grade: String,
    /// What answers of this kind are worth here.
    pub confidence: f64,
    /// The merge that it was learned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned_from: Option<Sha>,
}

/// How many hunks of a file a brief shows, how much of each side, and how many answers.
const HUNKS_SHOWN: usize = 50;
const SIDE_SHOWN: usize = 8 << 10;
const PROPOSALS_SHOWN: usize = 2;

impl Brief {
    /// The brief for a dispute that was left for this reason.
    pub(super) fn of(dispute: &Dispute, weighed: &Weighed, why: String, nearby: &Nearby) -> Self {
        let (path, kind) = (dispute.path.clone(), dispute.kind);
        let hunks = hunk_briefs(dispute, weighed);
        Self { why, hunks, ..Self::without_hunks(path, kind, Vec::new(), nearby) }
    }

    /// The brief for a conflict that nobody looked into.
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
    /// What a program that knows the language made and was not trusted with.
    pub(super) fn of_structure(found: &Structural, program: &str) -> Self {
        Self {
            text: shown(&found.text),
            grade: program.to_owned(),
            confidence: found.confidence,
            learned_from: None,
        }
    }
}

fn hunk_briefs(dispute: &Dispute, weighed: &Weighed) -> Vec<HunkBrief> {
    let mut weighed = weighed.hunks.iter();
    let brief = |hunk: &Hunk| HunkBrief {
        base: shown(&hunk.base),
        ours: shown(&hunk.ours),
        theirs: shown(&hunk.theirs),
        proposals: weighed.next().map(proposals).unwrap_or_default(),
    };
    hunks(&dispute.pieces).take(HUNKS_SHOWN).map(brief).collect()
}

/// The surest ones that say different things.
fn proposals(hunk: &WeighedHunk) -> Vec<Proposal> {
    let mut sorted: Vec<_> = hunk.candidates.iter().collect();
    sorted.sort_by(|one, other| other.worth.total_cmp(&one.worth));
    let mut seen: BTreeMap<&[u8], ()> = BTreeMap::new();
    sorted.retain(|candidate| seen.insert(&candidate.text, ()).is_none());
    let proposal = |candidate: &Candidate| Proposal {
        text: shown(&candidate.text),
        grade: candidate.grade.name.clone(),
        confidence: candidate.worth,
        learned_from: candidate.learned_from.clone(),
    };
    sorted.into_iter().take(PROPOSALS_SHOWN).map(proposal).collect()
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(SIDE_SHOWN)]).into_owned()
}
