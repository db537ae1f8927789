//! Bodies of responses. Only fields that are used are parsed.

use jiff::Timestamp;
use serde::Deserialize;

use crate::check_report::{CheckReport, CheckState};
use crate::http::read_page;
use crate::organisation::FoundRepository;
use crate::pull::{PullRequest, split_draft};
use crate::thread::{
    Comment, CommentKind, Issue, IssueChange, IssueEvent, RemarkThread, ThreadState,
};
use crate::webhook::Webhook;

/// Access level ("developer") from which an account may push.
const PUSH_LEVEL: u64 = 30;

#[derive(Debug, Deserialize)]
pub(super) struct WireMergeRequest {
    pub(super) iid: u64,
    web_url: Option<String>,
    title: String,
    description: Option<String>,
    state: String,
    author: Option<GitlabUser>,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    assignees: Vec<GitlabUser>,
    source_branch: String,
    target_branch: String,
    sha: Option<String>,
    /// Null once the fork is gone.
    source_project_id: Option<u64>,
    target_project_id: Option<u64>,
    detailed_merge_status: Option<String>,
    user_notes_count: Option<u64>,
    draft: Option<bool>,
    has_conflicts: Option<bool>,
    /// Only where it is asked for.
    diverged_commits_count: Option<u64>,
    /// Missing in lists.
    head_pipeline: Option<WirePipeline>,
}

#[derive(Debug, Deserialize)]
struct WirePipeline {
    id: u64,
    status: String,
    sha: Option<String>,
    web_url: Option<String>,
}

/// Notes that belong together.
#[derive(Debug, Deserialize)]
pub(super) struct WireDiscussion {
    pub(super) id: String,
    #[serde(default)]
    individual_note: bool,
    #[serde(default)]
    notes: Vec<WireNote>,
}

/// A job of a pipeline.
#[derive(Debug, Deserialize)]
pub(super) struct WirePipelineJob {
    pub(super) id: u64,
    pub(super) name: String,
}

/// A reaction to a note.
#[derive(Debug, Deserialize)]
pub(super) struct WireAward {
    pub(super) name: String,
    pub(super) user: Option<GitlabUser>,
}

