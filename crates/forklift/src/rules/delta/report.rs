//! The inventory as data: what scripts get, and what tables and pages are made of. Pure.

use std::collections::{BTreeMap, BTreeSet};

use merge::delta::change::{Ground, LineAssignment, NamedChange, UpstreamState};
use merge::delta::effect::ChangeEffect;
use merge::delta::heat::Heat;
use merge::delta::state::JudgedChange;
use merge::delta::taken::Twin;
use merge::delta::{Delta, LineCount, LineOrigin};
use merge::path::TreePath;
use model::id::Sha;
use serde::Serialize;

/// Seconds of a day.
const DAY: i64 = 24 * 3600;

/// The inventory of a fork.
#[derive(Debug, Serialize)]
pub(crate) struct DeltaReport {
    /// The fork's commit, and the commit of upstream that it is compared with.
    pub(crate) tip: Sha,
    pub(crate) parted: Sha,
    /// Commits that only the fork has, merges among them.
    pub(crate) commits: usize,
    pub(crate) merges: usize,
    /// Commits, merges left out, of which no line is in the tree: undone, replaced, or taken by upstream.
    pub(crate) without_lines: usize,
    pub(crate) files: usize,
    /// Files that were too large or could not be read. Their lines are not counted.
    pub(crate) unread: usize,
    pub(crate) lines: LineCount,
    /// Lines by what names their change.
    pub(crate) by_ground: BTreeMap<Ground, usize>,
    /// Lines that no commit of the fork is known for.
    pub(crate) without_commit: NoCommitLines,
    /// Merges of upstream that were made again, and the paths in which they conflicted, the most often first.
    pub(crate) past_merges: usize,
    pub(crate) conflict_paths: Vec<ConflictPath>,
    pub(crate) changes: Vec<ChangeRow>,
}

/// A path with the number of past merges that conflicted in it.
#[derive(Debug, Serialize)]
pub(crate) struct ConflictPath {
    pub(crate) path: String,
    pub(crate) merges: usize,
}

/// Lines that no commit of the fork is known for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct NoCommitLines {
    /// Made by a merge: none of its parents has them.
    pub(crate) merges: usize,
    /// Of upstream, in another version than the one that the fork has taken.
    pub(crate) upstream: usize,
    pub(crate) unknown: usize,
}

impl NoCommitLines {
    pub(crate) fn total(self) -> usize {
        self.merges + self.upstream + self.unknown
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct ChangeRow {
    pub(crate) name: String,
    pub(crate) ground: Ground,
    pub(crate) intent: Option<String>,
    pub(crate) upstream: Option<UpstreamState>,
    pub(crate) retire_when: Option<String>,
    pub(crate) lines: LineCount,
    pub(crate) files: Vec<DeltaFileRow>,
    /// The newest first.
    pub(crate) commits: Vec<CommitRow>,
    /// Days since its oldest and its newest commit.
    pub(crate) oldest_days: Option<i64>,
    pub(crate) newest_days: Option<i64>,
    /// Past merges that conflicted in a file in which the change has something.
    pub(crate) conflicts: usize,
    /// Findings of `check`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) judged: Option<JudgedChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) twins: Vec<Twin>,
    /// Effect of its commits, and how much of it is so in the fork's tree and in upstream's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effect: Option<ChangeEffect>,
}

#[derive(Debug, Serialize)]
pub(crate) struct DeltaFileRow {
    pub(crate) path: TreePath,
    #[serde(flatten)]
    pub(crate) lines: LineCount,
}

#[derive(Debug, Serialize)]
pub(crate) struct CommitRow {
    pub(crate) sha: Sha,
    pub(crate) subject: String,
    pub(crate) merge: bool,
}

/// Makes the inventory of a delta and its changes; `now` is in seconds since 1970.
pub(crate) fn make_report(
    delta: &Delta,
    assignment: &LineAssignment,
    heat: &Heat,
    now: i64,
) -> DeltaReport {
    let history = &delta.history;
    let merges = (0..history.commits.len()).filter(|&place| history.is_merge(place)).count();
    let with_lines: BTreeSet<usize> =
        assignment.changes.iter().flat_map(|change| &change.commits).copied().collect();
    let with_lines = with_lines.into_iter().filter(|&place| !history.is_merge(place)).count();
    let mut without_commit = NoCommitLines::default();
    for (origin, count) in delta.files.iter().flat_map(merge::delta::DeltaFile::origins) {
        match origin {
            LineOrigin::Commit(_) => {}
            LineOrigin::Merge(_) => without_commit.merges += count.total(),
            LineOrigin::Upstream => without_commit.upstream += count.total(),
            LineOrigin::Unknown => without_commit.unknown += count.total(),
        }
    }
    DeltaReport {
        tip: delta.tip.clone(),
        parted: delta.parted.clone(),
        commits: history.commits.len(),
        merges,
        without_lines: history.commits.len() - merges - with_lines,
        files: delta.files.len(),
        unread: delta.unread(),
        lines: delta.lines(),
        by_ground: assignment.lines_by_ground(),
        without_commit,
        past_merges: heat.merges(),
        conflict_paths: heat
            .by_path()
            .into_iter()
            .map(|(path, merges)| ConflictPath { path: path.to_owned(), merges })
            .collect(),
        changes: assignment
            .changes
            .iter()
            .map(|change| ChangeRow {
                conflicts: heat.of_change(delta, change),
                ..make_row(delta, change, now)
            })
            .collect(),
    }
}

fn make_row(delta: &Delta, change: &NamedChange, now: i64) -> ChangeRow {
    let commits = change.commits.iter().map(|&place| (place, &delta.history.commits[place]));
    let days = |seconds: i64| (now - seconds).max(0) / DAY;
    let dates: Vec<i64> = commits
        .clone()
        .filter(|(place, _)| !delta.history.is_merge(*place))
        .map(|(_, commit)| commit.authored)
        .filter(|&seconds| seconds > 0)
        .collect();
    ChangeRow {
        name: change.name.clone(),
        ground: change.ground,
        intent: change.intent.clone(),
        upstream: change.upstream.clone(),
        retire_when: change.retire_when.clone(),
        lines: change.lines,
        files: change
            .files
            .iter()
            .map(|(&file, &lines)| DeltaFileRow { path: delta.files[file].path.clone(), lines })
            .collect(),
        oldest_days: dates.iter().min().copied().map(days),
        newest_days: dates.iter().max().copied().map(days),
        commits: commits
            .map(|(place, commit)| CommitRow {
                sha: commit.sha.clone(),
                subject: commit.subject().to_owned(),
                merge: delta.history.is_merge(place),
            })
            .collect(),
        conflicts: 0,
        judged: None,
        twins: Vec::new(),
        effect: None,
    }
}

impl DeltaReport {
    /// Share of the lines whose change has a name other than its folder's, in percent, rounded down.
    pub(crate) fn assigned_percent(&self) -> usize {
        let all = self.lines.total();
        let left = self.by_ground.get(&Ground::Path).copied().unwrap_or_default();
        ((all - left) * 100).checked_div(all).unwrap_or(100)
    }
}
