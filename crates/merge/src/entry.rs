//! Entries of trees on both ends of a change, and the contents of many of them.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{ChangedEntry, GitError, SealedRepo, TreeEntry};
use model::id::Sha;

const MODE_KIND: u32 = 0o170_000;
const MODE_FILE: u32 = 0o100_000;

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
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sizes = repo.blob_sizes(&ids).await?;
    let fits = |size: Option<u64>| size.is_some_and(|size| size <= cap as u64);
    let small: Vec<Sha> =
        ids.into_iter().zip(sizes).filter(|(_, size)| fits(*size)).map(|(id, _)| id).collect();
    let blobs = repo.read_blobs(&small, cap).await?;
    Ok(small.into_iter().zip(blobs).filter_map(|(id, blob)| Some((id, blob?.bytes))).collect())
}
