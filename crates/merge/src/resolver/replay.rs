//! Replay of one past merge: scored as if it were new, compared with people's commit, then learned from.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use host::git::{GitError, PastMerge, SealedRepo};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::conflict::{FILE_CAP, FileConflict, list_conflicts, read_contents};
use super::decide::TrustThreshold;
use super::human::HumanResolution;
use super::knowledge::{Knowledge, ReplayedConflict};
use super::replayed::ReplayedFile;
use super::scorer::{ScoredConflict, Scorer};
use super::table::Table;

/// Most conflicts of a merge that is replayed. Larger merges take minutes and teach nothing more.
pub const CONFLICTS_CAP: usize = 80;

/// Conflicts of a past merge with people's resolutions.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeFacts {
    pub conflicts: Vec<(FileConflict, HumanResolution)>,
    /// Number of conflicts. With more than [`CONFLICTS_CAP`] none of them is read.
    pub conflict_count: usize,
    /// True if the result is one side, without even the changes that git could merge. Then none of them is read.
    pub is_one_sided: bool,
    /// Time that git took for the merge.
    pub merge_time: Duration,
    /// Time that reading the conflicts took.
    pub read_time: Duration,
}

/// Repeats a past merge and reads people's resolutions.
pub async fn observe_merge(repo: &SealedRepo, merge: &PastMerge) -> Result<MergeFacts, GitError> {
    let started = Instant::now();
    let merged = repo.merge_tree(&merge.ours, &merge.theirs).await?;
    let merge_time = started.elapsed();
    let mut conflicts = list_conflicts(&merged);
    let conflict_count = conflicts.len();
    let is_one_sided =
        conflict_count > 0 && is_one_sided(repo, merge, &merged.tree, &conflicts).await?;
    if conflict_count > CONFLICTS_CAP || conflict_count == 0 || is_one_sided {
        let (conflicts, read_time) = (Vec::new(), Duration::ZERO);
        return Ok(MergeFacts { conflicts, conflict_count, is_one_sided, merge_time, read_time });
    }
    let started = Instant::now();
    let mut read = 0;
    while read < conflicts.len() {
        read += read_contents(repo, &mut conflicts[read..]).await?;
    }
    let read_time = started.elapsed();
    let conflicts = with_human_resolutions(repo, &merge.sha, conflicts).await?;
    Ok(MergeFacts { conflicts, conflict_count, is_one_sided, merge_time, read_time })
}

/// Returns whether the result is one of the sides although git could merge something else into it.
async fn is_one_sided(
    repo: &SealedRepo,
    merge: &PastMerge,
    merged: &Sha,
    conflicts: &[FileConflict],
) -> Result<bool, GitError> {
    let commits = [&merge.sha, &merge.ours, &merge.theirs].map(Sha::clone);
    let trees = repo.trees_of(&commits).await?;
    let [result @ Some(_), ours, theirs] = trees.as_slice() else { return Ok(false) };
    let Some(side) =
        [ours, theirs].into_iter().find(|side| *side == result).and_then(Option::as_ref)
    else {
        return Ok(false);
    };
    let conflicted: BTreeSet<&[u8]> =
        conflicts.iter().map(|conflict| conflict.path.as_bytes()).collect();
    let changed = repo.changed_entries(side, merged).await?;
    Ok(changed.iter().any(|entry| !conflicted.contains(entry.path.as_slice())))
}

async fn with_human_resolutions(
    repo: &SealedRepo,
    merge: &Sha,
    conflicts: Vec<FileConflict>,
) -> Result<Vec<(FileConflict, HumanResolution)>, GitError> {
    let paths: Vec<&[u8]> = conflicts.iter().map(|conflict| conflict.path.as_bytes()).collect();
    let entries = repo.entries_at(merge, &paths).await?;
    let ids: Vec<Sha> = entries.values().map(|entry| entry.id.clone()).collect();
    let blobs = repo.read_blobs(&ids, FILE_CAP).await?;
    let is_whole = |blob: &host::git::Blob| blob.size <= FILE_CAP as u64;
    let contents: BTreeMap<Sha, Vec<u8>> = ids
        .into_iter()
        .zip(blobs)
        .filter_map(|(id, blob)| Some((id, blob.filter(is_whole)?.bytes)))
        .collect();
    let resolve = |conflict: FileConflict| {
        let entry = entries.get(conflict.path.as_bytes());
        let bytes = entry.and_then(|entry| contents.get(&entry.id).cloned());
        let human = HumanResolution::of(&conflict, entry, bytes);
        (conflict, human)
    };
    Ok(conflicts.into_iter().map(resolve).collect())
}

/// Scores a past merge with the knowledge from before it, then learns from it.
pub fn replay_merge(
    table: &Table,
    knowledge: &mut Knowledge,
    merge: &Sha,
    conflicts: Vec<(FileConflict, HumanResolution)>,
) -> Vec<ReplayedConflict> {
    let conflict_count = conflicts.len();
    let scorer = Scorer { table, knowledge, conflict_count };
    let score = |(conflict, human): (FileConflict, HumanResolution)| {
        let scored = scorer.score(&conflict);
        ReplayedConflict { conflict, human, scored }
    };
    let mut replayed: Vec<ReplayedConflict> = conflicts.into_iter().map(score).collect();
    let mut scored: Vec<(&FileConflict, &mut ScoredConflict)> =
        replayed.iter_mut().map(|one| (&one.conflict, &mut one.scored)).collect();
    knowledge.standings.limit(table, &mut scored, 0);
    if !replayed.is_empty() {
        knowledge.learn(table, merge, &replayed);
    }
    replayed
}

/// Totals of replayed merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayScore {
    /// Merges with conflicts.
    pub merges: usize,
    /// Merges whose conflicts were all resolved.
    #[serde(alias = "merges_settled")]
    pub merges_resolved: usize,
    /// Merges that were resolved as people did.
    pub merges_agreed: usize,
    pub files: usize,
    #[serde(alias = "files_settled")]
    pub files_resolved: usize,
    /// Files that were resolved as people did.
    pub files_agreed: usize,
}

impl ReplayScore {
    pub fn add(&mut self, files: &[ReplayedFile], trust: TrustThreshold) {
        self.merges += 1;
        self.files += files.len();
        let applied = files.iter().filter_map(|file| file.answer(trust));
        let (mut done, mut agreed) = (0, 0);
        for answer in applied {
            done += 1;
            agreed += usize::from(answer.agreed());
        }
        self.files_resolved += done;
        self.files_agreed += agreed;
        if done == files.len() && !files.is_empty() {
            self.merges_resolved += 1;
            self.merges_agreed += usize::from(agreed == done);
        }
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            merges: self.merges + other.merges,
            merges_resolved: self.merges_resolved + other.merges_resolved,
            merges_agreed: self.merges_agreed + other.merges_agreed,
            files: self.files + other.files,
            files_resolved: self.files_resolved + other.files_resolved,
            files_agreed: self.files_agreed + other.files_agreed,
        }
    }
}
