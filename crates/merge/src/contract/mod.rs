//! The fork contract: an account of every commit and path that the fork changed.
//!
//! [`observe_contract`] gathers facts from the host's repository, [`judge_contract`] decides from them alone, and
//! [`render_contract`] prints the account. Only trees and commits count, never what an agent reports about them.

mod judge;
mod lines;
mod observe;
mod render;

use std::collections::BTreeSet;

use host::git::TreeEntry;
use model::id::Sha;
use serde::{Deserialize, Serialize};

use crate::account::{DepartureRank, DropRules, MergeAccount, MergeSide, SideChange};
use crate::path::TreePath;

pub use judge::judge_contract;
pub(crate) use judge::plural;
pub use lines::{LineFacts, LineId, Versions, count_lines};
pub(crate) use observe::patches_of;
pub use observe::{ContractBounds, ContractEnds, observe_contract};
pub use render::{ContractFormat, render_contract};

/// Status of a change of the fork in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContractStatus {
    Kept,
    /// Upstream has the same change.
    Superseded,
    /// Part of it, or an adapted form, is in the result.
    Changed,
    Lost,
}

impl ContractStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Superseded => "superseded",
            Self::Changed => "changed",
            Self::Lost => "lost",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// Commits that only the fork has, without merges, newest first.
    pub commits: Vec<CommitAccount>,
    /// Number of older commits beyond the limit. Their paths are accounted for.
    #[serde(default)]
    pub commits_left_off: usize,
    /// Paths that the fork changed, and protected paths that the result changed.
    pub paths: Vec<PathAccount>,
    /// True if more is lost than a few lines among much.
    pub lost: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitAccount {
    pub sha: Sha,
    /// The first line of its message.
    pub subject: String,
    pub state: ContractStatus,
    /// A commit with the same change: upstream's, or its replacement in the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<Sha>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathAccount {
    pub path: TreePath,
    pub state: ContractStatus,
    pub detail: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContractFacts {
    /// The fork's commits, newest first.
    pub commits: Vec<ForkCommit>,
    /// Number of commits beyond the limit.
    pub commits_left_off: usize,
    /// The paths, sorted.
    pub paths: Vec<PathFacts>,
    /// True if the result is upstream's tree.
    pub is_upstreams_tree: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkCommit {
    pub sha: Sha,
    /// The first line of its message.
    pub subject: String,
    pub paths: BTreeSet<TreePath>,
    pub added: BTreeSet<LineId>,
    /// Upstream's commit with the same change.
    pub upstream_twin: Option<Sha>,
    /// New commit of the result with the same change.
    pub result_twin: Option<Sha>,
}

/// A path that the fork changed, with its entry in each of four trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathFacts {
    pub path: TreePath,
    /// Entry in the merge base, under its name there.
    pub ancestor: Option<TreeEntry>,
    pub fork: Option<TreeEntry>,
    /// Entry in upstream, under its name there.
    pub upstream: Option<TreeEntry>,
    /// Entry in the result, under its name there.
    pub result: Option<TreeEntry>,
    /// Name in the result, if it differs.
    pub moved_to: Option<TreePath>,
    /// True if that name is upstream's.
    pub moved_by_upstream: bool,
    /// True if the fork's version must survive.
    pub protected: bool,
    /// True if the result has at this path what git itself makes of both sides. Its lines are not counted then.
    pub by_git: bool,
    /// True if that is so and the result as a whole is a merge of both sides.
    pub as_merged: bool,
    /// Rule of the fork that gives the path away.
    pub given_away: Option<String>,
    /// True if the fork's change lost a conflict to upstream's, in a merge that gives away few of its conflicts.
    pub yielded: bool,
    /// True if every change of the fork at this path is in the result by its tokens, such as wrapped otherwise or as a part
    /// of upstream's own change of the same line.
    pub is_taken: bool,
    /// True if new lines of the result at this path look as if they turn code off, hide letters or name a new host.
    pub is_suspected: bool,
    /// True if a program writes the file as a whole.
    pub is_generated: bool,
    pub lines: LineEvidence,
}

impl ContractFacts {
    /// Adds what git's own merge and the fork's rules say about the paths.
    pub fn refine(&mut self, account: &MergeAccount, rules: &DropRules) {
        let conflicts = account.conflicts.iter().map(|conflict| &conflict.path);
        let departures = account.departures.iter().map(|departure| &departure.path);
        let apart: BTreeSet<&TreePath> = conflicts.chain(departures).collect();
        let yielded = yielded_paths(account);
        let not_taken: BTreeSet<&TreePath> =
            account.fork.changes.iter().map(|change| &change.path).collect();
        let suspicious =
            account.departures.iter().filter(|it| it.rank == DepartureRank::Suspicious);
        let suspected: BTreeSet<&TreePath> = suspicious.map(|departure| &departure.path).collect();
        self.is_upstreams_tree = account.whole == Some(MergeSide::Upstream);
        for path in &mut self.paths {
            path.yielded = yielded.contains(&path.path);
            path.is_suspected = suspected.contains(&path.path);
            path.given_away = rules.rule_of(MergeSide::Fork, path.path.as_bytes());
            let is_there = path.result.is_some() && path.moved_to.is_none();
            let is_apart = apart.contains(&path.path);
            path.as_merged = is_there && account.whole.is_none() && !is_apart;
            path.is_taken =
                is_there && account.whole.is_none() && is_apart && !not_taken.contains(&path.path);
        }
    }
}

/// Conflicts that a merge may give to upstream before the fork's side counts as dropped.
const FEW_CONFLICTS: usize = 4;

/// Paths where the fork's change is missing only in lines that both sides changed. A merge that gives most of its conflicts
/// to upstream has none: it did not merge the fork's side.
fn yielded_paths(account: &MergeAccount) -> BTreeSet<&TreePath> {
    let conflicts: BTreeSet<&TreePath> =
        account.conflicts.iter().map(|conflict| &conflict.path).collect();
    let is_yielded = |change: &&SideChange| {
        change.dropped > 0 && change.dropped_clean == 0 && conflicts.contains(&change.path)
    };
    let yielded: BTreeSet<&TreePath> =
        account.fork.changes.iter().filter(is_yielded).map(|change| &change.path).collect();
    let is_most = yielded.len() > FEW_CONFLICTS && 2 * yielded.len() > conflicts.len();
    if is_most || account.whole.is_some() { BTreeSet::new() } else { yielded }
}

/// Comparison of the lines of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LineEvidence {
    #[default]
    NotNeeded,
    /// No lines: a binary file, a link or a submodule.
    NoLines,
    TooLarge,
    Counted(LineFacts),
    /// Lines that the fork changed in a file that the result lacks, or lines of a file that the fork deleted and the result
    /// has; 0 if the fork changed empty lines alone.
    Whole(usize),
}
