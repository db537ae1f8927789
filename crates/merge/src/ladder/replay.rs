//! The past, merge by merge: each is tried as if it were new, compared with what people committed, then learned from.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use host::git::{GitError, PastMerge, SealedRepo};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::decide::{Trust, agrees, decide};
use super::dispute::{Dispute, FILE_CAP, list_disputes, read_contents};
use super::knowledge::{Knowledge, Settled};
use super::people::People;
use super::table::Table;
use super::weigh::Scales;

/// A merge with more conflicts teaches nothing that fewer would not, and takes minutes.
pub const CONFLICTS_CAP: usize = 80;

/// What a past merge looked like before and after people.
#[derive(Clone, Debug, PartialEq)]
pub struct PastFacts {
    /// The conflicts and what people did about them.
    pub disputes: Vec<(Dispute, People)>,
    /// How many conflicts there were; with more than [`CONFLICTS_CAP`], none of them was looked at.
    pub conflicts: usize,
    /// Whether people left it at one side, without even what git could merge; then none of them was looked at either.
    pub is_one_sided: bool,
    /// How long git took for the merge itself.
    pub merge_time: Duration,
    /// How long it took to read the conflicts.
    pub read_time: Duration,
}

/// Merges again what people merged, and reads what they made of it.
pub async fn observe_past(repo: &SealedRepo, merge: &PastMerge) -> Result<PastFacts, GitError> {
    let started = Instant::now();
    let merged = repo.merge_tree(&merge.ours, &merge.theirs).await?;
    let merge_time = started.elapsed();
    let mut disputes = list_disputes(&merged);
    let conflicts = disputes.len();
    let is_one_sided = conflicts > 0 && is_one_sided(repo, merge, &merged.tree, &disputes).await?;
    if conflicts > CONFLICTS_CAP || conflicts == 0 || is_one_sided {
        let (disputes, read_time) = (Vec::new(), Duration::ZERO);
        return Ok(PastFacts { disputes, conflicts, is_one_sided, merge_time, read_time });
    }
    let started = Instant::now();
    let mut read = 0;
    while read < disputes.len() {
        read += read_contents(repo, &mut disputes[read..]).await?;
    }
    let read_time = started.elapsed();
    let disputes = with_people(repo, &merge.sha, disputes).await?;
    Ok(PastFacts { disputes, conflicts, is_one_sided, merge_time, read_time })
}

/// Whether the result is one of the sides although git could merge something that is not in it.
async fn is_one_sided(
    repo: &SealedRepo,
    merge: &PastMerge,
    merged: &Sha,
    disputes: &[Dispute],
) -> Result<bool, GitError> {
    let commits = [&merge.sha, &merge.ours, &merge.theirs].map(Sha::clone);
    let trees = repo.trees_of(&commits).await?;
    let [result @ Some(_), ours, theirs] = trees.as_slice() else { return Ok(false) };
    let Some(side) =
        [ours, theirs].into_iter().find(|side| *side == result).and_then(Option::as_ref)
    else {
        return Ok(false);
    };
    let disputed: BTreeSet<&[u8]> =
        disputes.iter().map(|dispute| dispute.path.as_bytes()).collect();
    let changed = repo.changed_entries(side, merged).await?;
    Ok(changed.iter().any(|entry| !disputed.contains(entry.path.as_slice())))
}

async fn with_people(
    repo: &SealedRepo,
    merge: &Sha,
    disputes: Vec<Dispute>,
) -> Result<Vec<(Dispute, People)>, GitError> {
    let paths: Vec<&[u8]> = disputes.iter().map(|dispute| dispute.path.as_bytes()).collect();
    let entries = repo.entries_at(merge, &paths).await?;
    let ids: Vec<Sha> = entries.values().map(|entry| entry.id.clone()).collect();
    let blobs = repo.read_blobs(&ids, FILE_CAP).await?;
    let is_whole = |blob: &host::git::Blob| blob.size <= FILE_CAP as u64;
    let contents: BTreeMap<Sha, Vec<u8>> = ids
        .into_iter()
        .zip(blobs)
        .filter_map(|(id, blob)| Some((id, blob.filter(is_whole)?.bytes)))
        .collect();
    let settle = |dispute: Dispute| {
        let entry = entries.get(dispute.path.as_bytes());
        let bytes = entry.and_then(|entry| contents.get(&entry.id).cloned());
        let people = People::of(&dispute, entry, bytes);
        (dispute, people)
    };
    Ok(disputes.into_iter().map(settle).collect())
}

/// Weighs a past merge with what was known before it, and learns from it.
pub fn relive(
    table: &Table,
    knowledge: &mut Knowledge,
    merge: &Sha,
    disputes: Vec<(Dispute, People)>,
) -> Vec<Settled> {
    let conflicts = disputes.len();
    let scales = Scales { table, knowledge, conflicts };
    let weigh = |(dispute, people): (Dispute, People)| {
        let weighed = scales.weigh(&dispute);
        Settled { dispute, people, weighed }
    };
    let settled: Vec<Settled> = disputes.into_iter().map(weigh).collect();
    if !settled.is_empty() {
        knowledge.learn(table, merge, &settled);
    }
    settled
}

/// What came of trying past merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Score {
    /// Merges that had conflicts.
    pub merges: usize,
    /// Those of which every conflict was settled.
    pub merges_settled: usize,
    /// Those that were settled as people did it.
    pub merges_agreed: usize,
    /// Files that had conflicts.
    pub files: usize,
    /// Those that were settled.
    pub files_settled: usize,
    /// Those that were settled as people did it.
    pub files_agreed: usize,
}

impl Score {
    /// Adds a merge.
    pub fn add(&mut self, settled: &[Settled], trust: Trust) {
        self.merges += 1;
        self.files += settled.len();
        let (mut done, mut agreed) = (0, 0);
        for Settled { dispute, people, weighed } in settled {
            let Ok(decision) = decide(dispute, weighed, trust) else { continue };
            done += 1;
            agreed += usize::from(agrees(dispute, weighed, people, &decision.outcome));
        }
        self.files_settled += done;
        self.files_agreed += agreed;
        if done == settled.len() && !settled.is_empty() {
            self.merges_settled += 1;
            self.merges_agreed += usize::from(agreed == done);
        }
    }

    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            merges: self.merges + other.merges,
            merges_settled: self.merges_settled + other.merges_settled,
            merges_agreed: self.merges_agreed + other.merges_agreed,
            files: self.files + other.files,
            files_settled: self.files_settled + other.files_settled,
            files_agreed: self.files_agreed + other.files_agreed,
        }
    }
}
