//! The one way to a forge for everybody who reads or publishes.
//!
//! An enum and not a trait object: the kinds are known, and a new one shall make the compiler ask at every place that
//! cares. What all kinds do alike (writing once, finding, folding reviews in) is here, over `provider`.

use std::path::{Path, PathBuf};

use model::id::BranchName;
use model::secret::Secret;

use crate::address::{ForgeAddress, WebBase};
use crate::detect::{ForgeKind, find_kind};
use crate::error::ForgeError;
use crate::gitea::Gitea;
use crate::github::Github;
use crate::gitlab::Gitlab;
use crate::http::Patience;
use crate::local::Local;
use crate::once::{CommentWrite, PullWrite, WebhookWrite, write_once};
use crate::provider::Provider;
use crate::pull::{NewPull, PullEdit, PullRequest};
use crate::rules::link::choose_pull_for_issue;
use crate::thread::{Account, Comment, Issue, IssueFilter, Numbering, Thread, ThreadState};
use crate::webhook::{NewWebhook, Webhook};

/// A repository on a forge, and a token to act on it.
#[derive(Debug)]
pub enum Forge {
    /// Gitea or Forgejo.
    Gitea(Gitea),
    /// GitHub, or GitHub Enterprise Server.
    GitHub(Github),
    /// GitLab.
    GitLab(Gitlab),
    /// A bare repository on this machine, with files beside it.
    Local(Local),
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

/// Does the same with whichever kind it is.
macro_rules! each {
    ($self:ident, $forge:ident => $call:expr) => {
        match $self {
            Self::Gitea($forge) => $call,
            Self::GitHub($forge) => $call,
            Self::GitLab($forge) => $call,
            Self::Local($forge) => $call,
        }
    };
}

impl Forge {
    /// Finds out which kind of forge a remote names, and prepares to speak to it.
    pub async fn open(
        address: &ForgeAddress,
        token: Secret,
        setting: &ForgeSetting,
    ) -> Result<Self, ForgeError> {
        let kind = find_kind(address, setting).await?;
        let ca_file = setting.ca_file.as_deref();
        let patience = setting.patience.clone();
        let repository = (address.owner.as_str(), address.repo.as_str());
        Ok(match kind {
            ForgeKind::Gitea => {
                let base = setting.web.clone().unwrap_or_else(|| address.web_base());
                Self::Gitea(Gitea::open(base, repository, &token, ca_file, patience).await?)
            }
            ForgeKind::GitHub => {
                let base = setting.web.clone().unwrap_or_else(|| address.root_base());
                Self::GitHub(Github::open(base, repository, &token, ca_file, patience).await?)
            }
            ForgeKind::GitLab => {
                let base = setting.web.clone().unwrap_or_else(|| address.root_base());
                let project = address.project_path(&base);
                Self::GitLab(Gitlab::open(base, project, &token, ca_file, patience).await?)
            }
        })
    }

    /// A bare repository on this machine as a forge: its issues and comments are files beside it, which are made at the
    /// first write. Whoever calls acts as `login`.
    pub async fn open_local(repository: &Path, login: &str) -> Result<Self, ForgeError> {
        Ok(Self::Local(Local::open(repository, login).await?))
    }

    /// Which kind of server it is; nothing for a folder.
    pub fn kind(&self) -> Option<ForgeKind> {
        match self {
            Self::Gitea(_) => Some(ForgeKind::Gitea),
            Self::GitHub(_) => Some(ForgeKind::GitHub),
            Self::GitLab(_) => Some(ForgeKind::GitLab),
            Self::Local(_) => None,
        }
    }

    /// Whether issues and pull requests share their numbers.
    pub fn numbering(&self) -> Numbering {
        each!(self, forge => forge.numbering())
    }

    /// A thread as people write it there: `#3`, or `!3` for a merge request.
    pub fn reference(&self, thread: Thread) -> String {
        match (self.numbering(), thread) {
            (Numbering::Separate, Thread::Pull(number)) => format!("!{number}"),
            (Numbering::Shared | Numbering::Separate, thread) => format!("#{}", thread.number()),
        }
    }

    /// Where git pushes to: no credential is in it.
    pub fn push_url(&self) -> String {
        each!(self, forge => forge.push_url())
    }

