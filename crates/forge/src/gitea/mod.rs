//! Gitea and Forgejo, over their REST API.
//!
//! Filters that the server does not know are ignored there and not refused, so everything is matched again. Only the
//! fields that shall change are sent: an empty list in an edit would take everybody's assignment away.
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
use wire::{
    WireComment, WireHook, WireIssue, WireLabel, WirePull, WireRemark, WireRepository, WireReview,
    WireToken, WireUser,
};

const DIALECT: Dialect = Dialect {
    token_word: "token",
    accept: "application/json",
    headers: &[],
    paging: Paging {
        size_field: "limit",
        size: 50,
        total_header: "x-total-count",
        silence: Silence::Unclear,
    },
};

/// One repository on a Gitea or Forgejo server.
#[derive(Debug)]
pub struct Gitea {
    client: Client,
    owner: String,
    repo: String,
}

impl Gitea {
    /// Prepares to speak to a server about one repository, given as owner and name. Nothing is sent yet.
    pub async fn open(
        base: WebBase,
        repository: (&str, &str),
        token: &Secret,
        ca_file: Option<&Path>,
        patience: Patience,
    ) -> Result<Self, ForgeError> {
        let client = Client::open(base, &DIALECT, Some(token), ca_file, patience).await?;
        let (owner, repo) = repository;
        Ok(Self { client, owner: owner.to_owned(), repo: repo.to_owned() })
    }

