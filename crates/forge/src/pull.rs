//! Pull requests, the same for every forge.

use model::id::BranchName;
use serde::Serialize;

use crate::thread::ThreadState;

/// Pull request as a forge has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PullRequest {
    /// Number in the repository.
    pub number: u64,
    /// Page for people; never requested.
    pub url: String,
    /// Title, one line.
    pub title: String,
    /// Text; empty if it has none.
    pub body: String,
    /// Open or closed.
    pub state: ThreadState,
    /// True if it was merged; it is closed then too.
    pub merged: bool,
    /// True if it could be merged, where the forge reports it.
    pub mergeable: Option<bool>,
    /// The branch with the changes; it may be deleted.
    pub head_branch: String,
    /// The commit that branch is or was at.
    pub head_sha: String,
    /// True if the branch is in another repository, which anyone may have created.
    pub from_fork: bool,
    /// The branch to be merged into.
    pub base_branch: String,
    /// Login of the account that opened it.
    pub author: String,
    pub labels: Vec<String>,
    /// Logins of the assignees.
    pub assignees: Vec<String>,
}

/// Changes to a pull request; absent fields stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PullEdit<'a> {
    pub(crate) title: Option<&'a str>,
    pub(crate) body: Option<&'a str>,
    pub(crate) close: bool,
}

/// Pull request to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPull {
    pub title: String,
    /// Markdown.
    pub body: String,
    /// The branch with the changes, already pushed.
    pub head: BranchName,
    /// The branch to be merged into.
    pub base: BranchName,
}

impl PullRequest {
    /// Returns whether it is open.
    pub fn is_open(&self) -> bool {
        self.state == ThreadState::Open
    }

    /// Returns whether these are its branches.
    pub(crate) fn is_between(&self, head: &BranchName, base: &BranchName) -> bool {
        self.head_branch == head.as_str() && self.base_branch == base.as_str()
    }
}

impl PullEdit<'_> {
    /// Returns the verb for an error message.
    pub(crate) fn verb(&self) -> &'static str {
        if self.close { "close" } else { "update" }
    }
}
