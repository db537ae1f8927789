//! GitHub, and Gitea and Forgejo, whose REST API has the same shape.
//!
//! The API lists pull requests among the issues. Servers ignore unknown filters instead of refusing them, so
//! everything is matched again. Edits send only the fields that change: an empty list in an edit would remove
//! all assignees. `Flavour` has the data in which the two differ.
//!
//! - `checks` statuses and check runs of commits
//! - `flavour` the differences
//! - `issue` the issues before an issue, and attachments
//! - `review` answers to remarks, and what goes with a pull request beside its text
//! - `wire` the bodies of responses

mod checks;
mod flavour;
mod issue;
mod review;
mod wire;

use hyper::{Method, StatusCode};
use model::id::BranchName;
use model::secret::Secret;
use serde::de::IgnoredAny;
use serde_json::json;

use crate::address::WebBase;
use crate::error::{ForgeError, ForgeResult};
use crate::forge::ForgeOptions;
use crate::http::{Client, HttpRequest, RetryPolicy};
use crate::kind::ForgeKind;
use crate::provider::ForgeProvider;
use crate::pull::{NewPull, PullEdit, PullRequest};
use crate::thread::{Account, Comment, Issue, IssueEvent, Numbering, Thread};
use crate::webhook::{NewWebhook, Webhook};
use wire::{
    WireComment, WireEvent, WireHook, WireIssue, WirePull, WireRemark, WireRepository, WireReview,
    WireToken, WireUser,
};

pub(crate) use flavour::Flavour;
pub(crate) use wire::read_any;

/// One repository on a server that speaks GitHub's dialect.
#[derive(Debug)]
pub struct GithubLike {
    flavour: Flavour,
    client: Client,
    web: WebBase,
    api: WebBase,
    page: String,
    /// Address of GraphQL, on GitHub.
    graphql: String,
    owner: String,
    repo: String,
}

impl GithubLike {
    /// Prepares a client for one repository, given as owner and name. Nothing is sent yet.
    pub(crate) async fn open(
        flavour: Flavour,
        web: WebBase,
        (owner, repo): (&str, &str),
        token: &Secret,
        options: &ForgeOptions,
    ) -> ForgeResult<Self> {
        let web = flavour.front_page(web);
        let api = flavour.api_base(&web);
        let client = Client::open(&api, flavour.protocol(), Some(token), options).await?;
        let page = web.url(&[owner, repo]);
        let graphql = flavour.graphql(&web, &api);
        let (owner, repo) = (owner.to_owned(), repo.to_owned());
        Ok(Self { flavour, client, web, api, page, graphql, owner, repo })
    }

    pub(crate) fn kind(&self) -> ForgeKind {
        self.flavour.kind()
    }

    /// Returns the login of the token's account. A valid token may lack the scope for this.
    async fn login(&self) -> ForgeResult<Option<String>> {
        let user = HttpRequest::get(self.api.url(&["user"]), "read the account");
        if let Some(user) = self.client.json_if_allowed::<WireUser>(&user).await? {
            return Ok(Some(user.login));
        }
        match self.flavour {
            // The token of an app has no account.
            Flavour::GitHub => Ok(None),
            // Newer servers describe the token itself, whatever its scopes.
            Flavour::Gitea => {
                let token = HttpRequest::get(self.api.url(&["token"]), "read the token's scopes");
                match self.client.json_if_allowed::<WireToken>(&token).await {
                    Ok(token) => Ok(token.and_then(WireToken::login)),
                    Err(ForgeError::NotFound { .. } | ForgeError::Unreadable { .. }) => Ok(None),
                    Err(error) => Err(error),
                }
            }
        }
    }

