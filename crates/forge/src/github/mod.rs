//! GitHub and GitHub Enterprise Server, over their REST API.
//!
//! Pull requests are among the issues there, labels and assignees belong to issues, and a pull request takes no labels
//! when it is opened. The limit of requests is told in headers, also with a status that else means "forbidden".
//!
//! - `login` the token that GitHub's own program holds
//! - `wire` what the server sends

mod login;
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
    WireUser,
};

pub use login::find_login;

const DIALECT: Dialect = Dialect {
    token_word: "Bearer",
    accept: "application/vnd.github+json",
    headers: &[("x-github-api-version", "2022-11-28")],
    paging: Paging { size_field: "per_page", size: 100, total_header: "", silence: Silence::End },
};

/// One repository on GitHub.
#[derive(Debug)]
pub struct Github {
    client: Client,
    web: WebBase,
    owner: String,
    repo: String,
}

impl Github {
    /// Prepares to speak to a server about one repository, given as owner and name. Nothing is sent yet.
    pub async fn open(
        web: WebBase,
        repository: (&str, &str),
        token: &Secret,
        ca_file: Option<&Path>,
        patience: Patience,
    ) -> Result<Self, ForgeError> {
        let web = front_page(web);
        let client = Client::open(api_base(&web), &DIALECT, Some(token), ca_file, patience).await?;
        let (owner, repo) = repository;
        Ok(Self { client, web, owner: owner.to_owned(), repo: repo.to_owned() })
    }

    async fn pull(&self, ask: &Ask) -> Answer<PullRequest> {
        let pull: WirePull = self.client.json(ask).await?;
        Ok(pull.into_pull(&self.web.page(&[&self.owner, &self.repo, "pull"])))
    }

    /// Setting values twice is setting them once, so it may be repeated.
    async fn edit_thread(&self, thread: Thread, fields: Value, action: String) -> Answer<()> {
        let path = self.thread_path(thread, &[]);
        self.client.call(&Ask::set(Method::PATCH, path, Some(fields), action)).await?;
        Ok(())
    }

    fn api_path(&self, segments: &[&str]) -> String {
        self.client.base().path(segments)
    }

    fn repo_path(&self, segments: &[&str]) -> String {
        self.api_path(&[&["repos", &self.owner, &self.repo], segments].concat())
    }

    /// The paths of issues serve for pull requests too.
    fn thread_path(&self, thread: Thread, segments: &[&str]) -> String {
        self.repo_path(&[&["issues", thread.number().to_string().as_str()], segments].concat())
    }

    fn issues_page(&self) -> String {
        self.web.page(&[&self.owner, &self.repo, "issues"])
    }
}

impl Provider for Github {
    fn numbering(&self) -> Numbering {
        Numbering::Shared
    }

    fn host(&self) -> String {
        self.web.host().to_owned()
    }

    fn patience(&self) -> &Patience {
        self.client.patience()
    }

    fn push_url(&self) -> String {
        self.web.page(&[&self.owner, &format!("{}.git", self.repo)])
    }

