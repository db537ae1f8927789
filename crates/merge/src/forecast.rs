//! What is coming from upstream: commits, numbers and the conflicts to expect. Nothing is made or changed.

use host::git::{GitError, SealedRepo};
use jiff::Timestamp;
use model::id::Sha;
use serde::{Deserialize, Serialize};

use crate::clean::{Conflict, conflicts_of};
use crate::path::TreePath;

/// What upstream has that the fork has not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamForecast {
    /// The newest of its commits.
    pub commits: Vec<ComingCommit>,
    /// How many there are, listed or not.
    pub commit_count: usize,
    /// Paths that upstream changed since the two were last one.
    pub files: usize,
    /// Lines that it added to them.
    pub insertions: u64,
    /// Lines that it took out of them.
    pub deletions: u64,
    /// The same path by path, in the order of the tree.
    pub changed: Vec<ComingFile>,
    /// How a merge would go.
    pub merge: MergeForecast,
}

/// A commit of upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComingCommit {
    /// Its id.
    pub sha: Sha,
    /// The first line of its message.
    pub subject: String,
    /// Who is said to have written it.
    pub author: String,
    /// When it is said to have been written.
    pub authored_at: Option<Timestamp>,
}

/// A path that upstream changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComingFile {
    /// The path.
    pub path: TreePath,
    /// Lines that are new; binary files have none.
    pub insertions: u64,
    /// Lines that are gone.
    pub deletions: u64,
}

/// How a merge would go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeForecast {
    /// The fork has all of it.
    NothingNew,
    /// Git could do it alone.
    Clean,
    /// Somebody would have to decide about these.
    Conflicts(Vec<Conflict>),
    /// The two have no commit in common.
    Unrelated,
}

/// Looks ahead from `base` to `upstream`, listing at most `limit` commits.
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
    let coming = commits.into_iter().map(|commit| ComingCommit {
        sha: commit.sha,
        subject: commit.subject,
        author: commit.author,
        authored_at: commit.authored_at,
    });
    Ok(UpstreamForecast {
        commits: coming.collect(),
        commit_count,
        files: changed.len(),
        insertions: changed.iter().map(|file| file.insertions).sum(),
        deletions: changed.iter().map(|file| file.deletions).sum(),
        changed,
        merge,
    })
}
