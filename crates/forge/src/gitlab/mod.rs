//! GitLab, over its REST API.
//!
//! A project is one segment of every path, however many groups it lies in. Issues and merge requests are numbered apart.
//! Comments are notes, and what the server notes by itself is among them.
//!
//! - `wire` what the server sends

mod wire;

use std::path::Path;

use hyper::Method;
use model::id::BranchName;
use model::secret::Secret;
use serde_json::{Map, Value, json};

use crate::address::{WebBase, encode_segment};
use crate::error::ForgeError;
use crate::http::{Ask, Client, Dialect, Paging, Patience, Silence};
use crate::provider::{Answer, Provider};
use crate::pull::{NewPull, PullEdit, PullRequest};
use crate::thread::{Account, Comment, Issue, IssueFilter, Numbering, Thread};
use crate::webhook::{NewWebhook, Webhook};
use wire::{WireHook, WireIssue, WireLabel, WireMergeRequest, WireNote, WireProject, WireUser};

const DIALECT: Dialect = Dialect {
    token_word: "Bearer",
    accept: "application/json",
    headers: &[],
    paging: Paging {
        size_field: "per_page",
        size: 100,
        total_header: "x-total",
        silence: Silence::End,
    },
};

/// One project on a GitLab server.
#[derive(Debug)]
pub struct Gitlab {
    client: Client,
    /// With all its groups.
    project: String,
}

impl Gitlab {
    /// Prepares to speak to a server about one project, given with all its groups. Nothing is sent yet.
    pub async fn open(
        base: WebBase,
        project: String,
        token: &Secret,
        ca_file: Option<&Path>,
        patience: Patience,
    ) -> Result<Self, ForgeError> {
        let host = base.host.strip_prefix("altssh.").unwrap_or(&base.host).to_owned();
        let base = WebBase { host, ..base };
        let client = Client::open(base, &DIALECT, Some(token), ca_file, patience).await?;
        Ok(Self { client, project })
    }

    async fn find_user(&self, login: &str) -> Answer<Option<WireUser>> {
        let path = format!("{}?username={}", self.api_path(&["users"]), encode_segment(login));
        let ask = Ask::get(path, format!("look for the account {login}"));
        let found: Vec<WireUser> = self.client.json(&ask).await?;
        Ok(found.into_iter().find(|user| user.username.eq_ignore_ascii_case(login)))
    }

    async fn merge_request(&self, ask: &Ask) -> Answer<PullRequest> {
        let found: WireMergeRequest = self.client.json(ask).await?;
        Ok(found.into_pull(&self.page_of("merge_requests")))
    }

    /// Setting values twice is setting them once, so it may be repeated.
    async fn edit_thread(&self, thread: Thread, fields: Value, action: String) -> Answer<()> {
        let path = self.thread_path(thread, &[]);
        self.client.call(&Ask::set(Method::PUT, path, Some(fields), action)).await?;
        Ok(())
    }

    fn api_path(&self, segments: &[&str]) -> String {
        self.client.base().path(&[&["api", "v4"], segments].concat())
    }

    fn project_path(&self, segments: &[&str]) -> String {
        self.api_path(&[&["projects", self.project.as_str()], segments].concat())
    }

    fn thread_path(&self, thread: Thread, segments: &[&str]) -> String {
        let number = thread.number().to_string();
        self.project_path(&[&[room_of(thread), number.as_str()], segments].concat())
    }

    /// A page of the project for people.
    fn page_of(&self, room: &str) -> String {
        let segments: Vec<&str> = self.project.split('/').chain(["-", room]).collect();
        self.client.base().page(&segments)
    }
}

impl Provider for Gitlab {
    fn numbering(&self) -> Numbering {
        Numbering::Separate
    }

    fn host(&self) -> String {
        self.client.base().host().to_owned()
    }

    fn patience(&self) -> &Patience {
        self.client.patience()
    }

    fn push_url(&self) -> String {
        let segments: Vec<&str> = self.project.split('/').collect();
        format!("{}.git", self.client.base().page(&segments))
    }

