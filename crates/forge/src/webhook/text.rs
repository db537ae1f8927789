//! Texts of issues in deliveries, each with the account that changed something. Pure.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::kind::ForgeKind;

/// Text of an issue as a delivery has it, and the account whose change the delivery reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredText {
    pub sender: String,
    pub title: String,
    pub body: String,
}

/// Changes of an issue whose sender has read the text, or wrote it.
const TEXT_ACTIONS: [&str; 8] =
    ["opened", "edited", "assigned", "labeled", "label_updated", "reopened", "open", "update"];

/// Reads the text of an issue from a stored delivery that was verified; `None` if the delivery is about something else.
pub(super) fn read_text(kind: ForgeKind, body: &[u8]) -> Option<DeliveredText> {
    match kind {
        ForgeKind::Gitea | ForgeKind::GitHub => {
            let body: GithubText = serde_json::from_slice(body).ok()?;
            let issue =
                body.issue.filter(|_| body.comment.is_none() && body.pull_request.is_none())?;
            let acts = TEXT_ACTIONS.contains(&body.action.as_str());
            acts.then(|| DeliveredText {
                sender: body.sender.login,
                title: issue.title,
                body: issue.body.unwrap_or_default(),
            })
        }
        ForgeKind::GitLab => {
            let body: GitlabText = serde_json::from_slice(body).ok()?;
            let is_issue = ["issue", "work_item"].contains(&body.object_kind.as_str());
            let issue = body.object_attributes;
            let acts = issue.action.as_deref().is_some_and(|it| TEXT_ACTIONS.contains(&it));
            (is_issue && acts).then(|| DeliveredText {
                sender: body.user.username,
                title: issue.title,
                body: issue.description.unwrap_or_default(),
            })
        }
        ForgeKind::Folder => None,
    }
}

#[derive(Deserialize)]
struct GithubText {
    action: String,
    issue: Option<GithubIssueText>,
    sender: GithubSender,
    /// Present if the delivery is about a comment.
    comment: Option<IgnoredAny>,
    pull_request: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct GithubIssueText {
    title: String,
    body: Option<String>,
}

#[derive(Deserialize)]
struct GitlabText {
    object_kind: String,
    user: GitlabSender,
    object_attributes: GitlabIssueText,
}

#[derive(Deserialize)]
struct GitlabSender {
    username: String,
}

#[derive(Deserialize)]
struct GitlabIssueText {
    title: String,
    description: Option<String>,
    action: Option<String>,
}

#[derive(Deserialize)]
struct GithubSender {
    login: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_issue_has_the_sender_of_its_change() {
        let text = |kind: ForgeKind, body: &str| {
            kind.read_delivered_text(body.as_bytes()).map(|it| (it.sender, it.title, it.body))
        };
        let ann = Some(("ann".to_owned(), "T".to_owned(), "B".to_owned()));
        let edited = r#"{"action":"edited","issue":{"number":3,"title":"T","body":"B"},
            "sender":{"login":"ann"}}"#;
        assert_eq!(text(ForgeKind::GitHub, edited), ann);
        assert_eq!(text(ForgeKind::Gitea, edited), ann);
        let closed = edited.replace("edited", "closed");
        assert_eq!(text(ForgeKind::GitHub, &closed), None);
        let comment = edited.replace("\"sender\"", "\"comment\":{},\"sender\"");
        assert_eq!(text(ForgeKind::GitHub, &comment), None, "a comment tells nothing of the text");
        let gitlab = r#"{"object_kind":"issue","user":{"username":"ann"},
            "object_attributes":{"title":"T","description":"B","action":"update"}}"#;
        assert_eq!(text(ForgeKind::GitLab, gitlab), ann);
    }
}
