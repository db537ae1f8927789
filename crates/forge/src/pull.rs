//! Pull requests, the same for every forge.

use model::id::BranchName;
use serde::Serialize;

use crate::thread::ThreadState;

/// A pull request, as a forge has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PullRequest {
    /// Its number in the repository.
    pub number: u64,
    /// Its page, for people. Never called.
    pub url: String,
    /// Its title.
    pub title: String,
    /// Its text; empty if it has none.
    pub body: String,
    /// Whether it is open.
    pub state: ThreadState,
    /// Whether it was merged; it is closed then too.
    pub merged: bool,
    /// Whether it could be merged, where the forge says so.
    pub mergeable: Option<bool>,
    /// The branch with the changes; it may be gone by now.
    pub head_branch: String,
    /// The commit that branch is or was at.
    pub head_sha: String,
    /// Whether the branch lives in another repository, where anybody may have made it.
    pub from_fork: bool,
    /// The branch to be merged into.
    pub base_branch: String,
    /// Who opened it.
    pub author: String,
    /// Its labels, by name.
    pub labels: Vec<String>,
    /// Who shall look after it.
    pub assignees: Vec<String>,
}

/// What of a pull request shall change; the rest stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PullEdit<'a> {
    pub(crate) title: Option<&'a str>,
    pub(crate) body: Option<&'a str>,
    pub(crate) close: bool,
}

/// A pull request to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPull {
    /// One line.
    pub title: String,
    /// Markdown.
    pub body: String,
    /// The branch with the changes, already pushed.
    pub head: BranchName,
    /// The branch to be merged into.
    pub base: BranchName,
    /// Labels by name; each must exist in the repository.
    pub labels: Vec<String>,
}

impl PullRequest {
    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.state == ThreadState::Open
    }
}
