//! Rebases without conflicts: the fork's commits are applied to upstream's, one after the other, in memory.

use host::git::{CommitParts, GitError, OldValue, SealedRepo};
use model::id::Sha;

use crate::clean::{Conflict, MergeOptions};
use crate::pick::{PickAttempt, try_pick};

/// Most commits of a rebase. A fork with more of its own is merged instead.
const MOST_COMMITS: usize = 2000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebaseAttempt {
    /// Every commit of the fork applies.
    Clean {
        /// The last commit; upstream's own if no commit is left.
        commit: Sha,
        /// Number of rebased commits.
        made: usize,
        /// Commits whose changes upstream has already.
        dropped: Vec<Sha>,
    },
    /// A commit conflicts.
    Conflicts { at: Sha, conflicts: Vec<Conflict> },
    /// The two have no common ancestor.
    Unrelated,
    /// The fork has too many commits of its own.
    TooMany,
}

/// Rebases the fork's own commits in `base` onto `upstream` if there are no conflicts. Merge commits are left out, because the
/// commits that they merged are rebased themselves. Commits keep their messages; that of `options` is not used.
pub async fn try_rebase(
    repo: &SealedRepo,
    base: &Sha,
    upstream: &Sha,
    options: MergeOptions<'_>,
) -> Result<RebaseAttempt, GitError> {
    if repo.merge_base(base, upstream).await?.is_none() {
        return Ok(RebaseAttempt::Unrelated);
    }
    let known = std::slice::from_ref(upstream);
    let mut commits = repo.plain_commits(base, known, MOST_COMMITS + 1).await?;
    if commits.len() > MOST_COMMITS {
        return Ok(RebaseAttempt::TooMany);
    }
    commits.reverse();
    let mut onto = upstream.clone();
    let (mut made, mut dropped) = (0, Vec::new());
    for commit in commits {
        match replay(repo, &commit, &onto, options).await? {
            RebasedCommit::Made(next) => {
                onto = next;
                made += 1;
            }
            RebasedCommit::Empty => dropped.push(commit),
            RebasedCommit::Conflicts(conflicts) => {
                return Ok(RebaseAttempt::Conflicts { at: commit, conflicts });
            }
        }
    }
    // After a crash the same options give the same commits, and the ref may exist already.
    if repo.resolve_commit(options.name.as_str()).await?.as_ref() != Some(&onto) {
        repo.update_ref(options.name, &onto, OldValue::Missing).await?;
    }
    Ok(RebaseAttempt::Clean { commit: onto, made, dropped })
}

enum RebasedCommit {
    Made(Sha),
    Empty,
    Conflicts(Vec<Conflict>),
}

/// Rebases one commit.
async fn replay(
    repo: &SealedRepo,
    commit: &Sha,
    onto: &Sha,
    options: MergeOptions<'_>,
) -> Result<RebasedCommit, GitError> {
    let MergeOptions { identity, when, .. } = options;
    Ok(match try_pick(repo, commit, onto, identity, when).await? {
        PickAttempt::Conflicts(conflicts) => RebasedCommit::Conflicts(conflicts),
        PickAttempt::Empty => RebasedCommit::Empty,
        PickAttempt::Clean { tree } => {
            let parts = repo.commit_parts(commit).await?;
            let anew = CommitParts { tree, parents: vec![onto.clone()], ..parts };
            RebasedCommit::Made(repo.write_commit(&anew, identity, when).await?)
        }
    })
}
