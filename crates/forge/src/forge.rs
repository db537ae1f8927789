//! The one way to a forge for everybody who publishes.
//!
//! An enum and not a trait: the kinds are known, and a new one shall make the compiler ask at every method.

use std::path::PathBuf;

use model::id::BranchName;
use model::secret::Secret;

use crate::address::{ForgeAddress, WebBase};
use crate::detect::{ForgeKind, choose_kind, observe_kind};
use crate::error::ForgeError;
use crate::gitea::Gitea;
use crate::http::Patience;
use crate::pull::{Account, Comment, NewPull, PullRequest};

/// A repository on a forge, and a token to act on it.
#[derive(Debug)]
pub enum Forge {
    /// Gitea or Forgejo.
    Gitea(Gitea),
}

/// What a person may say about a forge beyond the remote's URL.
#[derive(Debug, Clone, Default)]
pub struct ForgeSetting {
    /// Which kind it is; else its name or the server says so.
    pub kind: Option<ForgeKind>,
    /// Its front page; else it follows from the remote.
    pub web: Option<WebBase>,
    /// Certificates to trust beyond the system's.
    pub ca_file: Option<PathBuf>,
    /// How long to wait, and how often to ask.
    pub patience: Patience,
}

impl Forge {
    /// Finds out which kind of forge a remote names, and prepares to speak to it.
    pub async fn open(
        address: &ForgeAddress,
        token: Secret,
        setting: &ForgeSetting,
    ) -> Result<Self, ForgeError> {
        let base = setting.web.clone().unwrap_or_else(|| address.web_base());
        let ca_file = setting.ca_file.as_deref();
        let kind = match setting.kind.or_else(|| choose_kind(base.host())) {
            Some(kind) => kind,
            None => observe_kind(&base, ca_file, &setting.patience).await?,
        };
        match kind {
            ForgeKind::Gitea => {
                let repository = (address.owner.as_str(), address.repo.as_str());
                let patience = setting.patience.clone();
                Ok(Self::Gitea(Gitea::open(base, repository, &token, ca_file, patience).await?))
            }
            kind @ (ForgeKind::GitHub | ForgeKind::GitLab) => {
                Err(ForgeError::NotSupportedYet { host: base.host().to_owned(), name: kind.name() })
            }
        }
    }

    /// Whom the token stands for and whether that account may push; fails if the token is no good.
    pub async fn whoami(&self) -> Result<Account, ForgeError> {
        match self {
            Self::Gitea(gitea) => gitea.whoami().await,
        }
    }

    /// The open pull request whose changes are on this branch of the repository itself.
    pub async fn find_pull(&self, head: &BranchName) -> Result<Option<PullRequest>, ForgeError> {
        match self {
            Self::Gitea(gitea) => gitea.find_pull(head).await,
        }
    }

    /// The open pull requests from branches of the repository itself that begin with `prefix`, oldest first.
    pub async fn list_open_pulls_by_prefix(
        &self,
        prefix: &str,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        match self {
            Self::Gitea(gitea) => gitea.list_open_pulls_by_prefix(prefix).await,
        }
    }

    /// A pull request by its number.
    pub async fn read_pr(&self, number: u64) -> Result<PullRequest, ForgeError> {
        match self {
            Self::Gitea(gitea) => gitea.read_pr(number).await,
        }
    }

    /// Opens a pull request, once: if the answer is lost, it is looked for before it is asked for again.
    pub async fn create_pull(&self, pull: &NewPull) -> Result<PullRequest, ForgeError> {
        match self {
            Self::Gitea(gitea) => gitea.create_pull(pull).await,
        }
    }

    /// Replaces title and text of a pull request, and nothing else.
    pub async fn update_pull(
        &self,
        number: u64,
        title: &str,
        body: &str,
    ) -> Result<PullRequest, ForgeError> {
        match self {
            Self::Gitea(gitea) => gitea.update_pull(number, title, body).await,
        }
    }

    /// Closes a pull request without merging it; one that is closed already stays as it is.
    pub async fn close_pull(&self, number: u64) -> Result<PullRequest, ForgeError> {
        match self {
            Self::Gitea(gitea) => gitea.close_pull(number).await,
        }
    }

    /// All plain comments of an issue or a pull request, oldest first.
    pub async fn read_comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError> {
        match self {
            Self::Gitea(gitea) => gitea.read_comments(number).await,
        }
    }

    /// Comments on an issue or a pull request, once, like [`Self::create_pull`].
    pub async fn post_comment(&self, number: u64, body: &str) -> Result<Comment, ForgeError> {
        match self {
            Self::Gitea(gitea) => gitea.post_comment(number, body).await,
        }
    }
}
