//! Bodies of responses. Only fields that are used are parsed, and those missing or null on some server are optional.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::http::read_page;
use crate::organisation::FoundRepository;
use crate::pull::{PullRequest, split_draft};
use crate::thread::{
    Comment, CommentKind, Issue, IssueChange, IssueEvent, RemarkThread, ReviewVerdict, ThreadState,
};
use crate::webhook::Webhook;

/// Prefix of the ref that replaces a deleted branch.
const GONE_BRANCH_PREFIX: &str = "refs/pull/";

#[derive(Debug, Deserialize)]
pub(super) struct WirePull {
    pub(super) number: u64,
    html_url: Option<String>,
    title: String,
    body: Option<String>,
    state: String,
    /// Missing in GitHub's lists.
    merged: Option<bool>,
    merged_at: Option<IgnoredAny>,
    /// Null while GitHub computes it.
    mergeable: Option<bool>,
    user: Option<WireUser>,
    labels: Option<Vec<WireLabel>>,
    assignees: Option<Vec<WireUser>>,
    comments: Option<u64>,
    /// Missing before Gitea 1.22.
    draft: Option<bool>,
    /// GitHub's id in GraphQL.
    pub(super) node_id: Option<String>,
    /// GitHub's word beside `mergeable`.
    mergeable_state: Option<String>,
    /// The commit where the branches parted, on Gitea.
    merge_base: Option<String>,
    head: WireEnd,
    base: WireEnd,
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
    labels: Option<Vec<WireLabel>>,
    /// Null on Gitea when there is no assignee.
    assignees: Option<Vec<WireUser>>,
    comments: Option<u64>,
    /// Null or missing for an issue.
    pull_request: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct WireEnd {
    label: Option<String>,
    #[serde(rename = "ref")]
    name: String,
    sha: Option<String>,
    /// Gitea's; -1 once the repository is gone.
    repo_id: Option<i64>,
    /// Null once the repository is gone.
    repo: Option<WireEndRepository>,
}

#[derive(Debug, Deserialize)]
struct WireEndRepository {
    id: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireUser {
    pub(super) login: String,
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
    comments_count: Option<u64>,
    state: Option<String>,
    /// Gitea's.
    #[serde(default)]
    dismissed: bool,
}

/// An entry of an issue's history, with Gitea's names and GitHub's.
#[derive(Debug, Deserialize)]
pub(super) struct WireEvent {
    pub(super) id: u64,
    /// Gitea's.
    #[serde(rename = "type")]
    kind: Option<String>,
    user: Option<WireUser>,
    body: Option<String>,
    #[serde(default)]
    removed_assignee: bool,
    /// GitHub's.
    event: Option<String>,
    actor: Option<WireUser>,
    assigner: Option<WireUser>,
    label: Option<WireLabel>,
    assignee: Option<WireUser>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireRemark {
    #[serde(flatten)]
    comment: WireComment,
    path: Option<String>,
    /// GitHub's.
    line: Option<u64>,
    /// The line on Gitea.
    position: Option<u64>,
    diff_hunk: Option<String>,
    pull_request_review_id: Option<u64>,
    /// First remark of the thread, on GitHub.
    in_reply_to_id: Option<u64>,
    /// Account that resolved the thread, on Gitea; null if it is open.
    #[serde(default, deserialize_with = "read_resolver")]
    resolver: Option<bool>,
}

/// Reads whether a field is there and not null.
fn read_resolver<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Option<bool>, D::Error> {
    let found = Option::<IgnoredAny>::deserialize(input)?;
    Ok(Some(found.is_some()))
}

#[derive(Debug, Deserialize)]
struct WireLabel {
    name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireRepository {
    #[serde(default)]
    id: u64,
    full_name: Option<String>,
    #[serde(default)]
    archived: bool,
    has_issues: Option<bool>,
    permissions: Option<WirePermissions>,
}

#[derive(Debug, Deserialize)]
struct WirePermissions {
    push: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireToken {
    owner: Option<WireUser>,
}

impl WirePull {
    /// Converts the pull request; `page` is for a server that names none.
    pub(super) fn into_pull(self, page: String) -> PullRequest {
        let (title, draft) = split_draft(self.title, self.draft);
        // A Gitea says of a draft that it cannot be merged, and does not say why.
        let hides_reason = draft && self.merge_base.is_some();
        let is_behind = match (&self.merge_base, &self.base.sha) {
            (Some(parted), Some(base)) => parted != base,
            _ => self.mergeable_state.as_deref() == Some("behind"),
        };
        PullRequest {
            number: self.number,
            url: read_page(self.html_url).unwrap_or(page),
            title,
            body: self.body.unwrap_or_default(),
            state: ThreadState::parse(&self.state),
            merged: self.merged.unwrap_or(self.merged_at.is_some()),
            mergeable: self.mergeable,
            from_fork: self.head.repository() != self.base.repository(),
            head_sha: self.head.sha.clone().unwrap_or_default(),
            head_branch: self.head.branch(),
            base_branch: self.base.branch(),
            author: login(self.user),
            labels: names(self.labels),
            assignees: logins(self.assignees),
            comments: self.comments,
            draft,
            has_conflicts: self.mergeable.map(|mergeable| !mergeable).filter(|_| !hides_reason),
            is_behind,
            checks: None,
        }
    }
}

impl WireIssue {
    /// Converts the issue; `None` if it is a pull request. `page` is for a server that names none.
    pub(super) fn into_issue(self, page: String) -> Option<Issue> {
        self.pull_request.is_none().then(|| Issue {
            number: self.number,
            url: read_page(self.html_url).unwrap_or(page),
            title: self.title,
            body: self.body.unwrap_or_default(),
            state: ThreadState::parse(&self.state),
            author: login(self.user),
            labels: names(self.labels),
            assignees: logins(self.assignees),
            comments: self.comments,
        })
    }
}

impl WireEnd {
    fn repository(&self) -> Option<i64> {
        self.repo_id.or(self.repo.as_ref().map(|repo| repo.id))
    }