    async fn remarks(&self, pull: u64, reviews: &[WireReview]) -> ForgeResult<Vec<WireRemark>> {
        let number = pull.to_string();
        let action = format!("read the reviews of #{pull}");
        match self.flavour {
            Flavour::GitHub => {
                let url = self.repo_url(&["pulls", &number, "comments"]);
                self.client.list(&url, "", &action, WireRemark::id).await
            }
            Flavour::Gitea => {
                let mut remarks = Vec::new();
                for review in reviews.iter().filter(|review| review.has_remarks()) {
                    let id = review.id.to_string();
                    let url = self.repo_url(&["pulls", &number, "reviews", &id, "comments"]);
                    let found: Option<Vec<WireRemark>> =
                        self.client.json(&HttpRequest::get(url, action.as_str())).await?;
                    remarks.extend(found.unwrap_or_default());
                }
                Ok(remarks)
            }
        }
    }

    async fn pull(&self, request: &HttpRequest) -> ForgeResult<PullRequest> {
        let pull: WirePull = self.client.json(request).await?;
        Ok(self.show_pull(pull))
    }

    fn show_pull(&self, pull: WirePull) -> PullRequest {
        let page = format!("{}{}", self.page, self.kind().pull_page(pull.number));
        pull.into_pull(page)
    }

    /// Converts an issue; `None` if it is a pull request.
    fn show_issue(&self, issue: WireIssue) -> Option<Issue> {
        let page = format!("{}{}", self.page, self.kind().issue_page(issue.number));
        issue.into_issue(page)
    }

    /// Finds the real error for a missing thread, for which some versions of Gitea answer 500, by reading the
    /// thread itself.
    async fn find_missing(&self, thread: Thread) -> Option<ForgeError> {
        let action = format!("read the comments on #{}", thread.number());
        let request = HttpRequest::get(self.thread_url(thread, &[]), action);
        let found = self.client.json::<IgnoredAny>(&request).await;
        found.err().filter(|error| matches!(error, ForgeError::NotFound { .. }))
    }

    fn repo_url(&self, segments: &[&str]) -> String {
        self.api.url(&[&["repos", &self.owner, &self.repo], segments].concat())
    }

    /// Returns a URL of a thread. The paths of issues work for pull requests too.
    fn thread_url(&self, thread: Thread, segments: &[&str]) -> String {
        self.repo_url(&[&["issues", thread.number().to_string().as_str()], segments].concat())
    }
}

impl ForgeProvider for GithubLike {
    fn numbering(&self) -> Numbering {
        Numbering::Shared
    }

    fn retry(&self) -> &RetryPolicy {
        self.client.retry()
    }

    async fn whoami(&self) -> ForgeResult<Account> {
        // The repository comes first: publishing needs it, while a valid token may hide its account.
        let request = HttpRequest::get(self.repo_url(&[]), "read the repository");
        let repository: WireRepository = self.client.json(&request).await?;
        Ok(Account { login: self.login().await?, may_push: repository.may_push() })
    }

    /// Returns whether an account is a member. A redirect leads to the list of public members, which lacks
    /// private ones: it means that this account may not see the members, and is never followed.
    async fn is_org_member(&self, org: &str, user: &str) -> ForgeResult<bool> {
        let url = self.api.url(&["orgs", org, "members", user]);
        let request = HttpRequest::get(url, format!("say whether {user} is a member of {org}"));
        let response = self.client.send(&request).await?;
        match response.status {
            StatusCode::NO_CONTENT => Ok(true),
            StatusCode::NOT_FOUND => Ok(false),
            StatusCode::FOUND | StatusCode::SEE_OTHER => {
                Err(ForgeError::members_hidden(self.client.host(), org))
            }
            status => {
                self.client.check_status(&request, &response)?;
                Err(self.client.unreadable(&request, &format!("status {}", status.as_u16())))
            }
        }
    }

    async fn read_issue(&self, number: u64) -> ForgeResult<Issue> {
        let action = format!("read issue #{number}");
        let request = HttpRequest::get(self.thread_url(Thread::Issue(number), &[]), action.clone());
        let issue: WireIssue = self.client.json(&request).await?;
        let host = self.client.host();
        self.show_issue(issue).ok_or_else(|| ForgeError::not_an_issue(host, action))
    }

