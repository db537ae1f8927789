//! Gathers the facts of the contract, with a constant number of git calls.
//!
//! Lists of changed paths give the entries of each path in all four trees. Contents are read only where the result
//! differs from the fork, and patches only of commits that touch the same paths as a commit of the fork.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{ChangedEntry, CommitPatch, EntryStatus, GitError, Rename, SealedRepo, TreeEntry};
use model::id::Sha;

use super::{ContractFacts, ForkCommit, LineEvidence, LineId, PathFacts, Versions, count_lines};
use crate::entry::{ByPath, ChangeLists, MergeChanges, is_file, new_entry, old_entry, read_small};
use crate::generated::is_generated;
use crate::path::TreePath;
use crate::pattern::PathPatterns;
use crate::three::text::is_text;

/// The four commits of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractEnds {
    /// Merge base of fork and upstream: a commit, or the empty tree if their histories have nothing in common.
    pub merge_base: Sha,
    pub base: Sha,
    pub upstream: Sha,
    pub tip: Sha,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContractBounds {
    /// Largest file whose lines are counted, in bytes.
    pub file_bytes: usize,
    /// Most commits of the fork that get a status of their own.
    pub commits: usize,
    /// Most commits of upstream, and of the result, that are searched for the same change.
    pub twins: usize,
    /// Most bytes of patches that are read of either.
    pub patch_bytes: usize,
}

impl Default for ContractBounds {
    fn default() -> Self {
        Self { file_bytes: 2 << 20, commits: 2000, twins: 10_000, patch_bytes: 48 << 20 }
    }
}

/// Paths whose contents are in memory at once.
const CHUNK: usize = 500;

pub async fn observe_contract(
    changes: &MergeChanges<'_>,
    protected: &PathPatterns,
    bounds: ContractBounds,
) -> Result<ContractFacts, GitError> {
    // Git answers independent questions side by side.
    let (paths, (commits, commits_left_off)) = tokio::try_join!(
        observe_paths(changes, protected, bounds),
        observe_commits(changes.repo, changes.ends, bounds)
    )?;
    Ok(ContractFacts { commits, commits_left_off, paths, is_upstreams_tree: false })
}

async fn observe_paths(
    changes: &MergeChanges<'_>,
    protected: &PathPatterns,
    bounds: ContractBounds,
) -> Result<Vec<PathFacts>, GitError> {
    let repo = changes.repo;
    let renames = async { find_renames(repo, changes.ends, changes.lists().await?).await };
    let (by_git, changes) = tokio::try_join!(changes.by_git(), renames)?;
    let mut paths = changes.path_facts(protected);
    for path in &mut paths {
        let is_there = path.result.is_some() && path.moved_to.is_none();
        path.by_git = is_there && by_git.is_followed_at(path.path.as_bytes());
    }
    for chunk in paths.chunks_mut(CHUNK) {
        compare_lines(repo, chunk, bounds.file_bytes).await?;
    }
    Ok(paths)
}

type Moves = BTreeMap<Vec<u8>, Rename>;

/// Differences between the four trees.
struct Changes<'a> {
    fork: &'a ByPath,
    upstream: &'a ByPath,
    result: &'a ByPath,
    /// From the new name to the old one.
    fork_moves: BTreeMap<Vec<u8>, Vec<u8>>,
    upstream_moves: Moves,
    result_moves: Moves,
}

async fn find_renames<'a>(
    repo: &SealedRepo,
    ends: &ContractEnds,
    lists: &'a ChangeLists,
) -> Result<Changes<'a>, GitError> {
    let ContractEnds { merge_base, base, upstream: target, tip } = ends;
    let ChangeLists { fork, upstream, result } = lists;
    let (fork_moves, upstream_moves, result_moves) = tokio::try_join!(
        renames_among(repo, fork, merge_base, base),
        renames_among(repo, upstream, merge_base, target),
        renames_among(repo, result, base, tip)
    )?;
    let old_names = fork_moves.into_values().map(|rename| (rename.to, rename.from));
    let fork_moves = old_names.collect();
    Ok(Changes { fork, upstream, result, fork_moves, upstream_moves, result_moves })
}

async fn renames_among(
    repo: &SealedRepo,
    entries: &ByPath,
    from: &Sha,
    to: &Sha,
) -> Result<Moves, GitError> {
    let has = |status| entries.values().any(|entry| entry.status == status);
    let renames = if has(EntryStatus::Added) && has(EntryStatus::Deleted) {
        repo.renames(from, to).await?
    } else {
        Vec::new()
    };
    Ok(renames.into_iter().map(|rename| (rename.from.clone(), rename)).collect())
}

