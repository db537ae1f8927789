//! The inventory of a fork: every line in which its tree differs from upstream's, and the commit that each comes from.
//!
//! - [`observe_delta`] reads the fork's own history and traces the lines to their commits
//! - [`change`] groups them into named changes, by what the fork declares, by trailers, by commits and by paths
//! - [`heat`] counts how often past merges conflicted, by path
//! - [`taken`] finds the changes that upstream has taken
//! - [`stack`] makes a stack of commits of the changes, one for each, and [`restack`] puts it on another commit of upstream
//! - [`compare`] puts each change beside upstream's files, and [`effect`] counts what its commits did and what is left of it
//! - [`state`] judges each change: whole, changed, gone or taken by upstream
//! - [`revert`] finds the reverts that take away a change and nothing else

pub mod change;
pub mod compare;
mod compose;
pub mod effect;
pub mod heat;
mod history;
mod observe;
pub mod restack;
pub mod revert;
pub mod stack;
pub mod state;
pub mod taken;
mod topic;
mod trace;

use std::ops::Range;

use host::git::TreeEntry;
use model::id::Sha;
use serde::{Deserialize, Serialize};

use crate::contract::LineId;
use crate::own::{OwnChange, TheirChange};
use crate::path::TreePath;

pub use history::OwnHistory;
pub use observe::{DeltaEnds, TracedContents, observe_delta};

/// The commit that a line of the fork comes from. Commits are given by their places in the [`OwnHistory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineOrigin {
    /// A commit of the fork.
    Commit(usize),
    /// A merge made it: none of its parents has it so.
    Merge(usize),
    /// Upstream wrote it, in a version that is not the one that the fork has taken.
    Upstream,
    /// It could not be traced.
    Unknown,
}

/// The fork beside the commit of upstream that it has taken last.
#[derive(Debug)]
pub struct Delta {
    /// Upstream's commit.
    pub parted: Sha,
    pub tip: Sha,
    pub history: OwnHistory,
    /// Sorted by path.
    pub files: Vec<DeltaFile>,
}

/// A file in which the fork differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaFile {
    /// Path in the fork, or the old path of a deleted file.
    pub path: TreePath,
    /// Old path, if the fork renamed it.
    pub was: Option<TreePath>,
    pub fork: OwnChange,
    /// Change of the target to the same file since.
    pub upstream: TheirChange,
    pub old: Option<TreeEntry>,
    pub new: Option<TreeEntry>,
    /// The newest commit that touched the file as a whole.
    pub whole: LineOrigin,
    pub content: FileContent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileContent {
    /// The places that differ, in order.
    Text(Vec<DeltaHunk>),
    /// A binary file, a link, a submodule, or another mode alone.
    Whole,
    /// Too large, or git could not read it.
    Unread,
}

/// Lines that the fork has in the place of others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeltaHunk {
    pub before: Range<usize>,
    pub after: Range<usize>,
    /// Origins of the lines before, which the fork removed, and after, which it added.
    pub removed: Vec<LineOrigin>,
    pub added: Vec<LineOrigin>,
}

/// A line that the fork removed, to be looked for.
#[derive(Clone, Copy, Debug)]
struct Removal {
    number: usize,
    id: LineId,
}

/// Numbers of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LineCount {
    pub added: usize,
    pub removed: usize,
}

impl LineCount {
    pub fn total(self) -> usize {
        self.added + self.removed
    }
}

impl std::ops::AddAssign for LineCount {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.removed += other.removed;
    }
}

impl DeltaFile {
    /// The origins of its lines with their numbers, each once.
    pub fn origins(&self) -> std::collections::BTreeMap<LineOrigin, LineCount> {
        let mut counts = std::collections::BTreeMap::new();
        if let FileContent::Text(hunks) = &self.content {
            for hunk in hunks {
                for origin in &hunk.added {
                    counts.entry(*origin).or_insert_with(LineCount::default).added += 1;
                }
                for origin in &hunk.removed {
                    counts.entry(*origin).or_insert_with(LineCount::default).removed += 1;
                }
            }
        }
        counts
    }

    /// Number of lines in which the file differs.
    pub fn lines(&self) -> LineCount {
        let mut all = LineCount::default();
        self.origins().into_values().for_each(|count| all += count);
        all
    }
}