    /// Returns the branch. The label keeps the name of a deleted one, after the owner if that is another one.
    fn branch(self) -> String {
        match self.label {
            Some(label) if self.name.starts_with(GONE_BRANCH_PREFIX) => {
                label.rsplit(':').next().unwrap_or_default().to_owned()
            }
            Some(_) | None => self.name,
        }
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
            verdict: None,
            thread: None,
        }
    }
}

impl WireEvent {
    /// Converts the event; `None` if it neither sets a label nor assigns an account.
    pub(super) fn into_event(self) -> Option<IssueEvent> {
        // GitHub names the assigned account as the actor of old assignments.
        let actor = self.assigner.or(self.actor).or(self.user)?.login;
        let is_set = self.body.as_deref().is_some_and(|body| !body.is_empty());
        let change = match (self.event.as_deref(), self.kind.as_deref()) {
            (Some("labeled"), _) => IssueChange::Labelled(self.label?.name),
            (Some("assigned"), _) => IssueChange::Assigned(self.assignee?.login),
            // The text of a label that was removed is empty.
            (None, Some("label")) if is_set => IssueChange::Labelled(self.label?.name),
            (None, Some("assignees")) if !self.removed_assignee => {
                IssueChange::Assigned(self.assignee?.login)
            }
            _ => return None,
        };
        Some(IssueEvent { actor, change })
    }
}

impl WireReview {
    /// Returns the verdict; `None` if the review is dismissed, requested or not submitted yet.
    pub(super) fn verdict(&self) -> Option<ReviewVerdict> {
        match self.state.as_deref().filter(|_| !self.dismissed)? {
            "APPROVED" => Some(ReviewVerdict::Approved),
            "REQUEST_CHANGES" | "CHANGES_REQUESTED" => Some(ReviewVerdict::ChangesRequested),
            "COMMENT" | "COMMENTED" => Some(ReviewVerdict::Commented),
            _ => None,
        }
    }

