//! Recall and precision of finding the changes that upstream took, against history.
//!
//! A past merge of upstream is judged from the fork as it was before it. What became of each change is read off the merge that people
//! made: it was taken if the fork still has its lines and they are no longer the fork's own, and not taken if they still are.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{GitError, LineageRange, PastMerge, SealedRepo};
use merge::contract::LineId;
use merge::delta::change::{Ground, LineAssignment, assign};
use merge::delta::state::{ChangeState, StateEnds, judge_change, observe_states};
use merge::delta::{Delta, DeltaEnds, LineOrigin, observe_delta};
use model::id::Sha;

/// Added lines with words below which a change is not counted: nobody could tell.
const LEAST_LINES: usize = 4;

/// Past merges of a fork that are judged, spread over its history.
const MERGES: usize = 8;

/// Changes by what became of them and what was said of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Score {
    pub(crate) merges: usize,
    /// Changes that upstream took: all of them, called superseded, called likely superseded.
    pub(crate) taken: [usize; 3],
    /// Changes that stayed the fork's own, likewise.
    pub(crate) own: [usize; 3],
}

impl Score {
    pub(crate) fn add(&mut self, other: Self) {
        self.merges += other.merges;
        for (mine, its) in [(&mut self.taken, other.taken), (&mut self.own, other.own)] {
            mine.iter_mut().zip(its).for_each(|(sum, part)| *sum += part);
        }
    }

    pub(crate) fn recall(&self) -> Option<f64> {
        share(self.taken[1] + self.taken[2], self.taken[0])
    }