#[derive(Debug, Deserialize)]
pub(super) struct GitlabIssue {
    pub(super) iid: u64,
    web_url: Option<String>,
    title: String,
    description: Option<String>,
    state: String,
    author: Option<GitlabUser>,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    assignees: Vec<GitlabUser>,
    user_notes_count: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct GitlabUser {
    pub(super) id: u64,
    pub(super) username: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireNote {
    pub(super) id: u64,
    body: Option<String>,
    author: Option<GitlabUser>,
    created_at: Option<Timestamp>,
    #[serde(default)]
    system: bool,
    #[serde(rename = "type")]
    note_type: Option<String>,
    position: Option<WirePosition>,
    resolved: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct WirePosition {
    new_path: Option<String>,
    old_path: Option<String>,
    new_line: Option<u64>,
}

/// A label that was set or removed.
#[derive(Debug, Deserialize)]
pub(super) struct WireLabelEvent {
    pub(super) id: u64,
    user: Option<GitlabUser>,
    label: Option<GitlabLabel>,
    action: String,
}

#[derive(Debug, Deserialize)]
struct GitlabLabel {
    name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireProject {
    #[serde(default)]
    id: u64,
    path_with_namespace: Option<String>,
    #[serde(default)]
    archived: bool,
    issues_access_level: Option<String>,
    permissions: Option<GitlabPermissions>,
}

#[derive(Debug, Deserialize)]
struct GitlabPermissions {
    project_access: Option<WireAccess>,
    group_access: Option<WireAccess>,
}

#[derive(Debug, Deserialize)]
struct WireAccess {
    access_level: u64,
}

impl WireMergeRequest {
    pub(super) fn into_pull(self, page: String) -> PullRequest {
        let Self { iid, web_url, title, description, state, author, labels, assignees, .. } = self;
        let Self { source_branch, target_branch, sha, detailed_merge_status, .. } = self;
        let (title, draft) = split_draft(title, self.draft);
        // A pipeline of an older commit says nothing about this one.
        let pipeline = self.head_pipeline.filter(|pipeline| pipeline.sha == sha);
        PullRequest {
            number: iid,
            url: read_page(web_url).unwrap_or(page),
            title,
            body: description.unwrap_or_default(),
            merged: state == "merged",
            state: ThreadState::parse(&state),
            mergeable: detailed_merge_status.as_deref().and_then(read_mergeable),
            from_fork: self.source_project_id != self.target_project_id,
            head_branch: source_branch,
            head_sha: sha.unwrap_or_default(),
            base_branch: target_branch,
            author: login(author),
            labels,
            assignees: logins(assignees),
            comments: self.user_notes_count,
            draft,
            has_conflicts: self.has_conflicts,
            is_behind: self.diverged_commits_count.is_some_and(|count| count > 0),
            checks: Some(pipeline.into_iter().map(WirePipeline::into_report).collect()),
        }
    }
}

impl WirePipeline {
    fn into_report(self) -> CheckReport {
        CheckReport {
            id: self.id,
            name: "pipeline".to_owned(),
            state: CheckState::parse(&self.status),
            description: String::new(),
            url: read_page(self.web_url).unwrap_or_default(),
        }
    }
}

impl WireDiscussion {
    /// Number of its first note: its own id is a text.
    pub(super) fn number(&self) -> u64 {
        self.notes.first().map_or(0, |note| note.id)
    }

    /// Converts its notes; remarks and answers to them have the thread.
    pub(super) fn into_comments(self, page: &str) -> Vec<Comment> {
        let Self { id, individual_note, notes } = self;
        let is_remark = notes.first().is_some_and(|note| note.position.is_some());
        let comment = |note: WireNote| {
            let thread = RemarkThread { id: id.clone(), resolved: note.resolved };
            let comment = note.into_comment(page)?;
            let thread = (is_remark && !individual_note).then_some(thread);
            Some(Comment { thread, ..comment })
        };
        notes.into_iter().filter_map(comment).collect()
    }
}

impl GitlabIssue {
    pub(super) fn into_issue(self, page: String) -> Issue {
        let Self { iid, web_url, title, description, state, author, labels, assignees, .. } = self;
        Issue {
            number: iid,
            url: read_page(web_url).unwrap_or(page),
            title,
            body: description.unwrap_or_default(),
            state: ThreadState::parse(&state),
            author: login(author),
            labels,
            assignees: logins(assignees),
            comments: self.user_notes_count,
        }
    }
}

impl WireNote {
    /// Converts the note; `None` if it is the system's.
    pub(super) fn into_comment(self, page: &str) -> Option<Comment> {
        if self.system {
            return None;
        }
        let kind = match (self.note_type.as_deref(), self.position) {
            (Some("DiffNote"), Some(place)) => CommentKind::Remark {
                path: place.new_path.or(place.old_path).unwrap_or_default(),
                line: place.new_line,
                hunk: None,
            },
            (Some("DiscussionNote"), _) => CommentKind::Review,
            _ => CommentKind::Plain,
        };
        Some(Comment {
            id: self.id,
            kind,
            url: format!("{page}#note_{}", self.id),
            author: login(self.author),
            body: self.body.unwrap_or_default(),
            created_at: self.created_at,
            verdict: None,
            thread: None,
        })
    }
}

impl WireLabelEvent {
    /// Converts the event; `None` if a label was removed or is gone.
    pub(super) fn into_event(self) -> Option<IssueEvent> {
        let label = self.label.filter(|_| self.action == "add")?;
        Some(IssueEvent { actor: login(self.user), change: IssueChange::Labelled(label.name) })
    }
}

impl WireProject {
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Converts an entry of a list; `None` without a name. Lists do not tell the access.
    pub(super) fn into_found(self) -> Option<FoundRepository> {
        let may_push = self.permissions.is_some().then(|| self.may_push());
        Some(FoundRepository {
            full_name: self.path_with_namespace?,
            is_archived: self.archived,
            has_issues: self.issues_access_level.as_deref() != Some("disabled"),
            may_push: may_push.filter(|may_push| *may_push),
        })
    }

    pub(super) fn may_push(&self) -> bool {
        let Some(permissions) = &self.permissions else { return false };
        let accesses = [&permissions.project_access, &permissions.group_access];
        accesses.into_iter().flatten().any(|access| access.access_level >= PUSH_LEVEL)
    }
}

/// Parses the merge status; `None` while the server computes it.
fn read_mergeable(status: &str) -> Option<bool> {
    match status {
        "mergeable" => Some(true),
        "unchecked" | "checking" | "preparing" | "approvals_syncing" => None,
        _ => Some(false),
    }
}

fn login(user: Option<GitlabUser>) -> String {
    user.map(|user| user.username).unwrap_or_default()
}

fn logins(users: Vec<GitlabUser>) -> Vec<String> {
    users.into_iter().map(|user| user.username).collect()
}

/// A webhook; its token is not sent.
#[derive(Debug, Deserialize)]
pub(super) struct GitlabHook {
    pub(super) id: u64,
    #[serde(default)]
    url: String,
    /// Status of deliveries. A webhook that failed too often is disabled, for a while or permanently.
    alert_status: Option<String>,
    #[serde(default)]
    issues_events: bool,
    #[serde(default)]
    note_events: bool,
    #[serde(default)]
    merge_requests_events: bool,
    #[serde(default)]
    pipeline_events: bool,
}

impl GitlabHook {
    pub(super) fn into_webhook(self) -> Webhook {
        let reported = [
            ("issues_events", self.issues_events),
            ("note_events", self.note_events),
            ("merge_requests_events", self.merge_requests_events),
            ("pipeline_events", self.pipeline_events),
        ];
        let events = reported.into_iter().filter(|(_, on)| *on).map(|(name, _)| name.to_owned());
        let active = self.alert_status.is_none_or(|status| status == "executable");
        Webhook { id: self.id, url: self.url, active, events: events.collect() }
    }
}

/// Parses a body as each kind of response, for the fuzz target.
pub(crate) fn read_any(body: &[u8]) {
    use serde_json::from_slice;
    drop(from_slice(body).map(|it: WireMergeRequest| it.into_pull(String::new())));
    drop(from_slice(body).map(|it: GitlabIssue| it.into_issue(String::new())));
    drop(from_slice(body).map(|it: WireNote| it.into_comment("")));
    drop(from_slice(body).map(WireLabelEvent::into_event));
    drop(from_slice(body).map(|it: WireDiscussion| it.into_comments("")));
    drop(from_slice(body).map(|it: WireProject| it.may_push()));
    drop(from_slice(body).map(GitlabHook::into_webhook));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_still_being_checked_is_neither_yes_nor_no() {
        assert_eq!(read_mergeable("mergeable"), Some(true));
        assert_eq!(read_mergeable("checking"), None);
        assert_eq!(read_mergeable("conflict"), Some(false));
        assert_eq!(read_mergeable("draft_status"), Some(false));
    }

    #[test]
    fn a_merged_one_is_closed_and_merged() {
        let text = r#"{"iid":3,"title":"t","description":null,"state":"merged","source_branch":"x",
            "target_branch":"main","source_project_id":null,"target_project_id":1}"#;
        let found: WireMergeRequest = serde_json::from_str(text).unwrap();
        let pull = found.into_pull("https://git.example/a/b/-/merge_requests/3".to_owned());
        assert_eq!((pull.state, pull.merged, pull.from_fork), (ThreadState::Closed, true, true));
        assert_eq!(pull.url, "https://git.example/a/b/-/merge_requests/3");
    }
}
