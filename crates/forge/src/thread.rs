//! Where people talk: issues and comments, the same for every forge. Pull requests are in `pull`.

use jiff::Timestamp;
use serde::Serialize;

/// An issue, as a forge has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Issue {
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
    /// Who opened it.
    pub author: String,
    /// Its labels, by name.
    pub labels: Vec<String>,
    /// Who shall do it.
    pub assignees: Vec<String>,
}

/// An issue or a pull request, where it does not matter which. On some forges the two are numbered apart, so the
/// number alone names neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Thread {
    /// An issue.
    Issue(u64),
    /// A pull request.
    Pull(u64),
}

/// How a forge counts its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbering {
    /// Issues and pull requests share their numbers.
    Shared,
    /// Each has its own.
    Separate,
}

/// Whether a thread is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadState {
    /// It goes on.
    Open,
    /// It is done, merged or turned down.
    Closed,
    /// A word that is new to us.
    #[serde(untagged)]
    Other(String),
}

/// A comment on an issue or a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comment {
    /// Its number on the forge; reviews and remarks may be counted apart.
    pub id: u64,
    /// Which sort it is.
    #[serde(flatten)]
    pub kind: CommentKind,
    /// Its page, for people. Never called.
    pub url: String,
    /// Who wrote it.
    pub author: String,
    /// Markdown.
    pub body: String,
    /// When, where the forge says so.
    pub created_at: Option<Timestamp>,
}

/// Where a comment was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum CommentKind {
    /// In the conversation.
    Plain,
    /// As the summary of a review.
    Review,
    /// On a line of a file.
    Remark {
        /// The file.
        path: String,
        /// The line, where the forge says so.
        line: Option<u64>,
    },
}

/// Which open issues are wanted; what is not given does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IssueFilter {
    /// All of these labels, by name.
    pub labels: Vec<String>,
    /// Assigned to this account.
    pub assignee: Option<String>,
}

/// Whom a token stands for, and what it may do with the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The login; `None` if the token is good but may not say whose it is.
    pub login: Option<String>,
    /// Whether the account may push to the repository.
    pub may_push: bool,
}

impl Thread {
    /// Its number among its kind.
    pub fn number(self) -> u64 {
        match self {
            Self::Issue(number) | Self::Pull(number) => number,
        }
    }
}

impl ThreadState {
    /// Forges say `open` or `opened`, and `closed`.
    pub(crate) fn parse(word: &str) -> Self {
        match word {
            "open" | "opened" => Self::Open,
            "closed" | "merged" => Self::Closed,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl IssueFilter {
    /// Whether an issue is wanted. Servers ignore filters that they do not understand, so everything is matched again.
    pub(crate) fn fits(&self, issue: &Issue) -> bool {
        let has = |label: &String| issue.labels.contains(label);
        let assigned = |login: &String| issue.assignees.contains(login);
        issue.state == ThreadState::Open
            && self.labels.iter().all(has)
            && self.assignee.as_ref().is_none_or(assigned)
    }
}