    /// Whom the token stands for and whether that account may push; fails if the token is no good.
    pub async fn whoami(&self) -> Result<Account, ForgeError> {
        each!(self, forge => forge.whoami().await)
    }

    /// Whether somebody is a member of an organisation (a group). A forge that will not tell, because the token's account
    /// is not in it, is an error and not a no.
    pub async fn is_org_member(&self, org: &str, user: &str) -> Result<bool, ForgeError> {
        each!(self, forge => forge.is_org_member(org, user).await)
    }

    /// An issue by its number. Where issues and pull requests share their numbers, that of a pull request is not found.
    pub async fn read_issue(&self, number: u64) -> Result<Issue, ForgeError> {
        each!(self, forge => forge.read_issue(number).await)
    }

    /// The open issues that fit, oldest first; no pull requests are among them.
    pub async fn list_open_issues(&self, filter: &IssueFilter) -> Result<Vec<Issue>, ForgeError> {
        let mut issues = each!(self, forge => forge.open_issues(filter).await)?;
        issues.retain(|issue| filter.fits(issue));
        issues.sort_by_key(|issue| issue.number);
        Ok(issues)
    }

    /// A pull request by its number.
    pub async fn read_pr(&self, number: u64) -> Result<PullRequest, ForgeError> {
        each!(self, forge => forge.read_pr(number).await)
    }

    /// Whether a pull request is open; one that was merged is not.
    pub async fn is_pr_open(&self, number: u64) -> Result<bool, ForgeError> {
        Ok(self.read_pr(number).await?.is_open())
    }

    /// The open pull request of the token's own account, from a branch of the repository itself, that says it closes an
    /// issue; the newest of several. Others can say so too, and must not be believed: what may be written follows from
    /// this.
    pub async fn get_pr_for_issue(&self, number: u64) -> Result<Option<u64>, ForgeError> {
        let login = self.whoami().await?.login;
        let pulls = each!(self, forge => forge.open_pulls(None).await)?;
        Ok(choose_pull_for_issue(&pulls, number, login.as_deref()))
    }

    /// The open pull request whose changes are on this branch of the repository itself; the newest of several.
    pub async fn find_pull(&self, head: &BranchName) -> Result<Option<PullRequest>, ForgeError> {
        let pulls = each!(self, forge => forge.open_pulls(Some(head)).await)?;
        Ok(pulls.into_iter().rev().find(|pull| pull.head_branch == head.as_str()))
    }

    /// The open pull requests from branches of the repository itself that begin with `prefix`, oldest first.
    pub async fn list_open_pulls_by_prefix(
        &self,
        prefix: &str,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        let mut pulls = each!(self, forge => forge.open_pulls(None).await)?;
        pulls.retain(|pull| pull.head_branch.starts_with(prefix));
        Ok(pulls)
    }

    /// Opens a pull request, once: if the answer is lost, it is looked for before it is asked for again. A label that
    /// the repository does not have stops everything.
    pub async fn create_pull(&self, pull: &NewPull) -> Result<PullRequest, ForgeError> {
        each!(self, forge => create_pull(forge, pull).await)
    }

    /// Replaces title and text of a pull request, and nothing else.
    pub async fn update_pull(
        &self,
        number: u64,
        title: &str,
        body: &str,
    ) -> Result<PullRequest, ForgeError> {
        let edit = PullEdit { title: Some(title), body: Some(body), ..PullEdit::default() };
        each!(self, forge => forge.edit_pull(number, &edit).await)
    }

    /// Closes a pull request without merging it; one that is closed already stays as it is.
    pub async fn close_pull(&self, number: u64) -> Result<PullRequest, ForgeError> {
        let pull = self.read_pr(number).await?;
        match pull.state {
            ThreadState::Closed => Ok(pull),
            ThreadState::Open | ThreadState::Other(_) => {
                let edit = PullEdit { close: true, ..PullEdit::default() };
                each!(self, forge => forge.edit_pull(number, &edit).await)
            }
        }
    }

