//! All merges of a fork: learned once, saved by the caller, updated when new merges are found.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use host::file::FileError;
use host::git::{GitError, LineageRange, PastMerge, SealedRepo};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::answer_class::ResolveStrategy;
use super::decide::TrustThreshold;
use super::knowledge::Knowledge;
use super::replay::{CONFLICTS_CAP, ReplayScore, observe_merge, replay_merge};
use super::replayed::{ReplayedFile, ReplayedMerge};
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
    /// Results of the newest merges, oldest first, each with the knowledge from before it.
    #[serde(default)]
    pub replayed: Vec<ReplayedMerge>,
    pub knowledge: Knowledge,
}

/// A merge that could not be learned from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    pub merge: Sha,
    pub why: String,
}

/// Learns from all merges that were not read yet. What was learned before is used if all its merges are reachable from the
/// range. `learned` holds what was learned so far, also if it is interrupted.
pub async fn learn(
    repo: &SealedRepo,
    range: LineageRange<'_>,
    learned: &mut Learned,
    watch: impl FnMut(MergesRead, &Learned),
) -> Result<(), GitError> {
    let all = repo.past_merges(range, usize::MAX).await?;
    learn_from(repo, &all, learned, watch).await
}

/// Learns from all merges of branches into a line of history, such as those of pull requests, that were not read yet.
pub async fn learn_branches(
    repo: &SealedRepo,
    tip: &Sha,
    learned: &mut Learned,
) -> Result<(), GitError> {
    let all = repo.branch_merges(tip).await?;
    learn_from(repo, &all, learned, |_, _| {}).await
}

async fn learn_from(
    repo: &SealedRepo,
    all: &[PastMerge],
    learned: &mut Learned,
    mut watch: impl FnMut(MergesRead, &Learned),
) -> Result<(), GitError> {
    if !learned.is_of(all) {
        *learned = Learned::fresh();
    }
    let seen: BTreeSet<Sha> = learned.seen.iter().cloned().collect();
    let newest = all.len().saturating_sub(MERGES_CAP);
    let new = |merge: &&PastMerge| !seen.contains(&merge.sha);
    let new: Vec<&PastMerge> = all.iter().skip(newest).filter(new).collect();
    for (read, merge) in new.iter().enumerate() {
        watch(MergesRead { read, of: new.len() }, learned);
        learned.take(repo, merge).await?;
    }
    Ok(())
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
        learned.take(repo, merge).await?;
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

    /// Conflicts that would have been resolved at a threshold, each with the knowledge from before it.
    pub fn past(&self, trust: TrustThreshold) -> ReplayScore {
        self.replayed.iter().fold(ReplayScore::default(), |sum, one| sum.plus(one.score(trust)))
    }

    /// Learns from one merge. A merge with missing objects (a partial clone) is skipped.
    async fn take(&mut self, repo: &SealedRepo, merge: &PastMerge) -> Result<(), GitError> {
        let observed = observe_merge(repo, merge).await;
        if let Err(error @ (GitError::Cancelled { .. } | GitError::Start { .. })) = observed {
            return Err(error);
        }
        self.seen.push(merge.sha.clone());
        let facts = match observed {
            Ok(facts) => facts,
            Err(error) => {
                let why = error.reason();
                self.skipped.push(Skipped { merge: merge.sha.clone(), why });
                return Ok(());
            }
        };
        if facts.is_one_sided {
            self.one_sided += 1;
            return Ok(());
        }
        if facts.conflict_count > CONFLICTS_CAP {
            let why = format!("{} conflicts are too many to replay", facts.conflict_count);
            self.skipped.push(Skipped { merge: merge.sha.clone(), why });
        }
        let started = Instant::now();
        let table = Table::shipped();
        let replayed = replay_merge(table, &mut self.knowledge, &merge.sha, facts.conflicts);
        let resolver_time = facts.read_time + started.elapsed();
        self.replayed.push(ReplayedMerge {
            merge: merge.sha.clone(),
            conflicts: facts.conflict_count,
            files: replayed.iter().map(ReplayedFile::of).collect(),
            merge_ms: millis(facts.merge_time),
            resolver_ms: millis(resolver_time),
        });
        let old = self.replayed.len().saturating_sub(MERGES_CAP);
        self.replayed.drain(..old);
        Ok(())
    }
}

/// Loads what was learned. A file that cannot be read is discarded: everything is learned again.
pub fn load_learned(file: &Path) -> Option<Learned> {
    std::fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok())
}

/// Saves what was learned, for the next merge.
pub fn save_learned(file: &Path, learned: &Learned) -> Result<(), FileError> {
    if let Some(folder) = file.parent() {
        // The write says what is wrong with the folder.
        std::fs::create_dir_all(folder).ok();
    }
    let text = serde_json::to_vec(learned).unwrap_or_default();
    host::file::write_atomic(file, &text, 0o600)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

const SHAPE: u32 = 7;

/// Identifies strategies and table: other versions may answer differently.
fn maker() -> String {
    let strategies: Vec<String> = ResolveStrategy::ALL.iter().map(ToString::to_string).collect();
    format!("shape/{SHAPE} {} table/{}", strategies.join(" "), Table::shipped().name())
}
