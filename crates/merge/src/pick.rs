//! One commit's change applied to another commit, in memory: what `git cherry-pick` does, without files.

use host::git::{CommitParts, GitError, GitIdentity, SealedRepo};
use jiff::Timestamp;
use model::id::Sha;

use crate::clean::{Conflict, conflicts_of};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PickAttempt {
    /// The change applies and gives this tree.
    Clean {
        tree: Sha,
    },
    /// The change is there already: applying it changes nothing.
    Empty,
    Conflicts(Vec<Conflict>),
}

/// Applies the change of `commit` to `onto`. A merge commit counts as its change against its first parent.
///
/// The commit is merged with a stand-in that has the tree of `onto` and the commit's own first parent. Their common ancestor
/// is that parent, so the merge applies exactly the change of the commit. A root commit adds all of its files to an empty tree.
pub async fn try_pick(
    repo: &SealedRepo,
    commit: &Sha,
    onto: &Sha,
    identity: &GitIdentity,
    when: Timestamp,
) -> Result<PickAttempt, GitError> {
    let parts = repo.commit_parts(commit).await?;
    let stand_ins = StandIns::new(repo, &parts, identity, when).await?;
    let tree = repo.commit_parts(onto).await?.tree;
    let ours = stand_ins.write(&tree).await?;
    // A merge commit's other parents would be common ancestors too.
    let theirs = stand_ins.write(&parts.tree).await?;
    let merged = repo.merge_tree(&ours, &theirs).await?;
    Ok(match merged.is_clean {
        false => PickAttempt::Conflicts(conflicts_of(&merged)),
        true if merged.tree == tree => PickAttempt::Empty,
        true => PickAttempt::Clean { tree: merged.tree },
    })
}

/// Takes the change of `commit` out of `tree`, as `git revert` does; `None` where that conflicts.
pub(crate) async fn try_revert(
    repo: &SealedRepo,
    commit: &Sha,
    tree: &Sha,
    identity: &GitIdentity,
    when: Timestamp,
) -> Result<Option<Sha>, GitError> {
    let parts = repo.commit_parts(commit).await?;
    let before = match parts.parents.first() {
        Some(parent) => repo.commit_parts(parent).await?.tree,
        None => empty_tree(repo)?,
    };
    // The commit is the common ancestor, so the merge takes its change away from the tree.
    let on_commit = StandIns { repo, parent: commit.clone(), identity, when };
    let (ours, theirs) = (on_commit.write(tree).await?, on_commit.write(&before).await?);
    let merged = repo.merge_tree(&ours, &theirs).await?;
    Ok(merged.is_clean.then_some(merged.tree))
}

fn empty_tree(repo: &SealedRepo) -> Result<Sha, GitError> {
    Sha::parse(repo.object_format().empty_tree()).map_err(|error| GitError::Parse {
        args: "hash-object -t tree".to_owned(),
        problem: error.to_string(),
    })
}

/// A stand-in for `onto` that has the first parent of `commit`: merged with the commit, it gets exactly the change of that.
pub(crate) async fn stand_in_for(
    repo: &SealedRepo,
    commit: &Sha,
    onto: &Sha,
    identity: &GitIdentity,
    when: Timestamp,
) -> Result<Sha, GitError> {
    let parts = repo.commit_parts(commit).await?;
    let tree = repo.commit_parts(onto).await?.tree;
    StandIns::new(repo, &parts, identity, when).await?.write(&tree).await
}

/// Commits of any tree on top of a commit's own first parent.
struct StandIns<'a> {
    repo: &'a SealedRepo,
    parent: Sha,
    identity: &'a GitIdentity,
    when: Timestamp,
}

impl<'a> StandIns<'a> {
    async fn new(
        repo: &'a SealedRepo,
        parts: &CommitParts,
        identity: &'a GitIdentity,
        when: Timestamp,
    ) -> Result<Self, GitError> {
        if let Some(parent) = parts.parents.first().cloned() {
            return Ok(Self { repo, parent, identity, when });
        }
        let root = stand_in(&empty_tree(repo)?, Vec::new(), identity, when);
        let parent = repo.write_commit(&root, identity, when).await?;
        Ok(Self { repo, parent, identity, when })
    }

    async fn write(&self, tree: &Sha) -> Result<Sha, GitError> {
        let made = stand_in(tree, vec![self.parent.clone()], self.identity, self.when);
        self.repo.write_commit(&made, self.identity, self.when).await
    }
}

fn stand_in(tree: &Sha, parents: Vec<Sha>, author: &GitIdentity, when: Timestamp) -> CommitParts {
    let author = format!("{} <{}> {} +0000", author.name, author.email, when.as_second());
    CommitParts {
        tree: tree.clone(),
        parents,
        author: author.into_bytes(),
        encoding: None,
        message: b"stand-in\n".to_vec(),
    }
}