    /// Whose token it is. A token may lack the scope for this and serve well all the same.
    async fn login(&self) -> Answer<Option<String>> {
        let user = Ask::get(self.api_path(&["user"]), "read the account");
        match self.client.json::<WireUser>(&user).await {
            Ok(user) => return Ok(Some(user.login)),
            Err(ForgeError::Forbidden { .. }) => {}
            Err(error) => return Err(error),
        }
        // Newer servers tell about the token itself, whatever its scopes.
        let token = Ask::get(self.api_path(&["token"]), "read the token's scopes");
        match self.client.json::<WireToken>(&token).await {
            Ok(token) => Ok(token.login()),
            Err(
                ForgeError::Forbidden { .. }
                | ForgeError::NotFound { .. }
                | ForgeError::Unreadable { .. },
            ) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Oldest first: names may occur twice in a repository, and the older label is taken.
    async fn labels(&self) -> Answer<Vec<WireLabel>> {
        let path = self.repo_path(&["labels"]);
        let id_of = |label: &WireLabel| label.id;
        let mut known = self.client.list(&path, "", "list the labels", id_of).await?;
        known.sort_by_key(|label| label.id);
        Ok(known)
    }

    async fn remarks_of(&self, pull: u64, review: u64) -> Answer<Vec<Comment>> {
        let (pull, review) = (pull.to_string(), review.to_string());
        let path = self.repo_path(&["pulls", &pull, "reviews", &review, "comments"]);
        let ask = Ask::get(path, format!("read the review of #{pull}"));
        let remarks = self.client.json::<Option<Vec<WireRemark>>>(&ask).await?;
        Ok(remarks.unwrap_or_default().into_iter().map(WireRemark::into_comment).collect())
    }

    /// Works for issues and pull requests alike. Setting values twice is setting them once, so it may be repeated.
    async fn edit_thread(&self, thread: Thread, fields: Value, action: String) -> Answer<()> {
        let path = self.thread_path(thread, &[]);
        self.client.call(&Ask::set(Method::PATCH, path, Some(fields), action)).await?;
        Ok(())
    }

    async fn pull(&self, ask: &Ask) -> Answer<PullRequest> {
        let pull: WirePull = self.client.json(ask).await?;
        Ok(pull.into_pull(&self.page_of("pulls")))
    }

    fn api_path(&self, segments: &[&str]) -> String {
        self.client.base().path(&[&["api", "v1"], segments].concat())
    }

    fn repo_path(&self, segments: &[&str]) -> String {
        self.api_path(&[&["repos", &self.owner, &self.repo], segments].concat())
    }

    /// The paths of issues serve for pull requests too.
    fn thread_path(&self, thread: Thread, segments: &[&str]) -> String {
        self.repo_path(&[&["issues", thread.number().to_string().as_str()], segments].concat())
    }

    /// A page of the repository for people.
    fn page_of(&self, room: &str) -> String {
        self.client.base().page(&[&self.owner, &self.repo, room])
    }
}

impl Provider for Gitea {
    fn numbering(&self) -> Numbering {
        Numbering::Shared
    }

    fn host(&self) -> String {
        self.client.base().host().to_owned()
    }

    fn patience(&self) -> &Patience {
        self.client.patience()
    }

    fn push_url(&self) -> String {
        self.client.base().page(&[&self.owner, &format!("{}.git", self.repo)])
    }

    async fn whoami(&self) -> Answer<Account> {
        // The repository first: publishing needs it, while a good token may well hide whose it is.
        let ask = Ask::get(self.repo_path(&[]), "read the repository");
        let repository: WireRepository = self.client.json(&ask).await?;
        Ok(Account { login: self.login().await?, may_push: repository.may_push() })
    }

    async fn is_org_member(&self, org: &str, user: &str) -> Answer<bool> {
        let path = self.api_path(&["orgs", org, "members", user]);
        let ask = Ask::get(path, format!("say whether {user} is a member of {org}"));
        self.client.is_member(&ask, org).await
    }

    async fn read_issue(&self, number: u64) -> Answer<Issue> {
        let action = format!("read issue #{number}");
        let ask = Ask::get(self.thread_path(Thread::Issue(number), &[]), action.clone());
        let issue: WireIssue = self.client.json(&ask).await?;
        let pages = self.page_of("issues");
        issue.into_issue(&pages).ok_or_else(|| ForgeError::not_an_issue(self.host(), action))
    }

    async fn open_issues(&self, filter: &IssueFilter) -> Answer<Vec<Issue>> {
        let mut query = "state=open&type=issues".to_owned();
        if let Some(login) = &filter.assignee {
            query.push_str(&format!("&assigned_by={}", encode_segment(login)));
        }
        // Labels are matched here alone: the server's filter gives everything for an unknown name, and nothing for a
        // name that two labels have.
        let path = self.repo_path(&["issues"]);
        let id_of = |issue: &WireIssue| issue.number;
        let wire = self.client.list(&path, &query, "list the issues", id_of).await?;
        let pages = self.page_of("issues");
        Ok(wire.into_iter().filter_map(|issue| issue.into_issue(&pages)).collect())
    }

    async fn read_pr(&self, number: u64) -> Answer<PullRequest> {
        let path = self.repo_path(&["pulls", &number.to_string()]);
        self.pull(&Ask::get(path, format!("read pull request #{number}"))).await
    }

    async fn open_pulls(&self, _head: Option<&BranchName>) -> Answer<Vec<PullRequest>> {
        // By age, since an order that changes with every comment would move entries between pages.
        let query = "state=open&sort=oldest";
        let path = self.repo_path(&["pulls"]);
        let id_of = |pull: &WirePull| pull.number;
        let wire = self.client.list(&path, query, "list the pull requests", id_of).await?;
        let pages = self.page_of("pulls");
        let pulls = wire.into_iter().map(|pull| pull.into_pull(&pages));
        let mut pulls: Vec<PullRequest> =
            pulls.filter(|pull| pull.is_open() && !pull.from_fork).collect();
        pulls.sort_by_key(|pull| pull.number);
        Ok(pulls)
    }

    async fn make_pull(&self, pull: &NewPull) -> Answer<PullRequest> {
        let body = json!({
            "title": pull.title,
            "body": pull.body,
            "head": pull.head.as_str(),
            "base": pull.base.as_str(),
        });
        self.pull(&Ask::post(self.repo_path(&["pulls"]), body, "open the pull request")).await
    }

    async fn edit_pull(&self, number: u64, edit: &PullEdit<'_>) -> Answer<PullRequest> {
        let PullEdit { title, body, close } = edit;
        let mut fields = Map::new();
        fields.extend(title.map(|title| ("title".to_owned(), json!(title))));
        fields.extend(body.map(|body| ("body".to_owned(), json!(body))));
        fields.extend(close.then(|| ("state".to_owned(), json!("closed"))));
        let path = self.repo_path(&["pulls", &number.to_string()]);
        let verb = if *close { "close" } else { "update" };
        let action = format!("{verb} pull request #{number}");
        self.pull(&Ask::set(Method::PATCH, path, Some(Value::Object(fields)), action)).await
    }

    /// The server sends them all at once, whatever page is asked for.
    async fn plain_comments(&self, thread: Thread) -> Answer<Vec<Comment>> {
        let action = format!("read the comments on #{}", thread.number());
        let ask = Ask::get(self.thread_path(thread, &["comments"]), action);
        let comments = self.client.json::<Option<Vec<WireComment>>>(&ask).await?;
        Ok(comments.unwrap_or_default().into_iter().map(WireComment::into_comment).collect())
    }

    async fn review_comments(&self, thread: Thread) -> Answer<Vec<Comment>> {
        let number = thread.number();
        let path = self.repo_path(&["pulls", &number.to_string(), "reviews"]);
        let action = format!("read the reviews of #{number}");
        let id_of = |review: &WireReview| review.id;
        let reviews = match self.client.list(&path, "", &action, id_of).await {
            Ok(reviews) => reviews,
            // An issue has none.
            Err(ForgeError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut comments = Vec::new();
        for review in reviews {
            let (id, has_remarks) = (review.id, review.has_remarks());
            comments.extend(review.into_comment());
            if has_remarks {
                comments.extend(self.remarks_of(number, id).await?);
            }
        }
        Ok(comments)
    }

    async fn make_comment(&self, thread: Thread, body: &str) -> Answer<Comment> {
        let path = self.thread_path(thread, &["comments"]);
        let action = format!("comment on #{}", thread.number());
        let ask = Ask::post(path, json!({ "body": body }), action);
        Ok(self.client.json::<WireComment>(&ask).await?.into_comment())
    }

    async fn set_description(&self, thread: Thread, body: &str) -> Answer<()> {
        let action = format!("update the description of #{}", thread.number());
        self.edit_thread(thread, json!({ "body": body }), action).await
    }

    async fn label_names(&self) -> Answer<Vec<String>> {
        Ok(self.labels().await?.into_iter().map(|label| label.name).collect())
    }

    async fn put_labels(&self, thread: Thread, names: &[String]) -> Answer<()> {
        let known = self.labels().await?;
        let id_of = |name: &String| known.iter().find(|label| label.name == *name);
        let ids: Vec<u64> = names.iter().filter_map(id_of).map(|label| label.id).collect();
        let path = self.thread_path(thread, &["labels"]);
        let action = format!("label #{}", thread.number());
        let body = Some(json!({ "labels": ids }));
        self.client.call(&Ask::set(Method::POST, path, body, action)).await?;
        Ok(())
    }

    async fn drop_label(&self, thread: Thread, name: &str) -> Answer<()> {
        for label in self.labels().await?.iter().filter(|label| label.name == name) {
            let path = self.thread_path(thread, &["labels", &label.id.to_string()]);
            let action = format!("take a label off #{}", thread.number());
            self.client.is_there(&Ask::set(Method::DELETE, path, None, action)).await?;
        }
        Ok(())
    }

    async fn webhooks(&self) -> Answer<Vec<Webhook>> {
        let path = self.repo_path(&["hooks"]);
        let id_of = |hook: &WireHook| hook.id;
        let hooks = self.client.list(&path, "", "list the webhooks", id_of).await?;
        Ok(hooks.into_iter().map(WireHook::into_webhook).collect())
    }

    /// Each word stands for a family: `issues` also for labels and assignments, `pull_request` also for comments and
    /// reviews. A form instead of JSON would be signed otherwise than it is sent.
    async fn make_webhook(&self, hook: &NewWebhook) -> Answer<Webhook> {
        let config = json!({
            "url": hook.url, "content_type": "json", "secret": hook.secret.expose(),
        });
        let body = json!({
            "type": "gitea",
            "active": true,
            "events": ["issues", "issue_comment", "pull_request"],
            "config": config,
        });
        let ask = Ask::post(self.repo_path(&["hooks"]), body, "make the webhook");
        Ok(self.client.json::<WireHook>(&ask).await?.into_webhook())
    }

    /// Not every version takes a new secret for an old webhook, and none says so.
    async fn edit_webhook(&self, _id: u64, _hook: &NewWebhook) -> Answer<Option<Webhook>> {
        Ok(None)
    }

    async fn drop_webhook(&self, id: u64) -> Answer<()> {
        let path = self.repo_path(&["hooks", &id.to_string()]);
        self.client.is_there(&Ask::set(Method::DELETE, path, None, "remove the webhook")).await?;
        Ok(())
    }

    async fn set_assignees(&self, thread: Thread, logins: &[String]) -> Answer<()> {
        let action = format!("assign #{}", thread.number());
        self.edit_thread(thread, json!({ "assignees": logins }), action).await
    }
}
