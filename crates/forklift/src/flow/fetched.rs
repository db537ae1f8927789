//! Branches that the remotes of a fork had when they were fetched last, for commands that fetch nothing.
//!
//! The refs of a checkout do not tell: those of a branch that its remote has no longer stay, and trains fetch into a
//! repository of their own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host::git::{RemoteHeads, UserRepo};
use model::id::{BranchName, RemoteName, Sha};
use serde::{Deserialize, Serialize};

use super::observe::fork_key;
use crate::exit::{Failure, OrExit};

/// Branches of both remotes, as a fetch found them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ForkHeads {
    pub(crate) origin: Arc<RemoteHeads>,
    pub(crate) upstream: Arc<RemoteHeads>,
}

/// Record of the last fetch of each remote of a fork.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FetchedRefs {
    remotes: BTreeMap<String, FetchedRemote>,
}

/// A remote when it was fetched last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FetchedRemote {
    branches: BTreeMap<BranchName, Sha>,
    /// Refs of the checkout that said otherwise after that fetch.
    other_in_checkout: BTreeMap<BranchName, Sha>,
}

/// A branch of a remote by what is known without a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KnownTip {
    At(Sha),
    /// The remote did not have it when it was fetched last.
    Gone,
    NeverFetched,
}

impl FetchedRefs {
    /// Loads the record; without one that can be read, nothing is known.
    pub(crate) fn load(checkout: &UserRepo, cache: &Path) -> Self {
        let read = std::fs::read(path(checkout, cache)).ok();
        read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Records what a fetch found. The caller holds the lock of the fetch.
    pub(crate) async fn save(
        checkout: &UserRepo,
        cache: &Path,
        found: &[(&RemoteName, &RemoteHeads)],
    ) -> Result<(), Failure> {
        let mut record = Self::load(checkout, cache);
        for (remote, heads) in found {
            let refs = checkout.remote_branches(remote).await.or_machine()?;
            let other = refs.into_iter().filter(|(name, at)| heads.branches.get(name) != Some(at));
            let fetched = FetchedRemote {
                branches: heads.branches.clone(),
                other_in_checkout: other.collect(),
            };
            record.remotes.insert(remote.to_string(), fetched);
        }
        record.write(checkout, cache)
    }

    /// Records that a branch was pushed, until the next fetch finds what became of it.
    pub(crate) fn add_pushed(
        checkout: &UserRepo,
        cache: &Path,
        remote: &RemoteName,
        (branch, commit): (&BranchName, &Sha),
    ) -> Result<(), Failure> {
        let mut record = Self::load(checkout, cache);
        let Some(fetched) = record.remotes.get_mut(remote.as_str()) else { return Ok(()) };
        fetched.branches.insert(branch.clone(), commit.clone());
        record.write(checkout, cache)
    }

    fn write(&self, checkout: &UserRepo, cache: &Path) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(self).or_machine()?;
        host::file::write_atomic(&path(checkout, cache), &bytes, 0o600).or_machine()
    }

    pub(crate) fn remote(&self, remote: &RemoteName) -> Option<&FetchedRemote> {
        self.remotes.get(remote.as_str())
    }
}

impl FetchedRemote {
    pub(crate) fn has(&self, branch: &BranchName) -> bool {
        self.branches.contains_key(branch)
    }

    /// The branch, by the record and by the ref that the checkout has now. A ref that has changed since was fetched or pushed by
    /// the user, and is newer.
    pub(crate) fn tip(&self, branch: &BranchName, in_checkout: Option<Sha>) -> KnownTip {
        let fetched = self.branches.get(branch);
        let before = self.other_in_checkout.get(branch).or(fetched);
        match (in_checkout, fetched) {
            (Some(now), _) if Some(&now) != before => KnownTip::At(now),
            (_, Some(at)) => KnownTip::At(at.clone()),
            (Some(_), None) => KnownTip::Gone,
            (None, None) => KnownTip::Gone,
        }
    }
}

fn path(checkout: &UserRepo, cache: &Path) -> PathBuf {
    cache.join("forks").join(format!("{}.fetched.json", fork_key(checkout)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sha(digit: char) -> Sha {
        Sha::parse(&digit.to_string().repeat(40)).expect("an id")
    }

    #[test]
    fn a_ref_of_the_checkout_counts_only_if_it_changed_after_the_fetch() {
        let branch = |name| BranchName::parse(name).expect("a name");
        let fetched = FetchedRemote {
            branches: BTreeMap::from([(branch("main"), sha('b')), (branch("dev"), sha('d'))]),
            other_in_checkout: BTreeMap::from([
                (branch("main"), sha('a')),
                (branch("old"), sha('e')),
            ]),
        };
        for (name, now, expected) in [
            // A train fetched past the checkout.
            ("main", Some('a'), KnownTip::At(sha('b'))),
            ("main", None, KnownTip::At(sha('b'))),
            // The user fetched since.
            ("main", Some('c'), KnownTip::At(sha('c'))),
            ("dev", Some('d'), KnownTip::At(sha('d'))),
            ("old", Some('e'), KnownTip::Gone),
            ("old", Some('f'), KnownTip::At(sha('f'))),
            ("new", None, KnownTip::Gone),
            ("new", Some('a'), KnownTip::At(sha('a'))),
        ] {
            assert_eq!(fetched.tip(&branch(name), now.map(sha)), expected, "{name} {now:?}");
        }
    }
}