    /// All that people said on an issue or a pull request, reviews and remarks on lines included, oldest first.
    pub async fn read_comments(&self, thread: Thread) -> Result<Vec<Comment>, ForgeError> {
        let mut comments = each!(self, forge => forge.plain_comments(thread).await)?;
        comments.extend(each!(self, forge => forge.review_comments(thread).await)?);
        // Stable, so that what has no time, or the same, stays in the forge's order.
        comments.sort_by_key(|comment| comment.created_at);
        Ok(comments)
    }

    /// Comments on an issue or a pull request, once, like [`Self::create_pull`].
    pub async fn post_comment(&self, thread: Thread, body: &str) -> Result<Comment, ForgeError> {
        let began = host::clock::now();
        each!(self, forge => {
            write_once(forge.patience(), CommentWrite { forge, thread, body, began }).await
        })
    }

    /// Replaces the text of an issue or a pull request, and nothing else.
    pub async fn update_description(&self, thread: Thread, body: &str) -> Result<(), ForgeError> {
        each!(self, forge => forge.set_description(thread, body).await)
    }

    /// Adds labels by name; one that the repository does not have stops everything.
    pub async fn add_labels(&self, thread: Thread, names: &[String]) -> Result<(), ForgeError> {
        each!(self, forge => {
            check_labels(forge, names).await?;
            forge.put_labels(thread, names).await
        })
    }

    /// Takes a label off; one that is not there is no error.
    pub async fn remove_label(&self, thread: Thread, name: &str) -> Result<(), ForgeError> {
        each!(self, forge => forge.drop_label(thread, name).await)
    }

    /// The webhooks of the repository.
    pub async fn webhooks(&self) -> Result<Vec<Webhook>, ForgeError> {
        each!(self, forge => forge.webhooks().await)
    }

    /// Sees to it that exactly one webhook leads to this address, with this secret: one that is there is replaced.
    pub async fn set_webhook(&self, hook: &NewWebhook) -> Result<Webhook, ForgeError> {
        each!(self, forge => set_webhook(forge, hook).await)
    }

    /// Removes every webhook that leads to this address, and says how many there were.
    pub async fn remove_webhooks(&self, url: &str) -> Result<usize, ForgeError> {
        let mut there = self.webhooks().await?;
        there.retain(|hook| hook.url == url);
        for hook in &there {
            each!(self, forge => forge.drop_webhook(hook.id).await)?;
        }
        Ok(there.len())
    }

    /// Assigns exactly these accounts, and nobody else.
    pub async fn set_assignees(&self, thread: Thread, logins: &[String]) -> Result<(), ForgeError> {
        each!(self, forge => forge.set_assignees(thread, logins).await)
    }
}

async fn create_pull<P: Provider>(forge: &P, pull: &NewPull) -> Result<PullRequest, ForgeError> {
    check_labels(forge, &pull.labels).await?;
    let made = write_once(forge.patience(), PullWrite { forge, pull }).await?;
    if pull.labels.iter().all(|label| made.labels.contains(label)) {
        return Ok(made);
    }
    // Not every forge takes labels with the request; adding one twice is adding it once.
    forge.put_labels(Thread::Pull(made.number), &pull.labels).await?;
    forge.read_pr(made.number).await
}

/// The new one comes before the old ones go, so that there is no moment in which nobody is told.
async fn set_webhook<P: Provider>(forge: &P, hook: &NewWebhook) -> Result<Webhook, ForgeError> {
    let mut before = forge.webhooks().await?;
    before.retain(|there| there.url == hook.url);
    let edited = match before.first() {
        Some(old) => forge.edit_webhook(old.id, hook).await?,
        None => None,
    };
    let made = match edited {
        Some(edited) => edited,
        None => write_once(forge.patience(), WebhookWrite { forge, hook, before: &before }).await?,
    };
    for old in before.iter().filter(|old| old.id != made.id) {
        forge.drop_webhook(old.id).await?;
    }
    Ok(made)
}

/// Some forges make a label of every new name, so a slip of the pen would stay for ever.
async fn check_labels<P: Provider>(forge: &P, names: &[String]) -> Result<(), ForgeError> {
    if names.is_empty() {
        return Ok(());
    }
    let known = forge.label_names().await?;
    match names.iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => Err(ForgeError::NoSuchLabel { host: forge.host(), name: name.clone() }),
    }
}
