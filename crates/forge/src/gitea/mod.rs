//! Gitea and Forgejo, over their REST API.
//!
//! Filters that the server does not know are ignored there and not refused, so everything is matched here again. Only
//! the fields that shall change are sent: an empty list in an edit would take everybody's assignment away.
//!
//! - `wire` what the server sends
//! - `page` lists to their end
//! - `write` writes that are done once

mod page;
mod wire;
mod write;

use std::path::Path;

use hyper::Method;
use hyper::header::HeaderMap;
use model::id::BranchName;
use model::secret::Secret;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::address::WebBase;
use crate::error::ForgeError;
use crate::http::{Ask, Client, Patience, Repeat};
use crate::pull::{Account, Comment, NewPull, PullRequest, PullState};
use wire::{WireComment, WireLabel, WirePull, WireRepository, WireToken, WireUser};
use write::{CommentWrite, PullWrite};

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
        let client = Client::open(base, Some(token), ca_file, patience).await?;
        let (owner, repo) = repository;
        Ok(Self { client, owner: owner.to_owned(), repo: repo.to_owned() })
    }

    /// See [`crate::Forge::whoami`].
    pub async fn whoami(&self) -> Result<Account, ForgeError> {
        // The repository first: publishing needs it, while a good token may well hide whose it is.
        let ask = self.get(self.repo_path(&[]), "read the repository");
        let repository: WireRepository = self.json(&ask).await?;
        Ok(Account { login: self.login().await?, may_push: repository.may_push() })
    }

    /// See [`crate::Forge::find_pull`].
    pub async fn find_pull(&self, head: &BranchName) -> Result<Option<PullRequest>, ForgeError> {
        let pulls = self.list_open_pulls().await?;
        Ok(pulls.into_iter().rev().find(|pull| pull.head_branch == head.as_str()))
    }

    /// See [`crate::Forge::list_open_pulls_by_prefix`].
    pub async fn list_open_pulls_by_prefix(
        &self,
        prefix: &str,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        let mut pulls = self.list_open_pulls().await?;
        pulls.retain(|pull| pull.head_branch.starts_with(prefix));
        Ok(pulls)
    }

    /// See [`crate::Forge::read_pr`].
    pub async fn read_pr(&self, number: u64) -> Result<PullRequest, ForgeError> {
        let path = self.repo_path(&["pulls", &number.to_string()]);
        self.pull(&self.get(path, &format!("read pull request #{number}"))).await
    }

    /// See [`crate::Forge::create_pull`].
    pub async fn create_pull(&self, pull: &NewPull) -> Result<PullRequest, ForgeError> {
        let mut body = json!({
            "title": pull.title,
            "body": pull.body,
            "head": pull.head.as_str(),
            "base": pull.base.as_str(),
        });
        if !pull.labels.is_empty() {
            body["labels"] = json!(self.label_ids(&pull.labels).await?);
        }
        let ask = self.post(self.repo_path(&["pulls"]), body, "open the pull request");
        self.write_once(PullWrite { gitea: self, ask, pull }).await
    }

    /// See [`crate::Forge::update_pull`].
    pub async fn update_pull(
        &self,
        number: u64,
        title: &str,
        body: &str,
    ) -> Result<PullRequest, ForgeError> {
        let fields = json!({ "title": title, "body": body });
        self.edit_pull(number, fields, &format!("update pull request #{number}")).await
    }

    /// See [`crate::Forge::close_pull`].
    pub async fn close_pull(&self, number: u64) -> Result<PullRequest, ForgeError> {
        let pull = self.read_pr(number).await?;
        match pull.state {
            PullState::Closed => Ok(pull),
            PullState::Open | PullState::Other(_) => {
                let fields = json!({ "state": "closed" });
                self.edit_pull(number, fields, &format!("close pull request #{number}")).await
            }
        }
    }

    /// See [`crate::Forge::read_comments`]. The server sends them all at once, whatever page is asked for.
    pub async fn read_comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError> {
        let comments = self.comments(number).await?;
        Ok(comments.into_iter().map(WireComment::into_comment).collect())
    }

    /// See [`crate::Forge::post_comment`].
    pub async fn post_comment(&self, number: u64, body: &str) -> Result<Comment, ForgeError> {
        let began = host::clock::now();
        let path = self.repo_path(&["issues", &number.to_string(), "comments"]);
        let ask = self.post(path, json!({ "body": body }), &format!("comment on #{number}"));
        let write = CommentWrite { gitea: self, ask, number, body, began };
        Ok(self.write_once(write).await?.into_comment())
    }

    /// The open pull requests from branches of this very repository: in a fork anybody may name a branch as we do.
    async fn list_open_pulls(&self) -> Result<Vec<PullRequest>, ForgeError> {
        // By age, since an order that changes with every comment would move entries between pages.
        let query = "state=open&sort=oldest";
        let path = self.repo_path(&["pulls"]);
        let wire: Vec<WirePull> = self
            .list(&path, query, "list the pull requests", |pull: &WirePull| pull.number)
            .await?;
        let pulls = wire.into_iter().map(|pull| pull.into_pull(&self.page_of("pulls")));
        let mut pulls: Vec<PullRequest> =
            pulls.filter(|pull| pull.is_open() && !pull.from_fork).collect();
        pulls.sort_by_key(|pull| pull.number);
        Ok(pulls)
    }

    /// Names may occur twice in a repository; the older label is taken.
    async fn label_ids(&self, names: &[String]) -> Result<Vec<u64>, ForgeError> {
        let path = self.repo_path(&["labels"]);
        let mut known: Vec<WireLabel> =
            self.list(&path, "", "list the labels", |label: &WireLabel| label.id).await?;
        known.sort_by_key(|label| label.id);
        let id_of = |name: &String| match known.iter().find(|label| label.name == *name) {
            Some(label) => Ok(label.id),
            None => {
                let host = self.client.base().host().to_owned();
                Err(ForgeError::NoSuchLabel { host, name: name.clone() })
            }
        };
        names.iter().map(id_of).collect()
    }

    async fn comments(&self, number: u64) -> Result<Vec<WireComment>, ForgeError> {
        let path = self.repo_path(&["issues", &number.to_string(), "comments"]);
        let ask = self.get(path, &format!("read the comments on #{number}"));
        Ok(self.json::<Option<Vec<WireComment>>>(&ask).await?.unwrap_or_default())
    }

    /// Setting values twice is setting them once, so an edit may be repeated.
    async fn edit_pull(
        &self,
        number: u64,
        fields: Value,
        action: &str,
    ) -> Result<PullRequest, ForgeError> {
        let ask = Ask {
            method: Method::PATCH,
            path: self.repo_path(&["pulls", &number.to_string()]),
            body: Some(fields),
            action: action.to_owned(),
            repeat: Repeat::Harmless,
        };
        self.pull(&ask).await
    }

    /// Whose token it is. A token may lack the scope for this and serve well all the same.
    async fn login(&self) -> Result<Option<String>, ForgeError> {
        let user = self.get(self.api_path(&["user"]), "read the account");
        match self.json::<WireUser>(&user).await {
            Ok(user) => return Ok(Some(user.login)),
            Err(ForgeError::Forbidden { .. }) => {}
            Err(error) => return Err(error),
        }
        // Newer servers tell about the token itself, whatever its scopes.
        let token = self.get(self.api_path(&["token"]), "read the token's scopes");
        match self.json::<WireToken>(&token).await {
            Ok(token) => Ok(token.login()),
            Err(
                ForgeError::Forbidden { .. }
                | ForgeError::NotFound { .. }
                | ForgeError::Unreadable { .. },
            ) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn pull(&self, ask: &Ask) -> Result<PullRequest, ForgeError> {
        let pull: WirePull = self.json(ask).await?;
        Ok(pull.into_pull(&self.page_of("pulls")))
    }

    async fn json<T: DeserializeOwned>(&self, ask: &Ask) -> Result<T, ForgeError> {
        let answer: (T, HeaderMap) = self.client.call_json(ask).await?;
        Ok(answer.0)
    }

    fn get(&self, path: String, action: &str) -> Ask {
        let (action, repeat) = (action.to_owned(), Repeat::Harmless);
        Ask { method: Method::GET, path, body: None, action, repeat }
    }

    fn post(&self, path: String, body: Value, action: &str) -> Ask {
        let (action, repeat) = (action.to_owned(), Repeat::Never);
        Ask { method: Method::POST, path, body: Some(body), action, repeat }
    }

    fn api_path(&self, segments: &[&str]) -> String {
        self.client.base().path(&[&["api", "v1"], segments].concat())
    }

    fn repo_path(&self, segments: &[&str]) -> String {
        self.api_path(&[&["repos", &self.owner, &self.repo], segments].concat())
    }

    /// A page of the repository for people.
    fn page_of(&self, room: &str) -> String {
        let base = self.client.base();
        let root = WebBase { prefix: String::new(), ..base.clone() };
        format!("{root}{}", base.path(&[&self.owner, &self.repo, room]))
    }
}
