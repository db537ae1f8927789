//! Preview of upstream's changes: commits, files and expected conflicts. Changes nothing.

use host::git::{DatedCommit, GitError, SealedRepo};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use crate::clean::{Conflict, conflicts_of};
use crate::path::TreePath;

/// Changes of upstream that the fork lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamForecast {
    /// Newest commits.
    pub commits: Vec<DatedCommit>,
    /// Number of all commits, listed or not.
    pub commit_count: usize,
    /// Number of paths that upstream changed since the merge base.
    pub files: usize,
    pub insertions: u64,
    pub deletions: u64,
    /// Changed paths, in the order of the tree.
    pub changed: Vec<ComingFile>,
    /// Expected result of a merge.
    pub merge: MergeForecast,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComingFile {
    pub path: TreePath,
    /// Added lines; 0 for binary files.
    pub insertions: u64,
    pub deletions: u64,
}

/// Expected result of a merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeForecast {
    /// The fork contains upstream's commit.
    NothingNew,
    Clean,
    Conflicts(Vec<Conflict>),
    /// The two have no common ancestor.
    Unrelated,
}

/// Previews a merge of `upstream` into `base`, with at most `limit` commits listed.
pub async fn observe_forecast(
    repo: &SealedRepo,
    base: &Sha,
    upstream: &Sha,
    limit: usize,
) -> Result<UpstreamForecast, GitError> {
    let commits = repo.dated_commits(upstream, base, limit).await?;
    let commit_count = if commits.len() < limit {
        commits.len()
    } else {
        repo.count_commits(upstream, base).await?
    };
    let merge_base = repo.merge_base(base, upstream).await?;
    let numbers = repo.diff_numbers(merge_base.as_ref().unwrap_or(base), upstream).await?;
    let changed: Vec<ComingFile> = numbers
        .into_iter()
        .map(|file| ComingFile {
            path: TreePath::new(file.path),
            insertions: file.insertions,
            deletions: file.deletions,
        })
        .collect();
    let merge = match &merge_base {
        None => MergeForecast::Unrelated,
        Some(found) if found == upstream => MergeForecast::NothingNew,
        Some(_) => {
            let merged = repo.merge_tree(base, upstream).await?;
            if merged.is_clean {
                MergeForecast::Clean
            } else {
                MergeForecast::Conflicts(conflicts_of(&merged))
            }
        }
    };
    Ok(UpstreamForecast {
        commits,
        commit_count,
        files: changed.len(),
        insertions: changed.iter().map(|file| file.insertions).sum(),
        deletions: changed.iter().map(|file| file.deletions).sum(),
        changed,
        merge,
    })
}
