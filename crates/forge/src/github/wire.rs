//! What the server sends. Only what is used is read.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::http::read_page;
use crate::pull::PullRequest;
use crate::thread::{Comment, CommentKind, Issue, ThreadState};
use crate::webhook::Webhook;

#[derive(Debug, Deserialize)]
pub(super) struct WirePull {
    pub(super) number: u64,
    html_url: Option<String>,
    title: String,
    body: Option<String>,
    state: String,
    /// Missing in lists.
    merged: Option<bool>,
    merged_at: Option<String>,
    /// Null while the server works it out.
    mergeable: Option<bool>,
    user: Option<WireUser>,
    #[serde(default)]
    labels: Vec<WireLabel>,
    #[serde(default)]
    assignees: Vec<WireUser>,
    head: WireEnd,
    base: WireEnd,
}

/// One end of a pull request.
#[derive(Debug, Deserialize)]
struct WireEnd {
    #[serde(rename = "ref")]
    name: String,
    sha: Option<String>,
    /// Null once the repository is gone.
    repo: Option<WireEndRepository>,
}

#[derive(Debug, Deserialize)]
struct WireEndRepository {
    id: u64,
}

/// An issue, or a pull request seen as one.
#[derive(Debug, Deserialize)]
pub(super) struct WireIssue {
    pub(super) number: u64,
    html_url: Option<String>,
    title: String,
    body: Option<String>,
    state: String,
    user: Option<WireUser>,
    #[serde(default)]
    labels: Vec<WireLabel>,
    #[serde(default)]
    assignees: Vec<WireUser>,
    pull_request: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireUser {
    pub(super) login: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireLabel {
    pub(super) id: u64,
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireComment {
    pub(super) id: u64,
    html_url: Option<String>,
    /// Null once the account is gone.
    user: Option<WireUser>,
    body: Option<String>,
    created_at: Option<Timestamp>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireReview {
    pub(super) id: u64,
    html_url: Option<String>,
    user: Option<WireUser>,
    body: Option<String>,
    submitted_at: Option<Timestamp>,
}

/// A comment on a line.
#[derive(Debug, Deserialize)]
pub(super) struct WireRemark {
    #[serde(flatten)]
    comment: WireComment,
    path: Option<String>,
    line: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireRepository {
    permissions: Option<WirePermissions>,
}

#[derive(Debug, Deserialize)]
struct WirePermissions {
    push: Option<bool>,
}

impl WirePull {
    pub(super) fn into_pull(self, pulls_page: &str) -> PullRequest {
        let Self { number, html_url, title, body, state, merged, merged_at, mergeable, .. } = self;
        let Self { user, labels, assignees, head, base, .. } = self;
        let repo = |end: &WireEnd| end.repo.as_ref().map(|repo| repo.id);
        PullRequest {
            number,
            url: read_page(html_url).unwrap_or_else(|| format!("{pulls_page}/{number}")),
            title,
            body: body.unwrap_or_default(),
            state: ThreadState::parse(&state),
            merged: merged.unwrap_or(merged_at.is_some()),
            mergeable,
            from_fork: repo(&head) != repo(&base),
            head_sha: head.sha.unwrap_or_default(),
            head_branch: head.name,
            base_branch: base.name,
            author: login(user),
            labels: names(labels),
            assignees: logins(assignees),
        }
    }
}

impl WireIssue {
    /// `None` if it is a pull request.
    pub(super) fn into_issue(self, issues_page: &str) -> Option<Issue> {
        let Self { number, html_url, title, body, state, user, labels, assignees, pull_request } =
            self;
        if pull_request.is_some() {
            return None;
        }
        Some(Issue {
            number,
            url: read_page(html_url).unwrap_or_else(|| format!("{issues_page}/{number}")),
            title,
            body: body.unwrap_or_default(),
            state: ThreadState::parse(&state),
            author: login(user),
            labels: names(labels),
            assignees: logins(assignees),
        })
    }
}

impl WireComment {
    pub(super) fn into_comment(self) -> Comment {
        Comment {
            id: self.id,
            kind: CommentKind::Plain,
            url: read_page(self.html_url).unwrap_or_default(),
            author: login(self.user),
            body: self.body.unwrap_or_default(),
            created_at: self.created_at,
        }
    }
}

impl WireReview {
    /// `None` if the review says nothing as a whole.
    pub(super) fn into_comment(self) -> Option<Comment> {
        let body = self.body.filter(|body| !body.is_empty())?;
        Some(Comment {
            id: self.id,
            kind: CommentKind::Review,
            url: read_page(self.html_url).unwrap_or_default(),
            author: login(self.user),
            body,
            created_at: self.submitted_at,
        })
    }
}

impl WireRemark {
    pub(super) fn id(&self) -> u64 {
        self.comment.id
    }

    pub(super) fn into_comment(self) -> Comment {
        let (path, line) = (self.path.unwrap_or_default(), self.line);
        Comment { kind: CommentKind::Remark { path, line }, ..self.comment.into_comment() }
    }
}

impl WireRepository {
    pub(super) fn may_push(&self) -> bool {
        self.permissions.as_ref().and_then(|permissions| permissions.push).unwrap_or(false)
    }
}

/// Whoever deleted their account is known as this there.
fn login(user: Option<WireUser>) -> String {
    user.map_or_else(|| "ghost".to_owned(), |user| user.login)
}

fn names(labels: Vec<WireLabel>) -> Vec<String> {
    labels.into_iter().map(|label| label.name).collect()
}

fn logins(users: Vec<WireUser>) -> Vec<String> {
    users.into_iter().map(|user| user.login).collect()
}

/// A webhook. Its secret is not among what is sent.
#[derive(Debug, Deserialize)]
pub(super) struct WireHook {
    pub(super) id: u64,
    #[serde(default)]
    active: bool,
    #[serde(default)]
    events: Vec<String>,
    config: WireHookConfig,
}

#[derive(Debug, Deserialize)]
struct WireHookConfig {
    #[serde(default)]
    url: String,
}

impl WireHook {
    pub(super) fn into_webhook(self) -> Webhook {
        let Self { id, active, events, config } = self;
        Webhook { id, url: config.url, active, events }
    }
}
