//! The account of both sides: what a result has of upstream's changes and of the fork's, hunk by hunk.
//!
//! The host merges the two sides itself. Where the result is what git makes of them, both sides are in it whole. Only the
//! other paths are read: those in conflict, and those in which the result departs from git's merge. [`observe_account`]
//! gathers, [`judge_account`] decides from that alone whether a side was dropped wholesale and what a person has to look at.

mod departure;
mod judge;
mod observe;
mod regions;
mod suspicion;

use serde::{Deserialize, Serialize};

use crate::clean::ConflictKind;
use crate::path::TreePath;

pub(crate) use judge::{LINES_PER_CHANGE, few_changes};
pub use judge::{Look, LookKind, MergeJudgement, judge_account};
pub use observe::{DropRules, observe_account};

/// Account of the changes that each side made since the merge base.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeAccount {
    pub upstream: SideAccount,
    pub fork: SideAccount,
    /// Paths that git could not merge, and what the result has there.
    pub conflicts: Vec<ConflictAccount>,
    /// Paths where the result has something that neither git's merge nor a resolution of a conflict explains.
    pub departures: Vec<Departure>,
    /// Paths of upstream's that a merge is expected to change: without CI definitions, without those that the fork already has
    /// as upstream has them, and without those that a rule of the fork or an earlier merge explains. A record of an earlier
    /// version has none.
    #[serde(default)]
    pub expected_paths: usize,
    /// Paths of upstream's that the fork already has as upstream has them.
    #[serde(default)]
    pub present_paths: usize,
    /// The side whose tree the result is, although the other side has changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<MergeSide>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeSide {
    Fork,
    Upstream,
}

impl MergeSide {
    /// Name of the side as the subject of a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fork => "the fork",
            Self::Upstream => "upstream",
        }
    }
}

/// Changes of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideAccount {
    /// Number of paths that the side changed.
    pub paths: usize,
    /// Paths with a change that the result does not have as the side made it.
    pub changes: Vec<SideChange>,
}

/// A path of which a side's change is not in the result as it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideChange {
    pub path: TreePath,
    pub status: SideStatus,
    /// Hunks of the side in this path; a file without lines is one hunk.
    pub hunks: usize,
    pub adapted: usize,
    /// Adapted hunks in or beside a conflict, or of empty lines alone. A record of an earlier version has none.
    #[serde(default)]
    pub adapted_in_conflict: usize,
    pub dropped: usize,
    /// Dropped hunks that git could have applied, because the other side did not touch the same lines.
    pub dropped_clean: usize,
    /// Lines of the change that the result lacks, or has although the change removed them.
    pub lines: usize,
    /// Those of them in dropped hunks that git could have applied. A record of an earlier version does not tell.
    #[serde(default)]
    pub lines_dropped_clean: Option<usize>,
    /// For [`SideStatus::DroppedByRule`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<DropReason>,
    /// True if a program writes the file as a whole, by its name or by what both sides say at its top.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_generated: bool,
    /// Missing parts, in a few words.
    pub detail: String,
}

/// Reason why a change may be missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropReason {
    pub text: String,
    /// True if earlier merges did so, and no rule of the fork says it.
    pub is_habit: bool,
}

/// Status of a side's change, worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SideStatus {
    Taken,
    /// Part of it, or another form, is in the result.
    Adapted,
    /// A rule of the fork or an earlier merge says that it is not taken.
    DroppedByRule,
    Dropped,
}

/// A conflict and its resolution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictAccount {
    pub path: TreePath,
    pub kind: ConflictKind,
    pub resolution: ConflictResolution,
    /// The conflict and its resolution as a diff3-like text, cut to a few kilobytes; empty for a file without lines.
    pub hunk: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictResolution {
    /// The fork's version.
    Ours,
    /// Upstream's version.
    Theirs,
    /// Changes of both sides.
    Both,
    /// Something that neither side has.
    New,
    Deleted,
}

impl ConflictResolution {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Theirs => "theirs",
            Self::Both => "both",
            Self::New => "new",
            Self::Deleted => "deleted",
        }
    }
}

/// A path where the result has something that neither git's merge nor a resolution of a conflict explains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    pub path: TreePath,
    pub kind: DepartureKind,
    /// Difference, in a few words; empty if the accounts of the sides say it.
    pub detail: String,
    /// True if almost nothing is left of what both sides have.
    #[serde(default)]
    pub gutted: bool,
    #[serde(default, skip_serializing_if = "DepartureRank::is_usual")]
    pub rank: DepartureRank,
}

/// Order among departures of one kind: a flood of harmless ones must not bury the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DepartureRank {
    /// New lines that turn code off, hide letters or name a new host.
    Suspicious,
    #[default]
    Usual,
    /// Lines in the place of a conflict alone, made of words and signs that the sides have there.
    InConflict,
    /// Line ends, blanks or empty lines alone.
    Blank,
}

impl DepartureRank {
    fn is_usual(&self) -> bool {
        *self == Self::Usual
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DepartureKind {
    /// A file that neither side has.
    Added,
    /// A file that the merge has and the result has not.
    Removed,
    /// The content under another name that neither side gave it.
    Renamed,
    /// Type or permission.
    Mode,
    /// Lines of neither side were added or removed.
    Content,
}
