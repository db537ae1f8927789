//! GitLab, over its REST API.
//!
//! A project is one segment of every path, however many groups it lies in. Issues and merge requests are
//! numbered separately. Comments are notes, and the system's own notes are among them.
//!
//! - `issue` the issues before an issue, and attachments
//! - `review` answers to remarks, reactions, reviewers, and the jobs of pipelines
//! - `wire` the bodies of responses

mod issue;
mod review;
mod wire;

use hyper::Method;
use model::id::BranchName;
use model::secret::Secret;
use serde_json::{Value, json};

use crate::address::{WebBase, encode};
use crate::error::{ForgeError, ForgeResult};
use crate::forge::ForgeOptions;
use crate::http::{Client, HttpRequest, MissingLink, Protocol, RetryPolicy};
use crate::kind::ForgeKind;
use crate::provider::ForgeProvider;
use crate::pull::{DraftMark, NewPull, PullEdit, PullRequest};
use crate::thread::{Account, Comment, Issue, IssueEvent, Numbering, Thread};
use crate::webhook::{NewWebhook, Webhook};
pub(crate) use wire::read_any;

use wire::{
    GitlabHook, GitlabIssue, GitlabUser, WireDiscussion, WireLabelEvent, WireMergeRequest,
    WireNote, WireProject,
};

const PROTOCOL: Protocol = Protocol {
    token_word: "Bearer",
    accept: "application/json",
    headers: &[],
    page_size_field: "per_page",
    page_size: 100,
    total_header: "x-total",
    missing_link: MissingLink::LastPage,
};

const DRAFT: DraftMark = DraftMark::Prefix("Draft: ");

#[derive(Debug)]
pub struct Gitlab {
    client: Client,
    api: WebBase,
    page: String,
    /// The project with all its groups.
    project: String,
}

impl Gitlab {
    /// Prepares a client for one project, given with all its groups. Nothing is sent yet.
    pub(crate) async fn open(
        web: WebBase,
        project: String,
        token: &Secret,
        options: &ForgeOptions,
    ) -> ForgeResult<Self> {
        // The server for SSH on the port of the web has another name than the web.
        let host = web.host().strip_prefix("altssh.").map(str::to_owned);
        let web = host.into_iter().fold(web, |web, host| web.with_host(&host));
        let client = Client::open(&web, &PROTOCOL, Some(token), options).await?;
        let page = web.url(&project.split('/').collect::<Vec<_>>());
        Ok(Self { client, api: web.below(&["api", "v4"]), page, project })
    }

    async fn find_user(&self, login: &str) -> ForgeResult<Option<GitlabUser>> {
        let url = format!("{}?username={}", self.api.url(&["users"]), encode(login));
        let request = HttpRequest::get(url, format!("look for the account {login}"));
        let found: Vec<GitlabUser> = self.client.json(&request).await?;
        Ok(found.into_iter().find(|user| user.username.eq_ignore_ascii_case(login)))
    }

    async fn merge_request(&self, request: &HttpRequest) -> ForgeResult<PullRequest> {
        let found: WireMergeRequest = self.client.json(request).await?;
        Ok(self.show_pull(found))
    }

    fn show_pull(&self, found: WireMergeRequest) -> PullRequest {
        let page = self.page_of(Thread::Pull(found.iid));
        found.into_pull(page)
    }

    fn show_issue(&self, issue: GitlabIssue) -> Issue {
        let page = self.page_of(Thread::Issue(issue.iid));
        issue.into_issue(page)
    }

    fn project_url(&self, segments: &[&str]) -> String {
        self.api.url(&[&["projects", self.project.as_str()], segments].concat())
    }

    fn thread_url(&self, thread: Thread, segments: &[&str]) -> String {
        let list = match thread {
            Thread::Issue(_) => "issues",
            Thread::Pull(_) => "merge_requests",
        };
        self.project_url(&[&[list, thread.number().to_string().as_str()], segments].concat())
    }

    /// Returns a thread's page, for display.
    fn page_of(&self, thread: Thread) -> String {
        let below = match thread {
            Thread::Issue(number) => ForgeKind::GitLab.issue_page(number),
            Thread::Pull(number) => ForgeKind::GitLab.pull_page(number),
        };
        format!("{}{below}", self.page)
    }
}