    async fn open_issues(&self, labels: &[String]) -> ForgeResult<Vec<Issue>> {
        let query = self.flavour.open_issues_query(labels);
        let id_of = |issue: &WireIssue| issue.number;
        let url = self.repo_url(&["issues"]);
        let wire = self.client.list(&url, &query, "list the issues", id_of).await?;
        Ok(wire.into_iter().filter_map(|issue| self.show_issue(issue)).collect())
    }

    async fn read_pr(&self, number: u64) -> ForgeResult<PullRequest> {
        let url = self.repo_url(&["pulls", &number.to_string()]);
        self.pull(&HttpRequest::get(url, format!("read pull request #{number}"))).await
    }

    async fn open_pulls(&self, head: Option<&BranchName>) -> ForgeResult<Vec<PullRequest>> {
        let query = self.flavour.open_pulls_query(&self.owner, head);
        let id_of = |pull: &WirePull| pull.number;
        let url = self.repo_url(&["pulls"]);
        let wire = self.client.list(&url, &query, "list the pull requests", id_of).await?;
        Ok(wire.into_iter().map(|pull| self.show_pull(pull)).collect())
    }

    async fn make_pull(&self, pull: &NewPull) -> ForgeResult<PullRequest> {
        let mut body = json!({
            "title": self.flavour.draft_mark().title(&pull.title, pull.draft),
            "body": pull.body,
            "head": pull.head.as_str(),
            "base": pull.base.as_str(),
        });
        if pull.draft && self.flavour == Flavour::GitHub {
            body["draft"] = json!(true);
        }
        let request = HttpRequest::post(self.repo_url(&["pulls"]), body, "open the pull request");
        match self.pull(&request).await {
            // GitHub has one status for bad values and for an existing pull request: only a lookup distinguishes them.
            Err(ForgeError::Invalid { host, action, message })
                if self.flavour == Flavour::GitHub =>
            {
                let there = self.own_pulls(Some(&pull.head)).await?;
                Err(match there.iter().any(|other| other.is_between(&pull.head, &pull.base)) {
                    true => ForgeError::Conflict { host, action, message },
                    false => ForgeError::Invalid { host, action, message },
                })
            }
            result => result,
        }
    }

    async fn edit_pull(&self, number: u64, edit: &PullEdit<'_>) -> ForgeResult<PullRequest> {
        let url = self.repo_url(&["pulls", &number.to_string()]);
        let action = format!("{} pull request #{number}", edit.verb());
        let mark = self.flavour.draft_mark();
        let fields = Some(edit.fields("body", ("state", "closed"), mark));
        let request = HttpRequest::set(Method::PATCH, url, fields, action);
        let found: WirePull = self.client.json(&request).await?;
        let node = found.node_id.clone();
        let pull = self.show_pull(found);
        match (edit.draft, node) {
            // Only GraphQL changes it there.
            (Some(draft), Some(node)) if self.flavour == Flavour::GitHub && draft != pull.draft => {
                self.set_draft(&node, draft).await?;
                Ok(PullRequest { draft, ..pull })
            }
            _ => Ok(pull),
        }
    }

    /// Reads the comments. Gitea sends all of them at once, whatever the requested page.
    async fn plain_comments(&self, thread: Thread) -> ForgeResult<Vec<Comment>> {
        let action = format!("read the comments on #{}", thread.number());
        let url = self.thread_url(thread, &["comments"]);
        let id_of = |comment: &WireComment| comment.id;
        match self.client.list(&url, "", &action, id_of).await {
            Ok(wire) => Ok(wire.into_iter().map(WireComment::into_comment).collect()),
            Err(error @ ForgeError::Server { .. }) => {
                Err(self.find_missing(thread).await.unwrap_or(error))
            }
            Err(error) => Err(error),
        }
    }

