//! The rebase that needs nobody: the fork's commits are made anew on upstream's, one after the other, in memory.

use host::git::{CommitParts, GitError, GitIdentity, OldValue, SealedRepo};
use model::id::Sha;

use crate::clean::{Conflict, MergeOptions, conflicts_of};

/// More commits than this are no patch stack; they are merged.
const MOST_COMMITS: usize = 2000;

/// How the attempt went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebaseAttempt {
    /// Every commit of the fork stands on upstream's now.
    Clean {
        /// The last one; upstream's own commit if nothing was left to make anew.
        commit: Sha,
        /// How many were made anew.
        made: usize,
        /// Those whose changes upstream has already.
        dropped: Vec<Sha>,
    },
    /// Somebody has to decide about these.
    Conflicts {
        /// The commit that does not fit.
        at: Sha,
        /// Where it does not.
        conflicts: Vec<Conflict>,
    },
    /// The two have no commit in common.
    Unrelated,
    /// The fork has more commits of its own than are rebased one by one.
    TooMany,
}

/// Rebases what `base` has on its own onto `upstream`, if git can do it alone. Merges among the fork's commits are left out:
/// what they brought comes with the commits that they merged. The wish's message is not used; commits keep theirs.
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
    // After a crash the same wish gives the same commits, and the ref may be there already.
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

/// Makes one commit anew. A merge of the commit with a stand-in for the new base, made to descend from the commit's
/// own parent, is exactly the change that the commit made: their only common ancestor is that parent.
async fn replay(
    repo: &SealedRepo,
    commit: &Sha,
    onto: &Sha,
    options: MergeOptions<'_>,
) -> Result<RebasedCommit, GitError> {
    let parts = repo.commit_parts(commit).await?;
    let new_base = repo.commit_parts(onto).await?;
    let author = stamp(options.identity, options.when.as_second());
    let stand_in = CommitParts {
        tree: new_base.tree.clone(),
        parents: parts.parents.clone(),
        author,
        encoding: None,
        message: b"stand-in\n".to_vec(),
    };
    let stand_in = repo.write_commit(&stand_in, options.identity, options.when).await?;
    let merged = repo.merge_tree(&stand_in, commit).await?;
    if !merged.is_clean {
        return Ok(RebasedCommit::Conflicts(conflicts_of(&merged)));
    }
    if merged.tree == new_base.tree {
        return Ok(RebasedCommit::Empty);
    }
    let anew = CommitParts { tree: merged.tree, parents: vec![onto.clone()], ..parts };
    Ok(RebasedCommit::Made(repo.write_commit(&anew, options.identity, options.when).await?))
}

fn stamp(identity: &GitIdentity, seconds: i64) -> Vec<u8> {
    format!("{} <{}> {seconds} +0000", identity.name, identity.email).into_bytes()
}
