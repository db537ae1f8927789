//! Conflict heat: how often the past merges of upstream conflicted, by path.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{GitError, PastMerge, SealedRepo};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::Delta;
use super::change::NamedChange;

/// Merges that are made in one process of git.
const AT_ONCE: usize = 20;

/// Conflicts of past merges, by merge. What is known is kept by the caller: a merge never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heat {
    /// The paths in conflict of each merge, as text.
    merges: BTreeMap<Sha, BTreeSet<String>>,
}

impl Heat {
    /// Adds the merges that are not known yet. One that git cannot make again is left out. `watch` gets the numbers of merges that
    /// are done and of all.
    pub async fn add(
        &mut self,
        repo: &SealedRepo,
        merges: &[PastMerge],
        mut watch: impl FnMut(usize, usize),
    ) -> Result<(), GitError> {
        let asked: BTreeSet<&Sha> = merges.iter().map(|merge| &merge.sha).collect();
        self.merges.retain(|merge, _| asked.contains(merge));
        let open: Vec<&PastMerge> =
            merges.iter().filter(|merge| !self.merges.contains_key(&merge.sha)).collect();
        for (number, chunk) in open.chunks(AT_ONCE).enumerate() {
            watch(number * AT_ONCE, open.len());
            if self.add_some(repo, chunk).await.is_err() {
                for merge in chunk {
                    match self.add_some(repo, std::slice::from_ref(merge)).await {
                        Ok(()) | Err(GitError::Failed { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Ok(())
    }

    async fn add_some(&mut self, repo: &SealedRepo, merges: &[&PastMerge]) -> Result<(), GitError> {
        let pairs: Vec<(Sha, Sha)> =
            merges.iter().map(|merge| (merge.ours.clone(), merge.theirs.clone())).collect();
        let conflicts = repo.conflicting_paths(&pairs).await?;
        for (merge, paths) in merges.iter().zip(conflicts) {
            let paths = paths.iter().map(|path| String::from_utf8_lossy(path).into_owned());
            self.merges.insert(merge.sha.clone(), paths.collect());
        }
        Ok(())
    }

    /// Number of merges that were made again.
    pub fn merges(&self) -> usize {
        self.merges.len()
    }

    /// Number of merges that conflicted at each path, the most first.
    pub fn by_path(&self) -> Vec<(&str, usize)> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for path in self.merges.values().flatten() {
            *counts.entry(path).or_default() += 1;
        }
        let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
        counts.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        counts
    }

    /// Number of merges that conflicted in a file in which the change has something today. The conflict may have been about
    /// another change of the same file.
    pub fn of_change(&self, delta: &Delta, change: &NamedChange) -> usize {
        let files = change.files.keys().map(|&number| &delta.files[number]);
        let names = files.flat_map(|file| [Some(&file.path), file.was.as_ref()]).flatten();
        let names: BTreeSet<_> =
            names.map(|path| String::from_utf8_lossy(path.as_bytes())).collect();
        let is_hot =
            |paths: &&BTreeSet<String>| names.iter().any(|name| paths.contains(name.as_ref()));
        self.merges.values().filter(is_hot).count()
    }
}
