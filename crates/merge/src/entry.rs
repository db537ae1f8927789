//! Entries of trees on both ends of a change, and the contents of many of them. The lists of changes that a merge is judged
//! by are observed once and handed to all judges.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{ChangedEntry, GitError, SealedRepo, TreeEntry};
use model::id::Sha;
use tokio::sync::OnceCell;

use crate::contract::ContractEnds;

const MODE_KIND: u32 = 0o170_000;
const MODE_FILE: u32 = 0o100_000;

/// A result and the changes that it is judged by. The first judge that needs the lists asks git for them.
#[derive(Debug)]
pub struct MergeChanges<'a> {
    pub(crate) repo: &'a SealedRepo,
    pub(crate) ends: &'a ContractEnds,
    lists: OnceCell<ChangeLists>,
}

#[derive(Debug)]
pub(crate) struct ChangeLists {
    /// From the merge base to the fork.
    pub(crate) fork: ByPath,
    /// From the merge base to upstream.
    pub(crate) upstream: ByPath,
    /// From the fork to the result.
    pub(crate) result: ByPath,
}

impl<'a> MergeChanges<'a> {
    pub fn new(repo: &'a SealedRepo, ends: &'a ContractEnds) -> Self {
        Self { repo, ends, lists: OnceCell::new() }
    }

    pub(crate) async fn lists(&self) -> Result<&ChangeLists, GitError> {
        self.lists.get_or_try_init(|| self.observe()).await
    }

    async fn observe(&self) -> Result<ChangeLists, GitError> {
        let ContractEnds { merge_base, base, upstream, tip } = self.ends;
        // Git answers independent questions side by side.
        let (fork, upstream, result) = tokio::try_join!(
            self.repo.changed_entries(merge_base, base),
            self.repo.changed_entries(merge_base, upstream),
            self.repo.changed_entries(base, tip)
        )?;
        let [fork, upstream, result] = [fork, upstream, result].map(by_path);
        Ok(ChangeLists { fork, upstream, result })
    }
}

/// Changes by their paths.
pub(crate) type ByPath = BTreeMap<Vec<u8>, ChangedEntry>;

pub(crate) fn by_path(entries: Vec<ChangedEntry>) -> ByPath {
    entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect()
}

pub(crate) fn old_entry(change: &ChangedEntry) -> Option<TreeEntry> {
    change.old.clone().map(|id| TreeEntry { mode: change.old_mode, id })
}

pub(crate) fn new_entry(change: &ChangedEntry) -> Option<TreeEntry> {
    change.new.clone().map(|id| TreeEntry { mode: change.new_mode, id })
}

/// The type of an entry, without its permissions.
pub(crate) fn kind(entry: &TreeEntry) -> u32 {
    entry.mode & MODE_KIND
}

pub(crate) fn is_file(entry: &TreeEntry) -> bool {
    kind(entry) == MODE_FILE
}

/// Reads blobs of at most `cap` bytes; larger ones are left out.
pub(crate) async fn read_small(
    repo: &SealedRepo,
    ids: BTreeSet<&Sha>,
    cap: usize,
) -> Result<BTreeMap<Sha, Vec<u8>>, GitError> {
    let ids: Vec<Sha> = ids.into_iter().cloned().collect();
    Ok(repo.read_small_blobs(ids, cap).await?.into_iter().collect())
}
