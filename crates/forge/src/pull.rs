//! Pull requests, the same for every forge.

use model::id::BranchName;
use serde::Serialize;
use serde_json::Value;

use crate::thread::ThreadState;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PullRequest {
    pub number: u64,
    /// Page for people; never requested.
    pub url: String,
    pub title: String,
    /// Text; empty if it has none.
    pub body: String,
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
    pub base_branch: String,
    pub author: String,
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    /// Number of comments in the conversation, where the forge reports it.
    #[serde(skip)]
    pub comments: Option<u64>,
}

/// Changes to a pull request; absent fields stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PullEdit<'a> {
    pub(crate) title: Option<&'a str>,
    pub(crate) body: Option<&'a str>,
    pub(crate) close: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPull {
    pub title: String,
    pub body: String,
    /// The branch with the changes, already pushed.
    pub head: BranchName,
    pub base: BranchName,
}

impl PullRequest {
    pub fn is_open(&self) -> bool {
        self.state == ThreadState::Open
    }

    pub(crate) fn is_between(&self, head: &BranchName, base: &BranchName) -> bool {
        self.head_branch == head.as_str() && self.base_branch == base.as_str()
    }
}

impl PullEdit<'_> {
    /// Renders the fields that change, under a forge's own names for the text and for a closed state.
    pub(crate) fn fields(&self, body_name: &str, (state, closed): (&str, &str)) -> Value {
        let title = self.title.map(|title| ("title", title));
        let body = self.body.map(|body| (body_name, body));
        [title, body, self.close.then_some((state, closed))].into_iter().flatten().collect()
    }

    /// Verb for an error message.
    pub(crate) fn verb(&self) -> &'static str {
        if self.close { "close" } else { "update" }
    }
}
