//! Pull requests and comments, the same for every forge.

use model::id::BranchName;

/// A pull request, as a forge has it.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub state: PullState,
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
}

/// Whether a pull request is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullState {
    /// It can be merged or closed.
    Open,
    /// It was merged or turned down.
    Closed,
    /// A word that is new to us.
    Other(String),
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

/// A comment on an issue or a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// Its number on the forge.
    pub id: u64,
    /// Its page, for people. Never called.
    pub url: String,
    /// Who wrote it.
    pub author: String,
    /// Markdown.
    pub body: String,
}

/// Whom a token stands for, and what it may do with the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The login; `None` if the token is good but may not say whose it is.
    pub login: Option<String>,
    /// Whether the account may push to the repository.
    pub may_push: bool,
}

impl PullRequest {
    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.state == PullState::Open
    }
}

impl PullState {
    pub(crate) fn parse(word: &str) -> Self {
        match word {
            "open" => Self::Open,
            "closed" => Self::Closed,
            other => Self::Other(other.to_owned()),
        }
    }
}