    async fn whoami(&self) -> Answer<Account> {
        let ask = Ask::get(self.repo_path(&[]), "read the repository");
        let repository: WireRepository = self.client.json(&ask).await?;
        let user = Ask::get(self.api_path(&["user"]), "read the account");
        let login = match self.client.json::<WireUser>(&user).await {
            Ok(user) => Some(user.login),
            // The token of an app stands for no account.
            Err(ForgeError::Forbidden { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(Account { login, may_push: repository.may_push() })
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
        let pages = self.issues_page();
        issue.into_issue(&pages).ok_or_else(|| ForgeError::not_an_issue(self.host(), action))
    }

    async fn open_issues(&self, filter: &IssueFilter) -> Answer<Vec<Issue>> {
        let mut query = "state=open&sort=created&direction=asc".to_owned();
        if !filter.labels.is_empty() {
            query.push_str(&format!("&labels={}", encode_segment(&filter.labels.join(","))));
        }
        if let Some(login) = &filter.assignee {
            query.push_str(&format!("&assignee={}", encode_segment(login)));
        }
        let path = self.repo_path(&["issues"]);
        let id_of = |issue: &WireIssue| issue.number;
        let wire = self.client.list(&path, &query, "list the issues", id_of).await?;
        let pages = self.issues_page();
        Ok(wire.into_iter().filter_map(|issue| issue.into_issue(&pages)).collect())
    }

    async fn read_pr(&self, number: u64) -> Answer<PullRequest> {
        let path = self.repo_path(&["pulls", &number.to_string()]);
        self.pull(&Ask::get(path, format!("read pull request #{number}"))).await
    }

    async fn open_pulls(&self, head: Option<&BranchName>) -> Answer<Vec<PullRequest>> {
        let mut query = "state=open&sort=created&direction=asc".to_owned();
        if let Some(head) = head {
            let head = format!("{}:{head}", self.owner);
            query.push_str(&format!("&head={}", encode_segment(&head)));
        }
        let path = self.repo_path(&["pulls"]);
        let id_of = |pull: &WirePull| pull.number;
        let wire = self.client.list(&path, &query, "list the pull requests", id_of).await?;
        let pages = self.web.page(&[&self.owner, &self.repo, "pull"]);
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
        let ask = Ask::post(self.repo_path(&["pulls"]), body, "open the pull request");
        match self.pull(&ask).await {
            Err(ForgeError::Invalid { host, action, said }) => {
                // One status for bad values and for one that is there already: only a look tells them apart.
                let there = self.open_pulls(Some(&pull.head)).await?;
                let same = |other: &PullRequest| other.base_branch == pull.base.as_str();
                Err(if there.iter().any(same) {
                    ForgeError::Conflict { host, action, said }
                } else {
                    ForgeError::Invalid { host, action, said }
                })
            }
            answer => answer,
        }
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

    async fn plain_comments(&self, thread: Thread) -> Answer<Vec<Comment>> {
        let path = self.thread_path(thread, &["comments"]);
        let action = format!("read the comments on #{}", thread.number());
        let id_of = |comment: &WireComment| comment.id;
        let wire = self.client.list(&path, "", &action, id_of).await?;
        Ok(wire.into_iter().map(WireComment::into_comment).collect())
    }

    async fn review_comments(&self, thread: Thread) -> Answer<Vec<Comment>> {
        let number = thread.number().to_string();
        let action = format!("read the reviews of #{number}");
        let path = self.repo_path(&["pulls", &number, "reviews"]);
        let id_of = |review: &WireReview| review.id;
        let reviews = match self.client.list(&path, "", &action, id_of).await {
            Ok(reviews) => reviews,
            // An issue has none.
            Err(ForgeError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut comments: Vec<Comment> =
            reviews.into_iter().filter_map(WireReview::into_comment).collect();
        let path = self.repo_path(&["pulls", &number, "comments"]);
        let id_of = |remark: &WireRemark| remark.id();
        let remarks = self.client.list(&path, "", &action, id_of).await?;
        comments.extend(remarks.into_iter().map(WireRemark::into_comment));
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
        let path = self.repo_path(&["labels"]);
        let id_of = |label: &WireLabel| label.id;
        let labels = self.client.list(&path, "", "list the labels", id_of).await?;
        Ok(labels.into_iter().map(|label| label.name).collect())
    }

    async fn put_labels(&self, thread: Thread, names: &[String]) -> Answer<()> {
        let path = self.thread_path(thread, &["labels"]);
        let action = format!("label #{}", thread.number());
        let body = Some(json!({ "labels": names }));
        self.client.call(&Ask::set(Method::POST, path, body, action)).await?;
        Ok(())
    }

    async fn drop_label(&self, thread: Thread, name: &str) -> Answer<()> {
        let path = self.thread_path(thread, &["labels", name]);
        let action = format!("take a label off #{}", thread.number());
        self.client.is_there(&Ask::set(Method::DELETE, path, None, action)).await?;
        Ok(())
    }

    async fn webhooks(&self) -> Answer<Vec<Webhook>> {
        let path = self.repo_path(&["hooks"]);
        let id_of = |hook: &WireHook| hook.id;
        let hooks = self.client.list(&path, "", "list the webhooks", id_of).await?;
        Ok(hooks.into_iter().map(WireHook::into_webhook).collect())
    }

    async fn make_webhook(&self, hook: &NewWebhook) -> Answer<Webhook> {
        let mut body = webhook_fields(hook);
        body["name"] = json!("web");
        let ask = Ask::post(self.repo_path(&["hooks"]), body, "make the webhook");
        Ok(self.client.json::<WireHook>(&ask).await?.into_webhook())
    }

    async fn edit_webhook(&self, id: u64, hook: &NewWebhook) -> Answer<Option<Webhook>> {
        let path = self.repo_path(&["hooks", &id.to_string()]);
        let fields = Some(webhook_fields(hook));
        let ask = Ask::set(Method::PATCH, path, fields, "replace the webhook");
        Ok(Some(self.client.json::<WireHook>(&ask).await?.into_webhook()))
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

fn webhook_fields(hook: &NewWebhook) -> Value {
    json!({
        "active": true,
        "events": [
            "issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment",
        ],
        "config": {
            "url": hook.url, "content_type": "json", "secret": hook.secret.expose(), "insecure_ssl": "0",
        },
    })
}

/// The server for SSH on the usual web port has another name than the web.
fn front_page(web: WebBase) -> WebBase {
    let is_github = web.host == "github.com" || web.host.ends_with(".github.com");
    if is_github { WebBase { host: "github.com".to_owned(), ..web } } else { web }
}

/// In the cloud the API has a host of its own; elsewhere it is below the front page.
fn api_base(web: &WebBase) -> WebBase {
    if web.host == "github.com" || web.host.ends_with(".ghe.com") {
        return WebBase { host: format!("api.{}", web.host), ..web.clone() };
    }
    let prefix = web.path(&["api", "v3"]).trim_start_matches('/').to_owned();
    WebBase { prefix, ..web.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_has_its_own_host_in_the_cloud_and_a_path_elsewhere() {
        let api = |web: &str| api_base(&front_page(WebBase::parse(web).unwrap())).to_string();
        assert_eq!(api("https://github.com"), "https://api.github.com");
        assert_eq!(api("https://ssh.github.com"), "https://api.github.com");
        assert_eq!(api("https://acme.ghe.com"), "https://api.acme.ghe.com");
        assert_eq!(api("https://git.example"), "https://git.example/api/v3");
        assert_eq!(api("http://git.example:8080/x"), "http://git.example:8080/x/api/v3");
    }
}
