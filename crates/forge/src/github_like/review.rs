//! Answers to remarks, reactions, reviewers, labels and assignees.

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::wire::WireUser;
use super::{Flavour, GithubLike};
use crate::error::{ForgeError, ForgeResult};
use crate::http::HttpRequest;
use crate::provider::ReviewProvider;
use crate::thread::{Comment, CommentKind, Thread};

/// Threads of a pull request that are looked through for the one to resolve.
const THREADS_QUERY: &str = "query($owner: String!, $name: String!, $number: Int!) { \
    repository(owner: $owner, name: $name) { pullRequest(number: $number) { reviewThreads(first: 100) { \
    nodes { id isResolved comments(first: 1) { nodes { databaseId } } } } } } }";

const RESOLVE_MUTATION: &str = "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { \
    thread { id } } }";

#[derive(Debug, Deserialize)]
struct WireReaction {
    content: String,
    user: Option<WireUser>,
}

impl ReviewProvider for GithubLike {
    /// Answers in a thread. Gitea groups remarks by file and line, so an answer there is a remark on the same line.
    async fn make_reply(&self, pull: u64, remark: &Comment, body: &str) -> ForgeResult<()> {
        let number = pull.to_string();
        let action = format!("answer a remark on #{pull}");
        let (url, fields) = match (self.flavour, &remark.kind, &remark.thread) {
            (Flavour::GitHub, CommentKind::Remark { .. }, Some(thread)) => (
                self.repo_url(&["pulls", &number, "comments", &thread.id, "replies"]),
                json!({ "body": body }),
            ),
            (Flavour::Gitea, CommentKind::Remark { path, line: Some(line), .. }, _) => {
                let answer = json!({ "path": path, "body": body, "new_position": line });
                let fields = json!({ "event": "COMMENT", "body": "", "comments": [answer] });
                (self.repo_url(&["pulls", &number, "reviews"]), fields)
            }
            _ => (self.thread_url(Thread::Pull(pull), &["comments"]), json!({ "body": body })),
        };
        self.client.call(&HttpRequest::post(url, fields, action)).await.map(drop)
    }

    async fn resolve_thread(&self, pull: u64, remark: &Comment) -> ForgeResult<bool> {
        let Some(thread) = &remark.thread else { return Ok(false) };
        match self.flavour {
            Flavour::Gitea => {
                let id = remark.id.to_string();
                let url = self.repo_url(&["pulls", "comments", &id, "resolve"]);
                let action = format!("resolve a thread of #{pull}");
                // Servers that do not have it yet say that there is no such page.
                self.client.is_there(&HttpRequest::set(Method::POST, url, None, action)).await
            }
            Flavour::GitHub => {
                let variables = json!({ "owner": self.owner, "name": self.repo, "number": pull });
                let found = self.query_graphql(THREADS_QUERY, variables).await?;
                let nodes = found.pointer("/data/repository/pullRequest/reviewThreads/nodes");
                let first = |node: &Value| node.pointer("/comments/nodes/0/databaseId").cloned();
                let node = nodes.and_then(Value::as_array).into_iter().flatten().find(|node| {
                    first(node).is_some_and(|id| id.as_u64() == thread.id.parse().ok())
                });
                let Some(id) = node.and_then(|node| node["id"].as_str()) else { return Ok(false) };
                self.query_graphql(RESOLVE_MUTATION, json!({ "id": id })).await?;
                Ok(true)
            }
        }
    }

    async fn thumbs_up(&self, _thread: Thread, comment: u64) -> ForgeResult<Vec<String>> {
        let url = self.repo_url(&["issues", "comments", &comment.to_string(), "reactions"]);
        let found: Option<Vec<WireReaction>> =
            self.client.json(&HttpRequest::get(url, "read the reactions")).await?;
        let is_yes = |reaction: &WireReaction| reaction.content == "+1";
        let yes = found.unwrap_or_default().into_iter().filter(is_yes);
        Ok(yes.filter_map(|reaction| reaction.user).map(|user| user.login).collect())
    }

    async fn request_reviewers(&self, pull: u64, logins: &[String]) -> ForgeResult<()> {
        let url = self.repo_url(&["pulls", &pull.to_string(), "requested_reviewers"]);
        let fields = Some(json!({ "reviewers": logins }));
        let action = format!("ask for reviews of #{pull}");
        self.client.call(&HttpRequest::set(Method::POST, url, fields, action)).await.map(drop)
    }

    async fn add_labels(&self, pull: u64, labels: &[String]) -> ForgeResult<()> {
        let url = self.thread_url(Thread::Pull(pull), &["labels"]);
        let (fields, action) = (Some(json!({ "labels": labels })), format!("label #{pull}"));
        self.client.call(&HttpRequest::set(Method::POST, url, fields, action)).await.map(drop)
    }

    async fn add_assignees(&self, pull: u64, logins: &[String]) -> ForgeResult<()> {
        let (fields, action) = (Some(json!({ "assignees": logins })), format!("assign #{pull}"));
        let request = match self.flavour {
            Flavour::GitHub => {
                let url = self.thread_url(Thread::Pull(pull), &["assignees"]);
                HttpRequest::set(Method::POST, url, fields, action)
            }
            Flavour::Gitea => {
                let url = self.thread_url(Thread::Pull(pull), &[]);
                HttpRequest::set(Method::PATCH, url, fields, action)
            }
        };
        self.client.call(&request).await.map(drop)
    }
}

impl GithubLike {
    /// Makes a pull request a draft, or ready for review.
    pub(super) async fn set_draft(&self, node: &str, draft: bool) -> ForgeResult<()> {
        let name =
            if draft { "convertPullRequestToDraft" } else { "markPullRequestReadyForReview" };
        let query = format!(
            "mutation($id: ID!) {{ {name}(input: {{pullRequestId: $id}}) {{ pullRequest {{ id }} }} }}"
        );
        self.query_graphql(&query, json!({ "id": node })).await.map(drop)
    }

    /// Sends a query; GraphQL answers a refused one with 200 and a list of errors.
    async fn query_graphql(&self, query: &str, variables: Value) -> ForgeResult<Value> {
        let body = Some(json!({ "query": query, "variables": variables }));
        let request =
            HttpRequest::set(Method::POST, self.graphql.clone(), body, "change a pull request");
        let answer: Value = self.client.json(&request).await?;
        match answer.pointer("/errors/0/message").and_then(Value::as_str) {
            Some(message) => {
                let error = self.client.unreadable(&request, message);
                Err(error)
            }
            None => Ok::<Value, ForgeError>(answer),
        }
    }
}
