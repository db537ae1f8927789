//! The stack of a fork's changes on another commit of upstream, each change with a verdict of its own.

use host::git::{CommitParts, GitError, GitIdentity, SealedRepo};
use jiff::Timestamp;
use model::id::Sha;
use serde::Serialize;

use super::stack::Stack;
use crate::path::TreePath;
use crate::pick::{PickAttempt, stand_in_for, try_pick};
use crate::resolver::{MergeHeads, ResolveOptions, resolve_conflicts};

/// State of a change on another commit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum RestackVerdict {
    Applies,
    /// It changes nothing there: upstream has it.
    Empty,
    /// A rule of the fork, or the resolver, took upstream's version of all that it changes: nothing of it is there.
    LeftOut {
        files: Vec<ResolvedFile>,
    },
    /// The resolver answered its conflicts.
    Resolved {
        files: Vec<ResolvedFile>,
    },
    /// It conflicts, and is left out of what follows.
    Conflicts {
        paths: Vec<TreePath>,
    },
}

/// A conflict that was resolved, with the class of the answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResolvedFile {
    pub path: TreePath,
    pub action: &'static str,
    pub classes: Vec<String>,
    pub confidence: f64,
}

impl RestackVerdict {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Applies => "applies",
            Self::Empty => "empty",
            Self::LeftOut { .. } => "left out",
            Self::Resolved { .. } => "resolved",
            Self::Conflicts { .. } => "conflicts",
        }
    }
}

/// The changes on another commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Restack {
    /// The last commit; the target itself if no change was applied.
    pub tip: Sha,
    /// The verdict about each change of the stack, in its order, and its new commit.
    pub verdicts: Vec<(RestackVerdict, Option<Sha>)>,
}

/// Applies the changes to `onto`, one after the other. A change that conflicts is left out, so a later one that needs it conflicts
/// too. `watch` gets the number of changes that are done.
pub async fn restack(
    repo: &SealedRepo,
    stack: &Stack,
    onto: &Sha,
    (committer, when): (&GitIdentity, Timestamp),
    options: ResolveOptions<'_>,
    mut watch: impl FnMut(usize),
) -> Result<Restack, GitError> {
    let mut tip = onto.clone();
    let mut verdicts = Vec::new();
    for step in &stack.changes {
        watch(verdicts.len());
        let picked = try_pick(repo, &step.commit, &tip, committer, when).await?;
        let (verdict, tree) = match picked {
            PickAttempt::Clean { tree } => (RestackVerdict::Applies, Some(tree)),
            PickAttempt::Empty => (RestackVerdict::Empty, None),
            PickAttempt::Conflicts(conflicts) => {
                let ours = step.commit.clone();
                let theirs = stand_in_for(repo, &step.commit, &tip, committer, when).await?;
                let heads = MergeHeads { ours, theirs };
                let done = resolve_conflicts(repo, &heads, options).await?;
                if done.rest.is_empty() && done.regenerate.is_empty() {
                    let files = done.receipts.iter().map(resolved_file).collect();
                    match done.tree == repo.commit_parts(&tip).await?.tree {
                        true => (RestackVerdict::LeftOut { files }, None),
                        false => (RestackVerdict::Resolved { files }, Some(done.tree)),
                    }
                } else {
                    let paths = conflicts.into_iter().map(|conflict| conflict.path).collect();
                    (RestackVerdict::Conflicts { paths }, None)
                }
            }
        };
        let made = match tree {
            None => None,
            Some(tree) => {
                let parts = repo.commit_parts(&step.commit).await?;
                let parts = CommitParts { tree, parents: vec![tip.clone()], ..parts };
                tip = repo.write_commit(&parts, committer, when).await?;
                Some(tip.clone())
            }
        };
        verdicts.push((verdict, made));
    }
    Ok(Restack { tip, verdicts })
}

fn resolved_file(receipt: &crate::resolver::receipt::Receipt) -> ResolvedFile {
    ResolvedFile {
        path: receipt.path.clone(),
        action: receipt.action.as_str(),
        classes: receipt.steps.iter().map(|step| step.answer_class.clone()).collect(),
        confidence: receipt.confidence,
    }
}