    /// Precision of what is called superseded, and of that with what is called likely.
    pub(crate) fn precisions(&self) -> [Option<f64>; 2] {
        let (sure, likely) = (self.taken[1], self.taken[1] + self.taken[2]);
        [share(sure, sure + self.own[1]), share(likely, likely + self.own[1] + self.own[2])]
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of changes are small")]
fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

/// Judges past merges of a fork, each from before it.
pub(crate) async fn score(
    repo: &SealedRepo,
    ends: &DeltaEnds,
    verbose: bool,
) -> Result<Score, GitError> {
    let range = LineageRange { tip: &ends.tip, siblings: &[], upstream: &ends.target };
    let merges = repo.past_merges(range, usize::MAX).await?;
    let step = merges.len().div_ceil(MERGES).max(1);
    let mut score = Score::default();
    for merge in merges.iter().rev().step_by(step) {
        // One that the clone cannot make again is left out.
        match score_merge(repo, merge, verbose).await {
            Ok(found) => score.add(found),
            Err(GitError::Failed { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(score)
}

async fn score_merge(
    repo: &SealedRepo,
    merge: &PastMerge,
    verbose: bool,
) -> Result<Score, GitError> {
    let mut score = Score::default();
    let ends = |tip: &Sha| DeltaEnds {
        tip: tip.clone(),
        target: merge.theirs.clone(),
        upstream: Vec::new(),
    };
    let Some(before) = observe_delta(repo, &ends(&merge.ours), &mut None, |_, _| {}).await? else {
        return Ok(score);
    };
    let Some(after) = observe_delta(repo, &ends(&merge.sha), &mut None, |_, _| {}).await? else {
        return Ok(score);
    };
    score.merges = 1;
    let assignment = assign(&before, &[]);
    let since = before.history.began().unwrap_or(&before.parted).clone();
    let ends = StateEnds { target: &merge.theirs, since: &since, merged: &[] };
    let facts = observe_states(repo, &before, &assignment, ends).await?;
    let written = written_lines(repo, &before, &assignment).await?;
    let own = own_lines(repo, &after).await?;
    let there = lines_at(repo, &merge.sha, &before).await?;
    for (number, change) in assignment.changes.iter().enumerate() {
        let Some(lines) = written.get(&number).filter(|_| change.ground == Ground::Commit) else {
            continue;
        };
        let count = lines.len();
        let held = lines.iter().filter(|line| there.contains(line)).count();
        let still_own = lines.iter().filter(|line| own.contains(line)).count();
        if count < LEAST_LINES {
            continue;
        }
        let said = match judge_change(&facts[number]).state {
            ChangeState::Superseded => 1,
            ChangeState::LikelySuperseded => 2,
            ChangeState::Gone | ChangeState::Changed | ChangeState::Whole => 0,
        };
        let fate = if still_own * 5 <= count && held * 5 >= count * 4 {
            Some(&mut score.taken)
        } else if still_own * 2 >= count {
            Some(&mut score.own)
        } else {
            None
        };
        if let Some(fate) = fate {
            fate[0] += 1;
            if said > 0 {
                fate[said] += 1;
            }
            let is_taken = still_own * 5 <= count;
            if verbose && is_taken != (said > 0) {
                let word =
                    if is_taken { "taken and not found" } else { "own and called superseded" };
                println!("  {word} ({said}) at {}: {}", merge.sha.short(), change.name);
            }
        }
    }
    Ok(score)
}

type PathLine = (Vec<u8>, LineId);

/// The telling lines that each change adds, by path.
async fn written_lines(
    repo: &SealedRepo,
    delta: &Delta,
    assignment: &LineAssignment,
) -> Result<BTreeMap<usize, BTreeSet<PathLine>>, GitError> {
    let mut found: BTreeMap<usize, BTreeSet<PathLine>> = BTreeMap::new();
    for (number, path, origin, line) in added_lines(repo, delta).await? {
        if let Some(change) = assignment.change_of(number, origin) {
            found.entry(change).or_default().insert((path, line));
        }
    }
    Ok(found)
}

/// The telling lines that are the fork's own.
async fn own_lines(repo: &SealedRepo, delta: &Delta) -> Result<BTreeSet<PathLine>, GitError> {
    let lines = added_lines(repo, delta).await?;
    Ok(lines.into_iter().map(|(_, path, _, line)| (path, line)).collect())
}

/// The lines that the fork adds: number of the file, path, origin and words.
async fn added_lines(
    repo: &SealedRepo,
    delta: &Delta,
) -> Result<Vec<(usize, Vec<u8>, LineOrigin, LineId)>, GitError> {
    let ids = delta.files.iter().filter_map(|file| Some(file.new.as_ref()?.id.clone())).collect();
    let texts: BTreeMap<Sha, Vec<u8>> =
        repo.read_small_blobs(ids, 4 << 20).await?.into_iter().collect();
    let mut found = Vec::new();
    for (number, file) in delta.files.iter().enumerate() {
        let merge::delta::FileContent::Text(hunks) = &file.content else { continue };
        let Some(text) = file.new.as_ref().and_then(|entry| texts.get(&entry.id)) else { continue };
        let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        for hunk in hunks {
            for (at, origin) in hunk.after.clone().zip(&hunk.added) {
                if let Some(id) = LineId::of(lines[at]) {
                    found.push((number, file.path.as_bytes().to_vec(), *origin, id));
                }
            }
        }
    }
    Ok(found)
}

/// The telling lines of a commit at the paths of a delta.
async fn lines_at(
    repo: &SealedRepo,
    commit: &Sha,
    delta: &Delta,
) -> Result<BTreeSet<PathLine>, GitError> {
    let paths: Vec<&[u8]> = delta.files.iter().map(|file| file.path.as_bytes()).collect();
    let entries = repo.entries_at(commit, &paths).await?;
    let ids = entries.values().map(|entry| entry.id.clone()).collect();
    let texts: BTreeMap<Sha, Vec<u8>> =
        repo.read_small_blobs(ids, 4 << 20).await?.into_iter().collect();
    let mut found = BTreeSet::new();
    for (path, entry) in entries {
        let Some(text) = texts.get(&entry.id) else { continue };
        let lines = text.split(|&byte| byte == b'\n').filter_map(LineId::of);
        found.extend(lines.map(|line| (path.clone(), line)));
    }
    Ok(found)
}