impl Changes<'_> {
    fn path_facts(&self, protected: &PathPatterns) -> Vec<PathFacts> {
        let changed = self.fork.values().map(|change| self.changed_path(change, protected));
        // A protected path need not be one that the fork ever changed.
        let guarded = self.result.values().filter(|change| {
            change.old.is_some()
                && !self.fork.contains_key(&change.path)
                && protected.matches(&change.path)
        });
        let mut paths: Vec<_> =
            changed.chain(guarded.map(|change| self.guarded_path(change))).collect();
        paths.sort_by(|one, other| one.path.cmp(&other.path));
        paths
    }

    fn changed_path(&self, change: &ChangedEntry, protected: &PathPatterns) -> PathFacts {
        let path = &change.path;
        let old_name = self.fork_moves.get(path).unwrap_or(path);
        let ancestor = match self.fork.get(old_name) {
            Some(origin) => old_entry(origin),
            None => old_entry(change),
        };
        let fork = new_entry(change);
        let (result, moved_to) = self.in_result(path, fork.as_ref());
        let moved_by_upstream = moved_to.as_ref().is_some_and(|name| {
            self.upstream_moves.get(old_name).is_some_and(|moved| moved.to == name.as_bytes())
        });
        PathFacts {
            path: TreePath::new(path.as_slice()),
            upstream: self.in_upstream(old_name, ancestor.as_ref()),
            ancestor,
            fork,
            result,
            moved_to,
            protected: protected.matches(path),
            moved_by_upstream,
            by_git: false,
            as_merged: false,
            given_away: None,
            yielded: false,
            is_taken: false,
            is_suspected: false,
            is_generated: false,
            lines: LineEvidence::NotNeeded,
        }
    }

    fn guarded_path(&self, change: &ChangedEntry) -> PathFacts {
        let fork = old_entry(change);
        PathFacts {
            path: TreePath::new(change.path.as_slice()),
            upstream: self.in_upstream(&change.path, fork.as_ref()),
            ancestor: fork.clone(),
            fork,
            result: new_entry(change),
            moved_to: None,
            protected: true,
            moved_by_upstream: false,
            by_git: false,
            as_merged: false,
            given_away: None,
            yielded: false,
            is_taken: false,
            is_suspected: false,
            is_generated: false,
            lines: LineEvidence::NotNeeded,
        }
    }

    fn in_upstream(&self, path: &[u8], ancestor: Option<&TreeEntry>) -> Option<TreeEntry> {
        match self.upstream.get(path) {
            None => ancestor.cloned(),
            Some(change) => {
                new_entry(change).or_else(|| self.upstream_moves.get(path).map(renamed_entry))
            }
        }
    }

    /// A deleted file that is back under upstream's new name is back as well.
    fn in_result(
        &self,
        path: &[u8],
        fork: Option<&TreeEntry>,
    ) -> (Option<TreeEntry>, Option<TreePath>) {
        let here = match self.result.get(path) {
            None => fork.cloned(),
            Some(change) => new_entry(change),
        };
        if here.is_some() {
            return (here, None);
        }
        let named = |name: &[u8]| Some(TreePath::new(name));
        if fork.is_some() {
            let moved = self.result_moves.get(path);
            return (moved.map(renamed_entry), moved.and_then(|moved| named(&moved.to)));
        }
        let moved = self.upstream_moves.get(path).and_then(|moved| self.result.get(&moved.to));
        match moved.and_then(|change| Some((new_entry(change)?, &change.path))) {
            Some((entry, name)) => (Some(entry), named(name)),
            None => (None, None),
        }
    }
}

fn renamed_entry(rename: &Rename) -> TreeEntry {
    TreeEntry { mode: rename.mode, id: rename.id.clone() }
}

/// Counts lines where comparing whole files is not enough.
async fn compare_lines(
    repo: &SealedRepo,
    paths: &mut [PathFacts],
    cap: usize,
) -> Result<(), GitError> {
    let open: Vec<&mut PathFacts> = paths.iter_mut().filter(|path| is_open(path)).collect();
    let wanted = open.iter().flat_map(|path| ids_of(path)).collect();
    let contents = read_small(repo, wanted, cap).await?;
    for path in open {
        path.lines = line_evidence(path, &contents);
        let sides = [&path.fork, &path.upstream].into_iter().flatten();
        let texts: Vec<&[u8]> =
            sides.filter_map(|side| contents.get(&side.id).map(Vec::as_slice)).collect();
        path.is_generated = is_generated(&path.path, &texts);
    }
    Ok(())
}

/// Where the result is the fork's, or what git makes of both sides, there is nothing to count.
fn is_open(path: &PathFacts) -> bool {
    path.fork != path.result && (!path.by_git || path.protected)
}

fn sides_of(path: &PathFacts) -> [Option<&TreeEntry>; 4] {
    [&path.ancestor, &path.fork, &path.upstream, &path.result].map(Option::as_ref)
}

fn ids_of(path: &PathFacts) -> Vec<&Sha> {
    let files = sides_of(path).into_iter().flatten().filter(|entry| is_file(entry));
    files.map(|entry| &entry.id).collect()
}