impl ForgeProvider for Gitlab {
    fn numbering(&self) -> Numbering {
        Numbering::Separate
    }

    fn retry(&self) -> &RetryPolicy {
        self.client.retry()
    }

    async fn whoami(&self) -> ForgeResult<Account> {
        let request = HttpRequest::get(self.project_url(&[]), "read the project");
        let project: WireProject = self.client.json(&request).await?;
        let user = HttpRequest::get(self.api.url(&["user"]), "read the account");
        let user = self.client.json_if_allowed::<GitlabUser>(&user).await?;
        Ok(Account { login: user.map(|user| user.username), may_push: project.may_push() })
    }

    async fn is_org_member(&self, org: &str, user: &str) -> ForgeResult<bool> {
        // A group hidden from this account is not found, and that must not pass for "not a member".
        let request =
            HttpRequest::get(self.api.url(&["groups", org]), format!("look for the group {org}"));
        if !self.client.is_there(&request).await? {
            return Err(ForgeError::members_hidden(self.client.host(), org));
        }
        let Some(account) = self.find_user(user).await? else { return Ok(false) };
        let url = self.api.url(&["groups", org, "members", "all", &account.id.to_string()]);
        let request = HttpRequest::get(url, format!("say whether {user} is a member of {org}"));
        self.client.is_there(&request).await
    }

    async fn read_issue(&self, number: u64) -> ForgeResult<Issue> {
        let url = self.thread_url(Thread::Issue(number), &[]);
        let request = HttpRequest::get(url, format!("read issue #{number}"));
        let issue: GitlabIssue = self.client.json(&request).await?;
        Ok(self.show_issue(issue))
    }

    async fn open_issues(&self, labels: &[String]) -> ForgeResult<Vec<Issue>> {
        let mut query = "state=opened&order_by=created_at&sort=asc".to_owned();
        if !labels.is_empty() {
            query.push_str(&format!("&labels={}", encode(&labels.join(","))));
        }
        let url = self.project_url(&["issues"]);
        let id_of = |issue: &GitlabIssue| issue.iid;
        let wire = self.client.list(&url, &query, "list the issues", id_of).await?;
        Ok(wire.into_iter().map(|issue| self.show_issue(issue)).collect())
    }

    async fn read_pr(&self, number: u64) -> ForgeResult<PullRequest> {
        let url = self.thread_url(Thread::Pull(number), &[]);
        let url = format!("{url}?include_diverged_commits_count=true");
        self.merge_request(&HttpRequest::get(url, format!("read merge request !{number}"))).await
    }

    async fn open_pulls(&self, head: Option<&BranchName>) -> ForgeResult<Vec<PullRequest>> {
        let mut query = "state=opened&order_by=created_at&sort=asc".to_owned();
        if let Some(head) = head {
            query.push_str(&format!("&source_branch={}", encode(head.as_str())));
        }
        let url = self.project_url(&["merge_requests"]);
        let id_of = |found: &WireMergeRequest| found.iid;
        let wire = self.client.list(&url, &query, "list the merge requests", id_of).await?;
        Ok(wire.into_iter().map(|found| self.show_pull(found)).collect())
    }

    async fn make_pull(&self, pull: &NewPull) -> ForgeResult<PullRequest> {
        let body = json!({
            "title": DRAFT.title(&pull.title, pull.draft),
            "description": pull.body,
            "source_branch": pull.head.as_str(),
            "target_branch": pull.base.as_str(),
        });
        let url = self.project_url(&["merge_requests"]);
        self.merge_request(&HttpRequest::post(url, body, "open the merge request")).await
    }

    async fn edit_pull(&self, number: u64, edit: &PullEdit<'_>) -> ForgeResult<PullRequest> {
        let fields = Some(edit.fields("description", ("state_event", "close"), DRAFT));
        let url = self.thread_url(Thread::Pull(number), &[]);
        let action = format!("{} merge request !{number}", edit.verb());
        self.merge_request(&HttpRequest::set(Method::PUT, url, fields, action)).await
    }

