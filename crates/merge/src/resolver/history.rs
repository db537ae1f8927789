//! All merges of a fork: learned once, saved by the caller, updated when new merges are found.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use host::git::{GitError, LineageRange, PastMerge, SealedRepo};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::answer_class::ResolveStrategy;
use super::decide::TrustThreshold;
use super::knowledge::Knowledge;
use super::replay::{CONFLICTS_CAP, ReplayScore, observe_merge, replay_merge};
use super::table::Table;

/// Most merges that are read, newest first. Older ones say little: people and code have changed since.
pub const MERGES_CAP: usize = 200;

/// Knowledge about a fork and the merges it comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Versions of strategies and table. Knowledge of another maker is discarded.
    maker: String,
    /// Merges that were read, in order.
    pub seen: Vec<Sha>,
    /// Those of them that [`teach`] was given. They count wherever they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    taught: Vec<Sha>,
    /// Merges that could not be read.
    pub skipped: Vec<Skipped>,
    /// Merges whose result is one side, without even the changes that git could merge. Such a merge decides about all
    /// conflicts at once, so nothing is learned from it.
    pub one_sided: usize,
    /// Conflicts that would have been resolved at the usual threshold, each with the knowledge from before it.
    #[serde(default)]
    pub past: ReplayScore,
    pub knowledge: Knowledge,
}

/// A merge that could not be learned from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    pub merge: Sha,
    pub why: String,
}

/// Result of replaying a past merge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayedMerge {
    pub merge: Sha,
    pub conflicts: usize,
    /// Conflicts that the resolver would have resolved, and those that it would have resolved as people did. Zero if the
    /// merge has too many conflicts to replay.
    pub score: ReplayScore,
    pub merge_ms: u64,
    #[serde(alias = "ladder_ms")]
    pub resolver_ms: u64,
}

/// Learns from all merges that were not read yet. `kept` is used if all its merges are reachable from the range.
pub async fn learn(
    repo: &SealedRepo,
    range: LineageRange<'_>,
    kept: Option<Learned>,
    mut watch: impl FnMut(MergesRead),
) -> Result<Learned, GitError> {
    let all = repo.past_merges(range, usize::MAX).await?;
    let mut learned = kept.filter(|kept| kept.is_of(&all)).unwrap_or_else(Learned::fresh);
    let seen: BTreeSet<Sha> = learned.seen.iter().cloned().collect();
    let newest = all.len().saturating_sub(MERGES_CAP);
    let new = |merge: &&PastMerge| !seen.contains(&merge.sha);
    let new: Vec<&PastMerge> = all.iter().skip(newest).filter(new).collect();
    for (read, merge) in new.iter().enumerate() {
        watch(MergesRead { read, of: new.len() });
        learned.take(repo, merge, None).await?;
    }
    Ok(learned)
}

/// Learns from one merge, wherever it is: a program that replays merges in order names each after it was scored.
pub async fn teach(
    repo: &SealedRepo,
    merge: &PastMerge,
    kept: Option<Learned>,
) -> Result<Learned, GitError> {
    let kept = kept.filter(|kept| kept.maker == maker());
    let mut learned = kept.unwrap_or_else(Learned::fresh);
    if !learned.seen.contains(&merge.sha) {
        learned.take(repo, merge, None).await?;
    }
    if !learned.taught.contains(&merge.sha) {
        learned.taught.push(merge.sha.clone());
    }
    Ok(learned)
}

/// Progress of reading past merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergesRead {
    pub read: usize,
    pub of: usize,
}

/// Replays the newest merges in order, each with the knowledge from before it.
pub async fn replay(
    repo: &SealedRepo,
    range: LineageRange<'_>,
    trust: TrustThreshold,
    mut watch: impl FnMut(MergesRead),
) -> Result<(Learned, Vec<ReplayedMerge>), GitError> {
    let all = repo.past_merges(range, MERGES_CAP).await?;
    let mut learned = Learned::fresh();
    let mut tried = Vec::new();
    for (read, merge) in all.iter().enumerate() {
        watch(MergesRead { read, of: all.len() });
        tried.extend(learned.take(repo, merge, Some(trust)).await?);
    }
    Ok((learned, tried))
}

impl Learned {
    fn fresh() -> Self {
        Self { maker: maker(), ..Self::default() }
    }

    /// Maker and merges, which determine everything else.
    pub fn source(&self) -> (String, Vec<Sha>) {
        (self.maker.clone(), self.seen.clone())
    }

    /// Returns whether all merges are still reachable: a merge that was undone must not count.
    fn is_of(&self, all: &[PastMerge]) -> bool {
        let reachable: BTreeSet<&Sha> = all.iter().map(|merge| &merge.sha).collect();
        let counts = |merge: &Sha| reachable.contains(merge) || self.taught.contains(merge);
        self.maker == maker() && self.seen.iter().all(counts)
    }

    /// Learns from one merge. A merge with missing objects (a partial clone) is skipped.
    async fn take(
        &mut self,
        repo: &SealedRepo,
        merge: &PastMerge,
        trust: Option<TrustThreshold>,
    ) -> Result<Option<ReplayedMerge>, GitError> {
        self.seen.push(merge.sha.clone());
        let facts = match observe_merge(repo, merge).await {
            Ok(facts) => facts,
            Err(error @ (GitError::Cancelled { .. } | GitError::Start { .. })) => {
                return Err(error);
            }
            Err(error) => {
                let why = error.reason();
                self.skipped.push(Skipped { merge: merge.sha.clone(), why });
                return Ok(None);
            }
        };
        if facts.is_one_sided {
            self.one_sided += 1;
            return Ok(None);
        }
        if facts.conflict_count > CONFLICTS_CAP {
            let why = format!("{} conflicts are too many to replay", facts.conflict_count);
            self.skipped.push(Skipped { merge: merge.sha.clone(), why });
        }
        let started = Instant::now();
        let table = Table::shipped();
        let replayed = replay_merge(table, &mut self.knowledge, &merge.sha, facts.conflicts);
        let resolver_time = facts.read_time + started.elapsed();
        if !replayed.is_empty() {
            self.past.add(&replayed, TrustThreshold::DEFAULT);
        }
        let mut score = ReplayScore::default();
        if let Some(trust) = trust.filter(|_| facts.conflict_count > 0) {
            score.add(&replayed, trust);
        }
        Ok(Some(ReplayedMerge {
            merge: merge.sha.clone(),
            conflicts: facts.conflict_count,
            score,
            merge_ms: millis(facts.merge_time),
            resolver_ms: millis(resolver_time),
        }))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

const SHAPE: u32 = 5;

/// Identifies strategies and table: other versions may answer differently.
fn maker() -> String {
    let strategies: Vec<String> = ResolveStrategy::ALL.iter().map(ToString::to_string).collect();
    format!("shape/{SHAPE} {} table/{}", strategies.join(" "), Table::shipped().name())
}
