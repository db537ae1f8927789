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
    let tree = repo.commit_parts(onto).await?.tree;
    let author = format!("{} <{}> {} +0000", identity.name, identity.email, when.as_second());
    let stand_in = |tree: &Sha, parents: &[Sha]| CommitParts {
        tree: tree.clone(),
        parents: parents.to_vec(),
        author: author.clone().into_bytes(),
        encoding: None,
        message: b"stand-in\n".to_vec(),
    };
    let parent = match parts.parents.into_iter().next() {
        Some(parent) => parent,
        None => {
            let empty = Sha::parse(repo.object_format().empty_tree());
            let empty = empty.map_err(|error| GitError::Parse {
                args: "hash-object -t tree".to_owned(),
                problem: error.to_string(),
            })?;
            repo.write_commit(&stand_in(&empty, &[]), identity, when).await?
        }
    };
    let parents = [parent];
    let ours = repo.write_commit(&stand_in(&tree, &parents), identity, when).await?;
    // A merge commit's other parents would be common ancestors too.
    let theirs = repo.write_commit(&stand_in(&parts.tree, &parents), identity, when).await?;
    let merged = repo.merge_tree(&ours, &theirs).await?;
    Ok(match merged.is_clean {
        false => PickAttempt::Conflicts(conflicts_of(&merged)),
        true if merged.tree == tree => PickAttempt::Empty,
        true => PickAttempt::Clean { tree: merged.tree },
    })
}
