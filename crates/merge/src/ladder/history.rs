//! A fork's whole past: learned once, kept by whoever asks, and brought up to date when new merges have come.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use host::git::{GitError, PastMerge, SealedRepo};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::decide::Trust;
use super::grade::Rung;
use super::knowledge::{Knowledge, Settled};
use super::replay::{CONFLICTS_CAP, Score, observe_past, relive};
use super::table::Table;

/// Older merges than so many are not looked at: people and code have changed since.
pub const MERGES_CAP: usize = 200;

/// What is known about a fork, and from which merges.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// What made it; another maker starts anew.
    maker: String,
    /// The merges that it was learned from, in that order.
    pub seen: Vec<Sha>,
    /// Merges that could not be looked at, and why.
    pub skipped: Vec<Skipped>,
    /// How many had conflicts and ended as one side was, without even what git could merge. Whoever ends a merge so
    /// decided about all of it at once, and nothing follows for single conflicts.
    pub one_sided: usize,
    /// What they teach.
    pub knowledge: Knowledge,
}

/// A merge that teaches nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The merge.
    pub merge: Sha,
    /// Why.
    pub why: String,
}

/// How a past merge went when it was tried again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The merge.
    pub merge: Sha,
    /// How many conflicts it had.
    pub conflicts: usize,
    /// How many of them would have been settled, and as people did it. None was looked at where there were too many.
    pub score: Score,
    /// How long git took.
    pub merge_ms: u64,
    /// How long the ladder took.
    pub ladder_ms: u64,
}

/// The ends of a fork's past.
#[derive(Clone, Copy, Debug)]
pub struct PastEnds<'a> {
    /// The commit that its people accepted: only merges that are reachable from it count.
    pub tip: &'a Sha,
    /// Upstream, as far as it is known.
    pub upstream: &'a Sha,
}

/// Learns from all merges that were not seen yet. What was kept is used if it comes from merges of this very past.
pub async fn learn(
    repo: &SealedRepo,
    ends: PastEnds<'_>,
    kept: Option<Learned>,
) -> Result<Learned, GitError> {
    let all = repo.past_merges(ends.tip, ends.upstream, usize::MAX).await?;
    let mut learned = kept.filter(|kept| kept.is_of(&all)).unwrap_or_else(Learned::fresh);
    let seen: BTreeSet<Sha> = learned.seen.iter().cloned().collect();
    let newest = all.len().saturating_sub(MERGES_CAP);
    for merge in all.iter().skip(newest).filter(|merge| !seen.contains(&merge.sha)) {
        learned.take(repo, merge, None).await?;
    }
    Ok(learned)
}

/// Tries the newest merges again, in order, with what was known before each.
pub async fn replay(
    repo: &SealedRepo,
    ends: PastEnds<'_>,
    trust: Trust,
    mut watch: impl FnMut(&Tried),
) -> Result<(Learned, Vec<Tried>), GitError> {
    let all = repo.past_merges(ends.tip, ends.upstream, MERGES_CAP).await?;
    let mut learned = Learned::fresh();
    let mut tried = Vec::new();
    for merge in &all {
        if let Some(one) = learned.take(repo, merge, Some(trust)).await? {
            watch(&one);
            tried.push(one);
        }
    }
    Ok((learned, tried))
}

impl Learned {
    fn fresh() -> Self {
        Self { maker: maker(), ..Self::default() }
    }

    /// What all the rest follows from: who learned, and from which merges.
    #[must_use]
    pub fn source(&self) -> (String, Vec<Sha>) {
        (self.maker.clone(), self.seen.clone())
    }

    /// Nothing that was taken back since may be known.
    fn is_of(&self, all: &[PastMerge]) -> bool {
        let reachable: BTreeSet<&Sha> = all.iter().map(|merge| &merge.sha).collect();
        self.maker == maker() && self.seen.iter().all(|merge| reachable.contains(merge))
    }

    /// Objects may be missing in somebody's clone. That costs a lesson, not the whole past.
    async fn take(
        &mut self,
        repo: &SealedRepo,
        merge: &PastMerge,
        trust: Option<Trust>,
    ) -> Result<Option<Tried>, GitError> {
        self.seen.push(merge.sha.clone());
        let facts = match observe_past(repo, merge).await {
            Ok(facts) => facts,
            Err(error @ (GitError::Cancelled { .. } | GitError::Start { .. })) => {
                return Err(error);
            }
            Err(error) => {
                let why = error.to_string();
                self.skipped.push(Skipped { merge: merge.sha.clone(), why });
                return Ok(None);
            }
        };
        if facts.is_one_sided {
            self.one_sided += 1;
            return Ok(None);
        }
        if facts.conflicts > CONFLICTS_CAP {
            let why = format!("{} conflicts are more than are looked at", facts.conflicts);
            self.skipped.push(Skipped { merge: merge.sha.clone(), why });
        }
        let started = Instant::now();
        let table = Table::shipped();
        let settled = relive(table, &mut self.knowledge, &merge.sha, facts.disputes);
        let ladder_time = facts.read_time + started.elapsed();
        Ok(Some(Tried {
            merge: merge.sha.clone(),
            conflicts: facts.conflicts,
            score: score_of(facts.conflicts, &settled, trust),
            merge_ms: millis(facts.merge_time),
            ladder_ms: millis(ladder_time),
        }))
    }
}

fn score_of(conflicts: usize, settled: &[Settled], trust: Option<Trust>) -> Score {
    let mut score = Score::default();
    if let Some(trust) = trust.filter(|_| conflicts > 0) {
        score.add(settled, trust);
    }
    score
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What is kept has this shape.
const SHAPE: u32 = 4;

/// Another table or another version of a rung may have answered differently.
fn maker() -> String {
    let rungs: Vec<String> = Rung::ALL.iter().map(ToString::to_string).collect();
    format!("shape/{SHAPE} {} table/{}", rungs.join(" "), Table::shipped().name())
}
