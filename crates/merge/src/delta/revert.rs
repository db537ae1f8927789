//! Reverts of a change's commits that take away the change and nothing else.
//!
//! A commit may have done more than what is the fork's own by now: upstream may have taken a part of it, and the fork that part
//! from upstream. Its revert would take that away as well. So the reverts are made in memory, and count only if they give the
//! fork's tree without the lines of the change, to the byte.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{GitError, GitIdentity, SealedRepo};
use jiff::Timestamp;
use model::id::Sha;

use super::Delta;
use super::change::LineAssignment;
use super::stack::{Splitter, files_by_change};
use crate::pick::try_revert;

/// Looks for the reverts of each of these changes, one change after the other: what is found for one is done when the next is
/// tried. Returns the commits, in the order in which they are to be reverted, by the number of the change.
pub async fn find_reverts(
    repo: &SealedRepo,
    (delta, assignment): (&Delta, &LineAssignment),
    changes: &[usize],
    (identity, when): (&GitIdentity, Timestamp),
) -> Result<BTreeMap<usize, Vec<Sha>>, GitError> {
    let by_change = files_by_change(delta, assignment);
    let files_of = |change: usize| by_change.get(&change).into_iter().flatten().copied();
    let files: BTreeSet<usize> = changes.iter().flat_map(|&change| files_of(change)).collect();
    let splitter = Splitter::read(repo, delta, assignment, &files).await?;
    let fork = repo.commit_parts(&delta.tip).await?.tree;
    let (mut dropped, mut tree) = (BTreeSet::new(), fork.clone());
    let mut found = BTreeMap::new();
    for &change in changes {
        let commits: Vec<Sha> = assignment.changes[change]
            .commits
            .iter()
            .map(|&place| delta.history.commits[place].sha.clone())
            .collect();
        let has_merges =
            assignment.changes[change].commits.iter().any(|&place| delta.history.is_merge(place));
        if commits.is_empty() || has_merges {
            continue;
        }
        let Some(reverted) = revert_all(repo, &commits, &tree, (identity, when)).await? else {
            continue;
        };
        let mut without = dropped.clone();
        without.insert(change);
        let touched: BTreeSet<usize> = without.iter().flat_map(|&it| files_of(it)).collect();
        let edits: Vec<_> = touched
            .iter()
            .flat_map(|&file| splitter.edits_with(file, |other| !without.contains(&other)))
            .collect();
        if repo.edit_tree(&fork, &edits).await? == reverted {
            found.insert(change, commits);
            (dropped, tree) = (without, reverted);
        }
    }
    Ok(found)
}

async fn revert_all(
    repo: &SealedRepo,
    commits: &[Sha],
    tree: &Sha,
    (identity, when): (&GitIdentity, Timestamp),
) -> Result<Option<Sha>, GitError> {
    let mut tree = tree.clone();
    for commit in commits {
        match try_revert(repo, commit, &tree, identity, when).await? {
            Some(next) => tree = next,
            None => return Ok(None),
        }
    }
    Ok(Some(tree))
}
