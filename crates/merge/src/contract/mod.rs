//! The fork contract: an account of everything that was the fork's, commit by commit and path by path.
//!
//! [`observe_contract`] gathers the facts from a repository of ours, [`judge_contract`] decides from them alone, and
//! [`render_contract`] says it to people. Only the trees and commits are believed, never what somebody says of them.

mod judge;
mod lines;
mod observe;
mod protect;
mod render;

use std::collections::BTreeSet;

use model::id::Sha;
use serde::{Deserialize, Serialize};

use crate::path::TreePath;

pub use judge::judge_contract;
pub use lines::{LineFacts, LineId, Versions, count_lines};
pub use observe::{ContractBounds, ContractEnds, observe_contract};
pub use protect::Protected;
pub use render::{ContractFormat, render_contract};

/// What became of a piece of the fork's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContractStatus {
    /// It is in the result.
    Kept,
    /// Upstream has it now.
    Superseded,
    /// Some of it is in the result, or something like it.
    Changed,
    /// It is gone.
    Lost,
}

impl ContractStatus {
    /// In one word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Superseded => "superseded",
            Self::Changed => "changed",
            Self::Lost => "lost",
        }
    }
}

/// The account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// Every commit that only the fork has, merges left out, newest first.
    pub commits: Vec<CommitAccount>,
    /// How many older commits were too many to account for one by one; their paths are accounted for.
    #[serde(default)]
    pub commits_left_off: usize,
    /// Every path that the fork changed, and every protected one that the result changed.
    pub paths: Vec<PathAccount>,
    /// Something of the fork's is gone.
    pub lost: bool,
}

/// What became of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitAccount {
    /// Its id.
    pub sha: Sha,
    /// The first line of its message.
    pub subject: String,
    /// What became of it.
    pub state: ContractStatus,
    /// A commit that makes the same change: upstream's, or the one that the result has in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<Sha>,
}

/// What became of the fork's changes to a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathAccount {
    /// The path, as the fork has or had it.
    pub path: TreePath,
    /// What became of it.
    pub state: ContractStatus,
    /// Why, in a few words.
    pub detail: String,
}

/// What the account is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContractFacts {
    /// The fork's commits, newest first.
    pub commits: Vec<ForkCommit>,
    /// How many more there are.
    pub commits_left_off: usize,
    /// The paths, sorted.
    pub paths: Vec<PathFacts>,
}

/// A commit that only the fork has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkCommit {
    /// Its id.
    pub sha: Sha,
    /// The first line of its message.
    pub subject: String,
    /// The paths that it touched.
    pub paths: BTreeSet<TreePath>,
    /// The lines that it added.
    pub added: BTreeSet<LineId>,
    /// A commit of upstream's that makes the same change.
    pub upstream_twin: Option<Sha>,
    /// A commit new in the result that makes the same change.
    pub result_twin: Option<Sha>,
}

/// A thing at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathEntry {
    /// Its mode, such as `0o100644`.
    pub mode: u32,
    /// Its object.
    pub id: Sha,
}

/// A path that the fork changed: what it is in each of four trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// The path, as the fork has or had it.
    pub path: TreePath,
    /// Where fork and upstream parted, under the name it had there.
    pub ancestor: Option<PathEntry>,
    /// In the fork.
    pub fork: Option<PathEntry>,
    /// In upstream, under whatever name.
    pub upstream: Option<PathEntry>,
    /// In the result, under whatever name.
    pub result: Option<PathEntry>,
    /// The name in the result, if it is another one.
    pub moved_to: Option<TreePath>,
    /// Whether its fork version must survive.
    pub protected: bool,
    /// What became of its lines.
    pub lines: LineEvidence,
}

/// Whether lines could be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LineEvidence {
    /// There was no need.
    #[default]
    NotNeeded,
    /// It has no lines: binary, a link, another repository.
    NoLines,
    /// It is larger than we compare.
    TooLarge,
    /// They were counted.
    Counted(LineFacts),
}