    async fn whoami(&self) -> Answer<Account> {
        let ask = Ask::get(self.project_path(&[]), "read the project");
        let project: WireProject = self.client.json(&ask).await?;
        let user = Ask::get(self.api_path(&["user"]), "read the account");
        let login = match self.client.json::<WireUser>(&user).await {
            Ok(user) => Some(user.username),
            Err(ForgeError::Forbidden { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(Account { login, may_push: project.may_push() })
    }

    async fn is_org_member(&self, org: &str, user: &str) -> Answer<bool> {
        // A group that this account may not see is not found, and that must not pass for "no member".
        let ask = Ask::get(self.api_path(&["groups", org]), format!("look for the group {org}"));
        if !self.client.is_there(&ask).await? {
            return Err(ForgeError::MembersHidden { host: self.host(), org: org.to_owned() });
        }
        let Some(account) = self.find_user(user).await? else { return Ok(false) };
        let path = self.api_path(&["groups", org, "members", "all", &account.id.to_string()]);
        let ask = Ask::get(path, format!("say whether {user} is a member of {org}"));
        self.client.is_there(&ask).await
    }

    async fn read_issue(&self, number: u64) -> Answer<Issue> {
        let path = self.thread_path(Thread::Issue(number), &[]);
        let ask = Ask::get(path, format!("read issue #{number}"));
        let issue: WireIssue = self.client.json(&ask).await?;
        Ok(issue.into_issue(&self.page_of("issues")))
    }

    async fn open_issues(&self, filter: &IssueFilter) -> Answer<Vec<Issue>> {
        let mut query = "state=opened&order_by=created_at&sort=asc".to_owned();
        if !filter.labels.is_empty() {
            query.push_str(&format!("&labels={}", encode_segment(&filter.labels.join(","))));
        }
        if let Some(login) = &filter.assignee {
            query.push_str(&format!("&assignee_username={}", encode_segment(login)));
        }
        let path = self.project_path(&["issues"]);
        let id_of = |issue: &WireIssue| issue.iid;
        let wire = self.client.list(&path, &query, "list the issues", id_of).await?;
        let pages = self.page_of("issues");
        Ok(wire.into_iter().map(|issue| issue.into_issue(&pages)).collect())
    }

    async fn read_pr(&self, number: u64) -> Answer<PullRequest> {
        let path = self.thread_path(Thread::Pull(number), &[]);
        self.merge_request(&Ask::get(path, format!("read merge request !{number}"))).await
    }

    async fn open_pulls(&self, head: Option<&BranchName>) -> Answer<Vec<PullRequest>> {
        let mut query = "state=opened&order_by=created_at&sort=asc".to_owned();
        if let Some(head) = head {
            query.push_str(&format!("&source_branch={}", encode_segment(head.as_str())));
        }
        let path = self.project_path(&["merge_requests"]);
        let id_of = |found: &WireMergeRequest| found.iid;
        let wire = self.client.list(&path, &query, "list the merge requests", id_of).await?;
        let pages = self.page_of("merge_requests");
        let pulls = wire.into_iter().map(|found| found.into_pull(&pages));
        let mut pulls: Vec<PullRequest> =
            pulls.filter(|pull| pull.is_open() && !pull.from_fork).collect();
        pulls.sort_by_key(|pull| pull.number);
        Ok(pulls)
    }

    async fn make_pull(&self, pull: &NewPull) -> Answer<PullRequest> {
        let body = json!({
            "title": pull.title,
            "description": pull.body,
            "source_branch": pull.head.as_str(),
            "target_branch": pull.base.as_str(),
        });
        let path = self.project_path(&["merge_requests"]);
        self.merge_request(&Ask::post(path, body, "open the merge request")).await
    }

    async fn edit_pull(&self, number: u64, edit: &PullEdit<'_>) -> Answer<PullRequest> {
        let PullEdit { title, body, close } = edit;
        let mut fields = Map::new();
        fields.extend(title.map(|title| ("title".to_owned(), json!(title))));
        fields.extend(body.map(|body| ("description".to_owned(), json!(body))));
        fields.extend(close.then(|| ("state_event".to_owned(), json!("close"))));
        let path = self.thread_path(Thread::Pull(number), &[]);
        let verb = if *close { "close" } else { "update" };
        let action = format!("{verb} merge request !{number}");
        self.merge_request(&Ask::set(Method::PUT, path, Some(Value::Object(fields)), action)).await
    }

    /// Remarks on lines are among the notes, so they are here already.
    async fn plain_comments(&self, thread: Thread) -> Answer<Vec<Comment>> {
        let path = self.thread_path(thread, &["notes"]);
        let action = format!("read the notes on {}", name_of(thread));
        let query = "order_by=created_at&sort=asc";
        let id_of = |note: &WireNote| note.id;
        let wire = self.client.list(&path, query, &action, id_of).await?;
        let page = format!("{}/{}", self.page_of(room_of(thread)), thread.number());
        Ok(wire.into_iter().filter_map(|note| note.into_comment(&page)).collect())
    }

    async fn review_comments(&self, _thread: Thread) -> Answer<Vec<Comment>> {
        Ok(Vec::new())
    }

    async fn make_comment(&self, thread: Thread, body: &str) -> Answer<Comment> {
        let path = self.thread_path(thread, &["notes"]);
        let action = format!("comment on {}", name_of(thread));
        let ask = Ask::post(path, json!({ "body": body }), action.clone());
        let note: WireNote = self.client.json(&ask).await?;
        let page = format!("{}/{}", self.page_of(room_of(thread)), thread.number());
        let reason = "it is a note of the server itself".to_owned();
        let odd = || ForgeError::Unreadable { host: self.host(), action, reason };
        note.into_comment(&page).ok_or_else(odd)
    }

    async fn set_description(&self, thread: Thread, body: &str) -> Answer<()> {
        let action = format!("update the description of {}", name_of(thread));
        self.edit_thread(thread, json!({ "description": body }), action).await
    }

    async fn label_names(&self) -> Answer<Vec<String>> {
        let path = self.project_path(&["labels"]);
        let id_of = |label: &WireLabel| label.id;
        let labels = self.client.list(&path, "", "list the labels", id_of).await?;
        Ok(labels.into_iter().map(|label| label.name).collect())
    }

    async fn put_labels(&self, thread: Thread, names: &[String]) -> Answer<()> {
        let fields = json!({ "add_labels": names.join(",") });
        self.edit_thread(thread, fields, format!("label {}", name_of(thread))).await
    }

    async fn drop_label(&self, thread: Thread, name: &str) -> Answer<()> {
        let fields = json!({ "remove_labels": name });
        self.edit_thread(thread, fields, format!("take a label off {}", name_of(thread))).await
    }

    async fn webhooks(&self) -> Answer<Vec<Webhook>> {
        let path = self.project_path(&["hooks"]);
        let id_of = |hook: &WireHook| hook.id;
        let hooks = self.client.list(&path, "", "list the webhooks", id_of).await?;
        Ok(hooks.into_iter().map(WireHook::into_webhook).collect())
    }

    async fn make_webhook(&self, hook: &NewWebhook) -> Answer<Webhook> {
        let path = self.project_path(&["hooks"]);
        let ask = Ask::post(path, webhook_fields(hook), "make the webhook");
        Ok(self.client.json::<WireHook>(&ask).await?.into_webhook())
    }

    async fn edit_webhook(&self, id: u64, hook: &NewWebhook) -> Answer<Option<Webhook>> {
        let path = self.project_path(&["hooks", &id.to_string()]);
        let fields = Some(webhook_fields(hook));
        let ask = Ask::set(Method::PUT, path, fields, "replace the webhook");
        Ok(Some(self.client.json::<WireHook>(&ask).await?.into_webhook()))
    }

    async fn drop_webhook(&self, id: u64) -> Answer<()> {
        let path = self.project_path(&["hooks", &id.to_string()]);
        self.client.is_there(&Ask::set(Method::DELETE, path, None, "remove the webhook")).await?;
        Ok(())
    }

    async fn set_assignees(&self, thread: Thread, logins: &[String]) -> Answer<()> {
        let mut ids = Vec::new();
        for login in logins {
            match self.find_user(login).await? {
                Some(user) => ids.push(user.id),
                None => {
                    let (host, login) = (self.host(), login.clone());
                    return Err(ForgeError::NoSuchAccount { host, login });
                }
            }
        }
        // Zero stands for nobody; an empty list would mean "no change".
        let ids = if ids.is_empty() { vec![0] } else { ids };
        let action = format!("assign {}", name_of(thread));
        self.edit_thread(thread, json!({ "assignee_ids": ids }), action).await
    }
}

fn webhook_fields(hook: &NewWebhook) -> Value {
    json!({
        "url": hook.url, "token": hook.secret.expose(), "enable_ssl_verification": true,
        "issues_events": true, "note_events": true, "merge_requests_events": true, "push_events": false,
    })
}

fn room_of(thread: Thread) -> &'static str {
    match thread {
        Thread::Issue(_) => "issues",
        Thread::Pull(_) => "merge_requests",
    }
}

fn name_of(thread: Thread) -> String {
    match thread {
        Thread::Issue(number) => format!("#{number}"),
        Thread::Pull(number) => format!("!{number}"),
    }
}
