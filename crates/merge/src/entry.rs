//! Entries of trees on both ends of a change, and the contents of many of them. The lists of changes that a merge is judged
//! by are observed once and handed to all judges.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{ChangedEntry, GitError, MergedTree, SealedRepo, TreeEntry};
use model::id::Sha;
use tokio::sync::OnceCell;

use crate::clean::{Conflict, conflicts_of};
use crate::contract::ContractEnds;

const MODE_KIND: u32 = 0o170_000;
const MODE_FILE: u32 = 0o100_000;

/// A result and the changes that it is judged by. The first judge that needs the lists asks git for them.
#[derive(Debug)]
pub struct MergeChanges<'a> {
    pub(crate) repo: &'a SealedRepo,
    pub(crate) ends: &'a ContractEnds,
    lists: OnceCell<ChangeLists>,
    by_git: OnceCell<MergeByGit>,
    gone_folders: OnceCell<GoneFolders>,
}

/// Folders that the fork deleted as a whole and that upstream adds files to.
#[derive(Debug, Default)]
pub(crate) struct GoneFolders(BTreeSet<Vec<u8>>);

impl GoneFolders {
    /// The outermost such folder that a path is in.
    pub(crate) fn of<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        folders_of(path).find(|folder| self.0.contains(*folder))
    }
}

/// Folders that a path is in, the outermost first.
fn folders_of(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at])
}

/// Git's own merge of both sides, and where the result departs from it.
#[derive(Debug)]
pub(crate) struct MergeByGit {
    pub(crate) merged: MergedTree,
    pub(crate) conflicts: Vec<Conflict>,
    /// Paths that git could not merge, with the other paths of the same conflicts.
    pub(crate) in_conflict: BTreeSet<Vec<u8>>,
    /// From git's merge to the result.
    pub(crate) departed: ByPath,
}

impl MergeByGit {
    /// Returns whether the result has at a path what git makes of both sides.
    pub(crate) fn is_followed_at(&self, path: &[u8]) -> bool {
        !self.departed.contains_key(path) && !self.in_conflict.contains(path)
    }
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
        Self {
            repo,
            ends,
            lists: OnceCell::new(),
            by_git: OnceCell::new(),
            gone_folders: OnceCell::new(),
        }
    }

    pub(crate) async fn gone_folders(&self) -> Result<&GoneFolders, GitError> {
        self.gone_folders.get_or_try_init(|| self.find_gone_folders()).await
    }

    async fn find_gone_folders(&self) -> Result<GoneFolders, GitError> {
        let ChangeLists { fork, upstream, .. } = self.lists().await?;
        let added = upstream.values().filter(|change| change.old.is_none());
        let added: BTreeSet<&[u8]> = added.flat_map(|change| folders_of(&change.path)).collect();
        let deleted = fork.values().filter(|change| change.new.is_none());
        let emptied: BTreeSet<&[u8]> = deleted
            .flat_map(|change| folders_of(&change.path))
            .filter(|folder| added.contains(folder))
            .collect();
        if emptied.is_empty() {
            return Ok(GoneFolders::default());
        }
        let asked: Vec<&[u8]> = emptied.into_iter().collect();
        let there = self.repo.entries_at(&self.ends.base, &asked).await?;
        let gone = asked.into_iter().filter(|folder| !there.contains_key(*folder));
        Ok(GoneFolders(gone.map(<[u8]>::to_vec).collect()))
    }

    pub(crate) async fn by_git(&self) -> Result<&MergeByGit, GitError> {
        self.by_git.get_or_try_init(|| self.merge()).await
    }

    async fn merge(&self) -> Result<MergeByGit, GitError> {
        let ContractEnds { base, upstream, tip, .. } = self.ends;
        let merged = self.repo.merge_tree(base, upstream).await?;
        let departed = by_path(self.repo.changed_entries(&merged.tree, tip).await?);
        let conflicts = conflicts_of(&merged);
        let mut in_conflict: BTreeSet<Vec<u8>> =
            merged.stages.iter().map(|stage| stage.path.clone()).collect();
        for conflict in &conflicts {
            let paths = std::iter::once(&conflict.path).chain(&conflict.also);
            in_conflict.extend(paths.map(|path| path.as_bytes().to_vec()));
        }
        Ok(MergeByGit { merged, conflicts, in_conflict, departed })
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

impl ChangeLists {
    /// Returns whether the result is upstream's tree: at each path that any of them changed, both have the same.
    pub(crate) fn is_upstreams_tree(&self) -> bool {
        let Self { fork, upstream, result } = self;
        let paths: BTreeSet<&Vec<u8>> =
            fork.keys().chain(upstream.keys()).chain(result.keys()).collect();
        paths.into_iter().all(|path| {
            let changes = [fork.get(path), upstream.get(path), result.get(path)];
            let first = changes.iter().flatten().next();
            let ancestor = || first.and_then(|change| old_entry(change));
            let [of_fork, of_upstream, of_result] = changes;
            let in_fork = || of_fork.map_or_else(ancestor, new_entry);
            of_result.map_or_else(in_fork, new_entry)
                == of_upstream.map_or_else(ancestor, new_entry)
        })
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
