//! What the server sends. Only what is used is read, and what may be missing or null on some version is optional.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::pull::{Comment, PullRequest, PullState};

/// How far the server's clock may be from ours.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(10);
/// What takes the place of a branch that was deleted.
const GONE_BRANCH_PREFIX: &str = "refs/pull/";

#[derive(Debug, Deserialize)]
pub(super) struct WirePull {
    pub(super) number: u64,
    html_url: Option<String>,
    title: String,
    body: Option<String>,
    state: String,
    merged: Option<bool>,
    mergeable: Option<bool>,
    user: Option<WireUser>,
    head: WireEnd,
    base: WireEnd,
}

/// One end of a pull request.
#[derive(Debug, Deserialize)]
struct WireEnd {
    label: Option<String>,
    #[serde(rename = "ref")]
    name: String,
    sha: Option<String>,
    /// -1 once the repository is gone.
    repo_id: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireUser {
    pub(super) login: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireComment {
    id: u64,
    html_url: Option<String>,
    user: Option<WireUser>,
    body: Option<String>,
    created_at: Option<Timestamp>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireLabel {
    pub(super) id: u64,
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireRepository {
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
    /// `pulls_page` is where this repository's pull requests are, for a server that names no page.
    pub(super) fn into_pull(self, pulls_page: &str) -> PullRequest {
        let Self { number, html_url, title, body, state, merged, mergeable, user, head, base } =
            self;
        let from_fork = head.repo_id != base.repo_id;
        PullRequest {
            number,
            url: page(html_url).unwrap_or_else(|| format!("{pulls_page}/{number}")),
            title,
            body: body.unwrap_or_default(),
            state: PullState::parse(&state),
            merged: merged.unwrap_or(false),
            mergeable,
            head_sha: head.sha.clone().unwrap_or_default(),
            head_branch: head.branch(),
            from_fork,
            base_branch: base.branch(),
            author: user.map(|user| user.login).unwrap_or_default(),
        }
    }
}

impl WireEnd {
    /// The label keeps the name of a branch that was deleted, after the owner if that is another one.
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
            url: page(self.html_url).unwrap_or_default(),
            author: self.user.map(|user| user.login).unwrap_or_default(),
            body: self.body.unwrap_or_default(),
        }
    }

    /// Whether this can be what was posted with these words since then.
    pub(super) fn may_be(&self, body: &str, began: Timestamp) -> bool {
        let is_recent = self.created_at.is_some_and(|at| at.duration_since(began) > -CLOCK_SKEW);
        is_recent && self.body.as_deref().is_some_and(|own| own.trim_end() == body.trim_end())
    }
}

impl WireRepository {
    pub(super) fn may_push(&self) -> bool {
        self.permissions.as_ref().and_then(|permissions| permissions.push).unwrap_or(false)
    }
}

impl WireToken {
    pub(super) fn login(self) -> Option<String> {
        self.owner.map(|owner| owner.login)
    }
}

/// A page that people can open, and nothing else.
fn page(url: Option<String>) -> Option<String> {
    let is_page = |url: &String| {
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        is_web && url.bytes().all(|byte| byte.is_ascii_graphic())
    };
    url.filter(is_page)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MERGED: &str = include_str!("../../tests/samples/api_get_pull_merged.json");
    const FROM_FORK: &str = include_str!("../../tests/samples/api_get_pull_open_from_fork.json");
    const LIST: &str = include_str!("../../tests/samples/api_list_pulls.json");
    const COMMENT: &str = include_str!("../../tests/samples/api_post_comment.json");
    const COMMENTS: &str = include_str!("../../tests/samples/api_issue_comments_pr.json");
    const LABELS: &str = include_str!("../../tests/samples/api_list_labels.json");

    fn read_pull(text: &str) -> PullRequest {
        let wire: WirePull = serde_json::from_str(text).unwrap();
        wire.into_pull("https://git.example/a/b/pulls")
    }

    #[test]
    fn a_merged_pull_request_is_closed_and_merged() {
        let pull = read_pull(MERGED);
        assert_eq!((pull.number, pull.title.as_str()), (3, "One"));
        assert_eq!(pull.url, "https://gitea.example.test/alice/hooks/pulls/3");
        assert_eq!(
            (pull.state, pull.merged, pull.mergeable),
            (PullState::Closed, true, Some(true))
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
        let posted: Timestamp = comment.created_at.unwrap();
        assert!(comment.may_be("hello\n", posted));
        assert!(!comment.may_be("hello there", posted));
        assert!(!comment.may_be("hello", posted + SignedDuration::from_hours(1)));
        assert_eq!(comment.into_comment().author, "bot1");
        let comments: Vec<WireComment> = serde_json::from_str(COMMENTS).unwrap();
        assert_eq!(comments[0].body.as_deref(), Some("please rename foo"));
        let labels: Vec<WireLabel> = serde_json::from_str(LABELS).unwrap();
        assert_eq!((labels[1].id, labels[1].name.as_str()), (1, "bot-bottle:implementer"));
    }

    #[test]
    fn a_deleted_branch_keeps_its_name() {
        let text = r#"{"number":9,"title":"t","body":null,"state":"odd","html_url":"javascript:x",
            "head":{"label":"bob:forklift/x","ref":"refs/pull/9/head","sha":"","repo_id":-1},
            "base":{"label":"main","ref":"main","repo_id":1}}"#;
        let pull = read_pull(text);
        assert_eq!(pull.head_branch, "forklift/x");
        assert_eq!(pull.url, "https://git.example/a/b/pulls/9");
        assert_eq!((pull.state, pull.merged), (PullState::Other("odd".to_owned()), false));
        assert!(pull.from_fork);
    }
}