fn line_evidence(path: &PathFacts, contents: &BTreeMap<Sha, Vec<u8>>) -> LineEvidence {
    let mut texts: [&[u8]; 4] = [b""; 4];
    for (text, side) in texts.iter_mut().zip(sides_of(path)) {
        let Some(entry) = side else { continue };
        if !is_file(entry) {
            return LineEvidence::NoLines;
        }
        match contents.get(&entry.id) {
            None => return LineEvidence::TooLarge,
            Some(bytes) if !is_text(bytes) => return LineEvidence::NoLines,
            Some(bytes) => *text = bytes,
        }
    }
    let [ancestor, fork, upstream, result] = texts;
    if path.fork.is_none() || path.result.is_none() {
        let versions = Versions { ancestor, fork, upstream: ancestor, result };
        let facts = count_lines(versions);
        return LineEvidence::Whole(if facts.only_empty { 0 } else { facts.own.max(1) });
    }
    LineEvidence::Counted(count_lines(Versions { ancestor, fork, upstream, result }))
}

async fn observe_commits(
    repo: &SealedRepo,
    ends: &ContractEnds,
    bounds: ContractBounds,
) -> Result<(Vec<ForkCommit>, usize), GitError> {
    let ContractEnds { base, upstream, tip, .. } = ends;
    let excluded = std::slice::from_ref(upstream);
    let listed = repo.new_commits(base, excluded, bounds.commits).await?;
    let left_off = if listed.len() < bounds.commits {
        0
    } else {
        repo.count_commits(base, upstream).await?.saturating_sub(listed.len())
    };
    let plain: Vec<_> = listed.into_iter().filter(|commit| commit.parents.len() < 2).collect();
    if plain.is_empty() {
        return Ok((Vec::new(), left_off));
    }
    let shas: Vec<Sha> = plain.iter().map(|commit| commit.sha.clone()).collect();
    let both = [base.clone(), upstream.clone()];
    let (paths, patches, theirs, made) = tokio::try_join!(
        paths_of(repo, &shas),
        patches_of(repo, &shas, bounds.patch_bytes),
        repo.plain_commits(upstream, std::slice::from_ref(base), bounds.twins),
        repo.plain_commits(tip, &both, bounds.twins)
    )?;
    let wanted: BTreeSet<&Vec<Vec<u8>>> = paths.values().collect();
    let (theirs, made) = tokio::try_join!(
        twins(repo, &theirs, &wanted, bounds.patch_bytes),
        twins(repo, &made, &wanted, bounds.patch_bytes)
    )?;

    let commits = plain.into_iter().map(|commit| {
        let patch = patches.get(&commit.sha);
        let patch_id = patch.and_then(|patch| patch.patch_id.as_ref());
        let twin_in = |list: &BTreeMap<Sha, Sha>| patch_id.and_then(|id| list.get(id)).cloned();
        let touched = paths.get(&commit.sha).into_iter().flatten();
        let added = patch.into_iter().flat_map(|patch| &patch.added);
        ForkCommit {
            paths: touched.map(|path| TreePath::new(path.as_slice())).collect(),
            added: added.filter_map(|line| LineId::of(line)).collect(),
            upstream_twin: twin_in(&theirs),
            result_twin: twin_in(&made),
            sha: commit.sha,
            subject: commit.subject,
        }
    });
    Ok((commits.collect(), left_off))
}

async fn paths_of(
    repo: &SealedRepo,
    commits: &[Sha],
) -> Result<BTreeMap<Sha, Vec<Vec<u8>>>, GitError> {
    if commits.is_empty() {
        return Ok(BTreeMap::new());
    }
    let listed = repo.commit_paths(commits).await?;
    Ok(listed.into_iter().map(|commit| (commit.sha, commit.paths)).collect())
}

pub(crate) async fn patches_of(
    repo: &SealedRepo,
    commits: &[Sha],
    cap: usize,
) -> Result<BTreeMap<Sha, CommitPatch>, GitError> {
    if commits.is_empty() {
        return Ok(BTreeMap::new());
    }
    let patches = repo.commit_patches(commits, cap).await?;
    Ok(patches.into_iter().map(|patch| (patch.sha.clone(), patch)).collect())
}

/// Commits by patch id. Only commits that touch exactly the paths of a commit of the fork can make the same change.
async fn twins(
    repo: &SealedRepo,
    commits: &[Sha],
    wanted: &BTreeSet<&Vec<Vec<u8>>>,
    cap: usize,
) -> Result<BTreeMap<Sha, Sha>, GitError> {
    let paths = paths_of(repo, commits).await?;
    let candidates: Vec<Sha> =
        paths.into_iter().filter(|(_, paths)| wanted.contains(paths)).map(|(sha, _)| sha).collect();
    let patches = patches_of(repo, &candidates, cap).await?;
    Ok(patches.into_values().filter_map(|patch| Some((patch.patch_id?, patch.sha))).collect())
}
