//! Issues and comments, the same for every forge. Pull requests are in `pull`.

use jiff::Timestamp;
use model::digest::sha256;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Issue {
    pub number: u64,
    /// Page for people; never requested.
    pub url: String,
    pub title: String,
    /// Text; empty if it has none.
    pub body: String,
    pub state: ThreadState,
    pub author: String,
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    /// Number of comments, where the forge reports it.
    #[serde(skip)]
    pub comments: Option<u64>,
}

/// Digest of a text on a forge, which may change its line breaks and the space around it.
pub fn text_digest(text: &str) -> String {
    sha256(text.replace("\r\n", "\n").trim().as_bytes())
}

/// An issue or a pull request. On some forges the two are numbered separately, so the number alone names neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Thread {
    Issue(u64),
    Pull(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbering {
    /// Issues and pull requests share their numbers.
    Shared,
    Separate,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadState {
    Open,
    /// Done, merged or rejected.
    Closed,
    /// A state that this version does not know.
    #[serde(untagged)]
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comment {
    /// Number on the forge; reviews and remarks may be numbered separately.
    pub id: u64,
    #[serde(flatten)]
    pub kind: CommentKind,
    /// Page for people; never requested.
    pub url: String,
    pub author: String,
    pub body: String,
    /// Time, where the forge reports it.
    pub created_at: Option<Timestamp>,
    /// Verdict of the review that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ReviewVerdict>,
    /// Thread of a remark, by which it is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<RemarkThread>,
}

/// Thread of remarks on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RemarkThread {
    pub id: String,
    /// True if it is resolved, where the forge reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<bool>,
}

/// Verdict of a review that is submitted and not dismissed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReviewVerdict {
    Approved,
    ChangesRequested,
    Commented,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum CommentKind {
    Plain,
    /// As the summary of a review.
    Review,
    /// On a line of a file.
    Remark {
        path: String,
        /// The line, where the forge reports it.
        line: Option<u64>,
        /// The part of the change that it is about, as a diff.
        #[serde(skip_serializing_if = "Option::is_none")]
        hunk: Option<String>,
    },
}

/// Issue that has to be closed before another one, as the forge itself knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    pub number: u64,
    /// Its repository with the owner, if it is another one.
    pub repository: Option<String>,
    pub is_open: bool,
}

/// Change of an issue that an account made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueEvent {
    pub actor: String,
    pub change: IssueChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssueChange {
    /// The label was set.
    Labelled(String),
    /// The account was assigned.
    Assigned(String),
}

/// Account of a token, and its rights on the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The login; `None` if the token is valid but may not read its account.
    pub login: Option<String>,
    pub may_push: bool,
}

impl Numbering {
    /// Notation of a thread: `#3`, or `!3` for a pull request with its own numbers.
    pub(crate) fn reference(self, thread: Thread) -> String {
        match (self, thread) {
            (Self::Separate, Thread::Pull(number)) => format!("!{number}"),
            (Self::Shared | Self::Separate, thread) => format!("#{}", thread.number()),
        }
    }
}

impl Thread {
    pub fn number(self) -> u64 {
        match self {
            Self::Issue(number) | Self::Pull(number) => number,
        }
    }
}

impl ThreadState {
    /// Parses `open` or `opened`, and `closed`.
    pub(crate) fn parse(word: &str) -> Self {
        match word {
            "open" | "opened" => Self::Open,
            "closed" | "merged" => Self::Closed,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl Issue {
    pub(crate) fn is_open_with(&self, labels: &[String]) -> bool {
        self.state == ThreadState::Open && labels.iter().all(|label| self.labels.contains(label))
    }
}
