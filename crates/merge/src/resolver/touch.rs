//! Commits of both sides that touched each open conflict.
//!
//! This reads the changes of hundreds of commits, so it runs only if the briefs are going to be read.

use std::collections::BTreeMap;

use host::git::{GitError, SealedRepo};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::brief::Brief;
use super::resolve::MergeHeads;

/// A commit that touched a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    pub sha: Sha,
    /// The first line of its message.
    pub subject: String,
}

/// Most commits of a side that are read, and most commits named for a path.
const COMMITS_CAP: usize = 300;
const NAMED: usize = 5;

/// Adds the commits of both sides to the briefs.
pub async fn add_touches(
    repo: &SealedRepo,
    heads: &MergeHeads,
    briefs: &mut [Brief],
) -> Result<(), GitError> {
    if briefs.is_empty() {
        return Ok(());
    }
    let ours = touches(repo, &heads.ours, &heads.theirs).await?;
    let theirs = touches(repo, &heads.theirs, &heads.ours).await?;
    for brief in briefs {
        let of = |side: &BTreeMap<Vec<u8>, Vec<Touch>>| {
            side.get(brief.path.as_bytes()).cloned().unwrap_or_default()
        };
        (brief.ours_commits, brief.theirs_commits) = (of(&ours), of(&theirs));
    }
    Ok(())
}

/// Commits by path, newest first.
async fn touches(
    repo: &SealedRepo,
    tip: &Sha,
    exclude: &Sha,
) -> Result<BTreeMap<Vec<u8>, Vec<Touch>>, GitError> {
    let commits = repo.new_commits(tip, std::slice::from_ref(exclude), COMMITS_CAP).await?;
    let plain: Vec<_> = commits.into_iter().filter(|commit| commit.parents.len() == 1).collect();
    let ids: Vec<Sha> = plain.iter().map(|commit| commit.sha.clone()).collect();
    let subjects: BTreeMap<Sha, String> =
        plain.into_iter().map(|commit| (commit.sha, commit.subject)).collect();
    let mut found: BTreeMap<Vec<u8>, Vec<Touch>> = BTreeMap::new();
    for commit in repo.commit_paths(&ids).await? {
        let Some(subject) = subjects.get(&commit.sha) else { continue };
        for path in commit.paths {
            let named = found.entry(path).or_default();
            if named.len() < NAMED {
                named.push(Touch { sha: commit.sha.clone(), subject: subject.clone() });
            }
        }
    }
    Ok(found)
}