    /// Returns whether there may be remarks on lines, which Gitea sends only on request.
    pub(super) fn has_remarks(&self) -> bool {
        self.comments_count != Some(0)
    }

    /// Converts the review; `None` if it has no text as a whole and requests no changes.
    pub(super) fn into_comment(self) -> Option<Comment> {
        let verdict = self.verdict();
        let asks = verdict == Some(ReviewVerdict::ChangesRequested);
        let body = self.body.unwrap_or_default();
        if body.is_empty() && !asks {
            return None;
        }
        Some(Comment {
            id: self.id,
            kind: CommentKind::Review,
            url: read_page(self.html_url).unwrap_or_default(),
            author: login(self.user),
            body,
            created_at: self.submitted_at,
            verdict,
            thread: None,
        })
    }
}

impl WireRemark {
    pub(super) fn id(&self) -> u64 {
        self.comment.id
    }

    /// Converts the remark, with the verdict of the review that it belongs to.
    pub(super) fn into_comment(self, reviews: &BTreeMap<u64, Option<ReviewVerdict>>) -> Comment {
        let (path, line) = (self.path.unwrap_or_default(), self.line.or(self.position));
        let hunk = self.diff_hunk.filter(|hunk| !hunk.is_empty());
        let verdict =
            self.pull_request_review_id.and_then(|id| reviews.get(&id).copied()).flatten();
        let id = self.in_reply_to_id.unwrap_or(self.comment.id).to_string();
        let thread = Some(RemarkThread { id, resolved: self.resolver });
        let kind = CommentKind::Remark { path, line, hunk };
        Comment { kind, verdict, thread, ..self.comment.into_comment() }
    }
}

impl WireRepository {
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Converts an entry of a list; `None` without a name.
    pub(super) fn into_found(self) -> Option<FoundRepository> {
        Some(FoundRepository {
            full_name: self.full_name?,
            is_archived: self.archived,
            has_issues: self.has_issues.unwrap_or(true),
            may_push: self.permissions.and_then(|permissions| permissions.push),
        })
    }