    /// Reads the comments. Remarks on lines are among the notes, so they are included.
    async fn plain_comments(&self, thread: Thread) -> ForgeResult<Vec<Comment>> {
        let action = format!("read the notes on {}", Numbering::Separate.reference(thread));
        let page = self.page_of(thread);
        if let Thread::Pull(_) = thread {
            let url = self.thread_url(thread, &["discussions"]);
            let found = self.client.list(&url, "", &action, WireDiscussion::number).await?;
            let comments = found.into_iter().flat_map(|it: WireDiscussion| it.into_comments(&page));
            return Ok(comments.collect());
        }
        let url = self.thread_url(thread, &["notes"]);
        let query = "order_by=created_at&sort=asc";
        let id_of = |note: &WireNote| note.id;
        let wire = self.client.list(&url, query, &action, id_of).await?;
        Ok(wire.into_iter().filter_map(|note| note.into_comment(&page)).collect())
    }

    async fn review_comments(&self, _thread: Thread) -> ForgeResult<Vec<Comment>> {
        Ok(Vec::new())
    }

    /// Reads who set which label. Assignments are notes of the system, which are texts for people.
    async fn issue_events(&self, number: u64) -> ForgeResult<Vec<IssueEvent>> {
        let url = self.thread_url(Thread::Issue(number), &["resource_label_events"]);
        let action = format!("read the events of #{number}");
        let id_of = |event: &WireLabelEvent| event.id;
        let events = self.client.list(&url, "", &action, id_of).await?;
        Ok(events.into_iter().filter_map(WireLabelEvent::into_event).collect())
    }

    async fn make_comment(&self, thread: Thread, body: &str) -> ForgeResult<Comment> {
        let url = self.thread_url(thread, &["notes"]);
        let action = format!("comment on {}", Numbering::Separate.reference(thread));
        let request = HttpRequest::post(url, json!({ "body": body }), action);
        let note: WireNote = self.client.json(&request).await?;
        let odd = || self.client.unreadable(&request, "it is a note of the system");
        note.into_comment(&self.page_of(thread)).ok_or_else(odd)
    }

    async fn edit_comment(&self, thread: Thread, id: u64, body: &str) -> ForgeResult<()> {
        let url = self.thread_url(thread, &["notes", &id.to_string()]);
        let action = format!("edit a note on {}", Numbering::Separate.reference(thread));
        let fields = Some(json!({ "body": body }));
        self.client.call(&HttpRequest::set(Method::PUT, url, fields, action)).await.map(drop)
    }

    async fn set_description(&self, thread: Thread, body: &str) -> ForgeResult<()> {
        let action = format!("update the description of {}", Numbering::Separate.reference(thread));
        let fields = Some(json!({ "description": body }));
        let request = HttpRequest::set(Method::PUT, self.thread_url(thread, &[]), fields, action);
        self.client.call(&request).await.map(drop)
    }

    async fn webhooks(&self) -> ForgeResult<Vec<Webhook>> {
        let url = self.project_url(&["hooks"]);
        let id_of = |hook: &GitlabHook| hook.id;
        let hooks = self.client.list(&url, "", "list the webhooks", id_of).await?;
        Ok(hooks.into_iter().map(GitlabHook::into_webhook).collect())
    }

    async fn make_webhook(&self, hook: &NewWebhook) -> ForgeResult<Webhook> {
        let url = self.project_url(&["hooks"]);
        let request = HttpRequest::post(url, webhook_fields(hook), "make the webhook");
        Ok(self.client.json::<GitlabHook>(&request).await?.into_webhook())
    }

    async fn edit_webhook(&self, id: u64, hook: &NewWebhook) -> ForgeResult<Option<Webhook>> {
        let url = self.project_url(&["hooks", &id.to_string()]);
        let fields = Some(webhook_fields(hook));
        let request = HttpRequest::set(Method::PUT, url, fields, "replace the webhook");
        Ok(Some(self.client.json::<GitlabHook>(&request).await?.into_webhook()))
    }

    async fn drop_webhook(&self, id: u64) -> ForgeResult<()> {
        let url = self.project_url(&["hooks", &id.to_string()]);
        let request = HttpRequest::set(Method::DELETE, url, None, "remove the webhook");
        self.client.is_there(&request).await.map(drop)
    }
}

fn webhook_fields(hook: &NewWebhook) -> Value {
    json!({
        "url": hook.url, "token": hook.secret.expose(), "enable_ssl_verification": true,
        "issues_events": true, "note_events": true, "merge_requests_events": true, "pipeline_events": true,
        "push_events": false,
    })
}