    async fn review_comments(&self, thread: Thread) -> ForgeResult<Vec<Comment>> {
        let number = thread.number();
        let url = self.repo_url(&["pulls", &number.to_string(), "reviews"]);
        let action = format!("read the reviews of #{number}");
        let id_of = |review: &WireReview| review.id;
        let reviews = match self.client.list(&url, "", &action, id_of).await {
            Ok(reviews) => reviews,
            // An issue has none.
            Err(ForgeError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let remarks = self.remarks(number, &reviews).await?;
        let verdicts = reviews.iter().map(|review| (review.id, review.verdict())).collect();
        let comments = reviews.into_iter().filter_map(WireReview::into_comment);
        let remarks = remarks.into_iter().map(|remark| remark.into_comment(&verdicts));
        Ok(comments.chain(remarks).collect())
    }

    async fn issue_events(&self, number: u64) -> ForgeResult<Vec<IssueEvent>> {
        let url = self.thread_url(Thread::Issue(number), &[self.flavour.events_path()]);
        let action = format!("read the events of #{number}");
        let id_of = |event: &WireEvent| event.id;
        let events = self.client.list(&url, "", &action, id_of).await?;
        Ok(events.into_iter().filter_map(WireEvent::into_event).collect())
    }

    async fn make_comment(&self, thread: Thread, body: &str) -> ForgeResult<Comment> {
        let url = self.thread_url(thread, &["comments"]);
        let action = format!("comment on #{}", thread.number());
        let request = HttpRequest::post(url, json!({ "body": body }), action);
        Ok(self.client.json::<WireComment>(&request).await?.into_comment())
    }

    async fn edit_comment(&self, thread: Thread, id: u64, body: &str) -> ForgeResult<()> {
        let url = self.repo_url(&["issues", "comments", &id.to_string()]);
        let action = format!("edit a comment on #{}", thread.number());
        let fields = Some(json!({ "body": body }));
        self.client.call(&HttpRequest::set(Method::PATCH, url, fields, action)).await.map(drop)
    }

    async fn set_description(&self, thread: Thread, body: &str) -> ForgeResult<()> {
        let action = format!("update the description of #{}", thread.number());
        let (url, fields) = (self.thread_url(thread, &[]), Some(json!({ "body": body })));
        self.client.call(&HttpRequest::set(Method::PATCH, url, fields, action)).await.map(drop)
    }

    async fn webhooks(&self) -> ForgeResult<Vec<Webhook>> {
        let url = self.repo_url(&["hooks"]);
        let id_of = |hook: &WireHook| hook.id;
        let hooks = self.client.list(&url, "", "list the webhooks", id_of).await?;
        Ok(hooks.into_iter().map(WireHook::into_webhook).collect())
    }

    async fn make_webhook(&self, hook: &NewWebhook) -> ForgeResult<Webhook> {
        let body = self.flavour.webhook_fields(hook);
        let request = HttpRequest::post(self.repo_url(&["hooks"]), body, "make the webhook");
        Ok(self.client.json::<WireHook>(&request).await?.into_webhook())
    }

    async fn edit_webhook(&self, id: u64, hook: &NewWebhook) -> ForgeResult<Option<Webhook>> {
        match self.flavour {
            // Some versions ignore a new secret for an existing webhook, without an error.
            Flavour::Gitea => Ok(None),
            Flavour::GitHub => {
                let url = self.repo_url(&["hooks", &id.to_string()]);
                let fields = Some(self.flavour.webhook_fields(hook));
                let request = HttpRequest::set(Method::PATCH, url, fields, "replace the webhook");
                Ok(Some(self.client.json::<WireHook>(&request).await?.into_webhook()))
            }
        }
    }

    async fn drop_webhook(&self, id: u64) -> ForgeResult<()> {
        let url = self.repo_url(&["hooks", &id.to_string()]);
        let request = HttpRequest::set(Method::DELETE, url, None, "remove the webhook");
        self.client.is_there(&request).await.map(drop)
    }
}