    pub(super) fn may_push(&self) -> bool {
        self.permissions.as_ref().and_then(|permissions| permissions.push).unwrap_or(false)
    }
}

impl WireToken {
    pub(super) fn login(self) -> Option<String> {
        self.owner.map(|owner| owner.login)
    }
}

/// Returns the login, with the server's placeholder for a deleted account.
fn login(user: Option<WireUser>) -> String {
    user.map_or_else(|| "ghost".to_owned(), |user| user.login)
}

fn names(labels: Option<Vec<WireLabel>>) -> Vec<String> {
    labels.unwrap_or_default().into_iter().map(|label| label.name).collect()
}

fn logins(users: Option<Vec<WireUser>>) -> Vec<String> {
    users.unwrap_or_default().into_iter().map(|user| user.login).collect()
}

/// A webhook; its secret is not sent.
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

/// Parses a body as each kind of response, for the fuzz target.
pub(crate) fn read_any(body: &[u8]) {
    use serde_json::from_slice;
    drop(from_slice(body).map(|it: WirePull| it.into_pull(String::new())));
    drop(from_slice(body).map(|it: WireIssue| it.into_issue(String::new())));
    drop(from_slice(body).map(WireComment::into_comment));
    drop(from_slice(body).map(WireReview::into_comment));
    drop(from_slice(body).map(|it: WireRemark| it.into_comment(&BTreeMap::new())));
    drop(from_slice(body).map(WireEvent::into_event));
    drop(from_slice(body).map(WireHook::into_webhook));
    drop(from_slice::<super::checks::WireCombined>(body));
    drop(from_slice::<super::checks::WireCheckRuns>(body));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MERGED: &str = include_str!("../../tests/samples/api_get_pull_merged.json");
    const FROM_FORK: &str = include_str!("../../tests/samples/api_get_pull_open_from_fork.json");
    const LIST: &str = include_str!("../../tests/samples/api_list_pulls.json");
    const COMMENT: &str = include_str!("../../tests/samples/api_post_comment.json");
    const COMMENTS: &str = include_str!("../../tests/samples/api_issue_comments_pr.json");
    const ISSUE: &str = include_str!("../../tests/samples/api_get_issue.json");
    const ISSUE_THAT_IS_PR: &str =
        include_str!("../../tests/samples/api_get_issue_that_is_pr.json");
    const REVIEWS: &str = include_str!("../../tests/samples/api_pull_reviews.json");
    const REMARKS: &str = include_str!("../../tests/samples/api_pull_review_comments.json");
    const LABELS: &str = include_str!("../../tests/samples/api_list_labels.json");

    fn read_pull(text: &str) -> PullRequest {
        let wire: WirePull = serde_json::from_str(text).unwrap();
        wire.into_pull("https://git.example/a/b/pulls/9".to_owned())
    }

    #[test]
    fn a_merged_pull_request_is_closed_and_merged() {
        let pull = read_pull(MERGED);
        assert_eq!((pull.number, pull.title.as_str()), (3, "One"));
        assert_eq!(pull.url, "https://gitea.example.test/alice/hooks/pulls/3");
        assert_eq!(
            (pull.state, pull.merged, pull.mergeable),
            (ThreadState::Closed, true, Some(true))
        );
        assert_eq!((pull.base_branch.as_str(), pull.author.as_str()), ("main", "bot1"));
        assert!(!pull.from_fork);
    }

    #[test]
    fn a_pull_request_from_a_fork_is_known_as_such() {
        let pull = read_pull(FROM_FORK);
        assert!(pull.is_open() && pull.from_fork);
        assert_eq!(pull.head_branch, "evil");
        assert_eq!(pull.head_sha, "22ae629398a82910ba5dd962b4238a7a5dc63d62");
        let list: Vec<WirePull> = serde_json::from_str(LIST).unwrap();
        assert_eq!(list.len(), 1);
    }

    #[test]
    fn comments_and_labels_are_read() {
        let comment: WireComment = serde_json::from_str(COMMENT).unwrap();
        assert_eq!(comment.into_comment().author, "bot1");
        let comments: Vec<WireComment> = serde_json::from_str(COMMENTS).unwrap();
        assert_eq!(comments[0].body.as_deref(), Some("please rename foo"));
        let labels: Vec<WireLabel> = serde_json::from_str(LABELS).unwrap();
        assert_eq!(labels[1].name, "bot-bottle:implementer");
    }

    #[test]
    fn an_issue_is_distinguished_from_a_pull_request() {
        let issue: WireIssue = serde_json::from_str(ISSUE).unwrap();
        let issue = issue.into_issue(String::new()).unwrap();
        assert_eq!((issue.number, issue.title.as_str()), (1, "New title"));
        assert_eq!(issue.url, "https://gitea.example.test/alice/hooks/issues/1");
        assert_eq!((issue.author.as_str(), issue.body.as_str()), ("alice", "new body"));
        assert_eq!(issue.labels, ["bot-bottle:implementer"]);
        assert!(issue.assignees.contains(&"bot1".to_owned()), "{:?}", issue.assignees);
        let pull: WireIssue = serde_json::from_str(ISSUE_THAT_IS_PR).unwrap();
        assert_eq!(pull.into_issue(String::new()), None);
    }

    #[test]
    fn reviews_and_their_remarks_are_read() {
        let reviews: Vec<WireReview> = serde_json::from_str(REVIEWS).unwrap();
        assert!(reviews[0].has_remarks());
        let verdicts = reviews.iter().map(|review| (review.id, review.verdict())).collect();
        let whole: Vec<Comment> =
            reviews.into_iter().filter_map(WireReview::into_comment).collect();
        assert_eq!(
            (whole[0].body.as_str(), &whole[0].kind),
            ("overall remark", &CommentKind::Review)
        );
        let remarks: Vec<WireRemark> = serde_json::from_str(REMARKS).unwrap();
        let remark = remarks.into_iter().next().unwrap().into_comment(&verdicts);
        let CommentKind::Remark { path, line, hunk } = remark.kind else { panic!("a remark") };
        assert_eq!((remark.body.as_str(), path.as_str(), line), ("inline nit", "a.txt", Some(2)));
        assert!(hunk.is_some_and(|hunk| hunk.starts_with("@@")));
        assert_eq!(remark.verdict, whole[0].verdict);
        assert!(remark.created_at.is_some());
    }

    #[test]
    fn a_review_says_what_it_decides() {
        let verdict = |state: &str| {
            let text = format!(r#"{{"id":1,"body":"","state":"{state}"}}"#);
            let review: WireReview = serde_json::from_str(&text).unwrap();
            (review.verdict(), review.into_comment().is_some())
        };
        for state in ["REQUEST_CHANGES", "CHANGES_REQUESTED"] {
            assert_eq!(verdict(state), (Some(ReviewVerdict::ChangesRequested), true), "{state}");
        }
        assert_eq!(verdict("APPROVED"), (Some(ReviewVerdict::Approved), false));
        assert_eq!(verdict("COMMENTED"), (Some(ReviewVerdict::Commented), false));
        assert_eq!(verdict("PENDING"), (None, false));
        let dismissed = r#"{"id":1,"body":"x","state":"REQUEST_CHANGES","dismissed":true}"#;
        let review: WireReview = serde_json::from_str(dismissed).unwrap();
        assert_eq!(review.into_comment().and_then(|comment| comment.verdict), None);
    }

    #[test]
    fn events_say_who_labelled_and_who_assigned() {
        let event = |text: &str| {
            let event: WireEvent = serde_json::from_str(text).unwrap();
            event.into_event().map(|event| (event.actor, event.change))
        };
        let labelled = || IssueChange::Labelled("x".to_owned());
        let gitea =
            r#"{"id":1,"type":"label","body":"1","user":{"login":"ann"},"label":{"name":"x"}}"#;
        assert_eq!(event(gitea), Some(("ann".to_owned(), labelled())));
        let removed =
            r#"{"id":1,"type":"label","body":"","user":{"login":"ann"},"label":{"name":"x"}}"#;
        assert_eq!(event(removed), None);
        let github = r#"{"id":1,"event":"labeled","actor":{"login":"ann"},"label":{"name":"x"}}"#;
        assert_eq!(event(github), Some(("ann".to_owned(), labelled())));
        let assigned = r#"{"id":1,"event":"assigned","actor":{"login":"bot"},
            "assigner":{"login":"ann"},"assignee":{"login":"bot"}}"#;
        let change = IssueChange::Assigned("bot".to_owned());
        assert_eq!(event(assigned), Some(("ann".to_owned(), change)));
        assert_eq!(event(r#"{"id":1,"event":"closed","actor":{"login":"ann"}}"#), None);
    }

    #[test]
    fn a_deleted_branch_keeps_its_name() {
        let text = r#"{"number":9,"title":"t","body":null,"state":"odd","html_url":"javascript:x",
            "head":{"label":"bob:forklift/x","ref":"refs/pull/9/head","sha":"","repo_id":-1},
            "base":{"label":"main","ref":"main","repo_id":1}}"#;
        let pull = read_pull(text);
        assert_eq!(pull.head_branch, "forklift/x");
        assert_eq!(pull.url, "https://git.example/a/b/pulls/9");
        assert_eq!((pull.state, pull.merged), (ThreadState::Other("odd".to_owned()), false));
        assert!(pull.from_fork);
    }
}
