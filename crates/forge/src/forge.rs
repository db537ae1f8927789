//! Forge: the one type through which everything is read from a forge and published to it.
//!
//! An enum and not a trait object: the kinds are known, and a new one makes the compiler list every place
//! that depends on it. Behaviour common to all kinds (writing once, finding, merging reviews into the
//! comments) is here, over `provider`.

use std::path::PathBuf;

use model::id::BranchName;
use model::secret::Secret;

use crate::address::{Remote, WebBase};
use crate::attachment::Attachment;
use crate::check_report::{CheckReport, FailedCheck, failed, tail};
use crate::detect::find_kind;
use crate::error::{ForgeError, ForgeResult};
use crate::folder::FolderForge;
use crate::github_like::{Flavour, GithubLike};
use crate::gitlab::Gitlab;
use crate::http::{HttpPool, RetryPolicy};
use crate::kind::ForgeKind;
use crate::once;
use crate::provider::{CheckProvider, ForgeProvider, IssueProvider, ReviewProvider};
use crate::pull::{NewPull, PullEdit, PullRequest};
use crate::rules::link::choose_pull_for_issue;
use crate::thread::{Account, Blocker, Comment, Issue, IssueEvent, Numbering, Thread, ThreadState};
use crate::webhook::{NewWebhook, Webhook};

/// Variable that allows tokens over plain HTTP, for every product.
pub const ALLOW_HTTP_VARIABLE: &str = "FORGE_ALLOW_HTTP";

/// Default account that acts in a folder.
const FOLDER_LOGIN: &str = "bot-bottle";

/// Repository on a forge, and a token to act on it.
#[derive(Debug)]
pub enum Forge {
    /// Gitea, Forgejo or GitHub.
    GithubLike(GithubLike),
    GitLab(Gitlab),
    /// A bare repository on this machine, with files beside it.
    Folder(FolderForge),
}

/// Settings of a forge beyond the remote's URL.
#[derive(Debug, Clone, Default)]
pub struct ForgeOptions {
    /// Kind; by default detected from the name of the server or its responses.
    pub kind: Option<ForgeKind>,
    /// Front page; by default derived from the remote.
    pub web: Option<WebBase>,
    /// Certificates to trust beyond the system's.
    pub ca_file: Option<PathBuf>,
    pub retry: RetryPolicy,
    pub plain_http: PlainHttp,
    /// Connections to share with other forges of the same runtime; by default the forge keeps its own.
    pub pool: Option<HttpPool>,
    /// Account that acts in a folder; by default `bot-bottle`.
    pub login: Option<String>,
}

/// Permission to send a token unencrypted to another machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PlainHttp {
    /// Only to this machine.
    #[default]
    Refused,
    /// To any machine.
    Allowed,
}

impl PlainHttp {
    pub fn from_env() -> Self {
        Self::parse(host::env::var(ALLOW_HTTP_VARIABLE).as_deref())
    }

    /// Reads the value of [`ALLOW_HTTP_VARIABLE`].
    pub fn parse(value: Option<&str>) -> Self {
        match value.map(str::trim) {
            Some("1" | "true" | "yes") => Self::Allowed,
            Some(_) | None => Self::Refused,
        }
    }
}

/// Calls the same method on each kind.
macro_rules! each {
    ($self:ident, $forge:ident => $call:expr) => {
        match $self {
            Self::GithubLike($forge) => $call,
            Self::GitLab($forge) => $call,
            Self::Folder($forge) => $call,
        }
    };
}

impl Forge {
    /// Opens the repository that a remote names. A server of unknown kind is probed, without the token.
    pub async fn open(
        remote: &Remote,
        token: &Secret,
        options: &ForgeOptions,
    ) -> ForgeResult<Self> {
        let address = match remote {
            Remote::Hosted(address) => address,
            Remote::Local(path) => {
                let login = options.login.as_deref().unwrap_or(FOLDER_LOGIN);
                return Ok(Self::Folder(FolderForge::open(path.as_ref(), login).await?));
            }
        };
        let repository = (address.owner.as_str(), address.repo.as_str());
        let front = || options.web.clone().unwrap_or_else(|| address.web_base());
        let root = || options.web.clone().unwrap_or_else(|| address.root_base());
        let github_like = async |flavour, web| {
            GithubLike::open(flavour, web, repository, token, options).await.map(Self::GithubLike)
        };
        match find_kind(address, options).await? {
            ForgeKind::Gitea => github_like(Flavour::Gitea, front()).await,
            ForgeKind::GitHub => github_like(Flavour::GitHub, root()).await,
            ForgeKind::GitLab => {
                let project = address.project_path(&root());
                Ok(Self::GitLab(Gitlab::open(root(), project, token, options).await?))
            }
            ForgeKind::Folder => Err(ForgeError::UnknownForge { host: address.host.clone() }),
        }
    }

    pub fn kind(&self) -> ForgeKind {
        match self {
            Self::GithubLike(forge) => forge.kind(),
            Self::GitLab(_) => ForgeKind::GitLab,
            Self::Folder(_) => ForgeKind::Folder,
        }
    }

    /// Returns whether issues and pull requests share their numbers.
    pub fn numbering(&self) -> Numbering {
        each!(self, forge => forge.numbering())
    }

    /// Returns a thread in the forge's notation: `#3`, or `!3` for a merge request.
    pub fn reference(&self, thread: Thread) -> String {
        self.numbering().reference(thread)
    }

    /// Returns the account of the token, and whether it may push; fails if the token is not valid.
    pub async fn whoami(&self) -> ForgeResult<Account> {
        each!(self, forge => forge.whoami().await)
    }

    /// Returns whether an account is a member of an organisation (a group). A forge that hides the members,
    /// because the token's account is not one, is an error and not a no.
    pub async fn is_org_member(&self, org: &str, user: &str) -> ForgeResult<bool> {
        each!(self, forge => forge.is_org_member(org, user).await)
    }

    /// Reads an issue. Where issues and pull requests share their numbers, the number of a pull request is not found.
    pub async fn read_issue(&self, number: u64) -> ForgeResult<Issue> {
        each!(self, forge => forge.read_issue(number).await)
    }

    /// Lists the open issues that have all of these labels, oldest first, without pull requests. Servers
    /// ignore filters that they do not understand, so everything is matched again.
    pub async fn list_open_issues(&self, labels: &[String]) -> ForgeResult<Vec<Issue>> {
        let mut issues = each!(self, forge => forge.open_issues(labels).await)?;
        issues.retain(|issue| issue.is_open_with(labels));
        issues.sort_by_key(|issue| issue.number);
        Ok(issues)
    }

    pub async fn read_pr(&self, number: u64) -> ForgeResult<PullRequest> {
        each!(self, forge => forge.read_pr(number).await)
    }

    /// Finds the open pull request of the token's own account, from a branch of the repository itself, that
    /// closes an issue; the newest of several. Other accounts can make the same claim and are ignored: the
    /// scope of writes follows from this.
    pub async fn get_pr_for_issue(&self, number: u64) -> ForgeResult<Option<u64>> {
        let login = self.whoami().await?.login;
        let pulls = each!(self, forge => forge.own_pulls(None).await)?;
        Ok(choose_pull_for_issue(&pulls, number, login.as_deref()))
    }

    /// Finds the open pull request whose changes are on this branch of the repository itself; the newest of several.
    pub async fn find_pull(&self, head: &BranchName) -> ForgeResult<Option<PullRequest>> {
        let pulls = each!(self, forge => forge.own_pulls(Some(head)).await)?;
        Ok(pulls.into_iter().rev().find(|pull| pull.head_branch == head.as_str()))
    }

    /// Lists the open pull requests from branches of the repository itself that begin with `prefix`, oldest first.
    pub async fn list_open_pulls_by_prefix(&self, prefix: &str) -> ForgeResult<Vec<PullRequest>> {
        let mut pulls = each!(self, forge => forge.own_pulls(None).await)?;
        pulls.retain(|pull| pull.head_branch.starts_with(prefix));
        Ok(pulls)
    }

    /// Opens a pull request, once: if the response is lost, it is looked for before the request is sent again.
    pub async fn create_pull(&self, pull: &NewPull) -> ForgeResult<PullRequest> {
        each!(self, forge => once::create_pull(forge, pull).await)
    }

    /// Replaces title, text and readiness of a pull request, and nothing else.
    pub async fn update_pull(
        &self,
        number: u64,
        title: &str,
        body: &str,
        draft: bool,
    ) -> ForgeResult<PullRequest> {
        let (title, body, draft) = (Some(title), Some(body), Some(draft));
        let edit = PullEdit { title, body, draft, close: false };
        each!(self, forge => forge.edit_pull(number, &edit).await)
    }

    /// Closes a pull request without merging it; one that is closed already stays as it is.
    pub async fn close_pull(&self, number: u64) -> ForgeResult<PullRequest> {
        let pull = self.read_pr(number).await?;
        match pull.state {
            ThreadState::Closed => Ok(pull),
            ThreadState::Open | ThreadState::Other(_) => {
                let edit = PullEdit { close: true, ..PullEdit::default() };
                each!(self, forge => forge.edit_pull(number, &edit).await)
            }
        }
    }

    /// Reads all comments on an issue or a pull request, reviews and remarks on lines included, oldest first.
    pub async fn read_comments(&self, thread: Thread) -> ForgeResult<Vec<Comment>> {
        let mut comments = each!(self, forge => forge.plain_comments(thread).await)?;
        comments.extend(each!(self, forge => forge.review_comments(thread).await)?);
        // Stable, so that comments without a time, or with the same, keep the forge's order.
        comments.sort_by_key(|comment| comment.created_at);
        Ok(comments)
    }

    /// Reads the comments of the conversation alone: an issue has no reviews, and asking for them is a request.
    pub async fn read_plain_comments(&self, thread: Thread) -> ForgeResult<Vec<Comment>> {
        each!(self, forge => forge.plain_comments(thread).await)
    }

    /// Reads the comments of reviews alone, where they are separate.
    pub async fn read_review_comments(&self, thread: Thread) -> ForgeResult<Vec<Comment>> {
        each!(self, forge => forge.review_comments(thread).await)
    }

    /// Reads who set which label and who assigned whom on an issue, oldest first.
    pub async fn issue_events(&self, number: u64) -> ForgeResult<Vec<IssueEvent>> {
        each!(self, forge => forge.issue_events(number).await)
    }

    /// Lists the issues that the forge says have to be closed before this one.
    pub async fn blockers(&self, number: u64) -> ForgeResult<Vec<Blocker>> {
        each!(self, forge => forge.blockers(number).await)
    }

    /// Reads an attachment from the forge's own server. Redirects are not followed, except to where GitHub keeps
    /// attachments, and the token does not travel there.
    pub async fn read_attachment(&self, attachment: &Attachment) -> ForgeResult<Vec<u8>> {
        each!(self, forge => forge.attachment(attachment).await)
    }

    /// Lists the checks of the newest commit of a pull request, each in its newest attempt.
    pub async fn read_checks(&self, pull: &PullRequest) -> ForgeResult<Vec<CheckReport>> {
        match &pull.checks {
            Some(checks) => Ok(checks.clone()),
            None => each!(self, forge => forge.checks(pull).await),
        }
    }

    /// Reads the ends of the logs of failed checks. A log that cannot be read is left out: the name and the words of the
    /// check stay.
    pub async fn read_check_logs(
        &self,
        pull: &PullRequest,
        reports: &[CheckReport],
    ) -> ForgeResult<Vec<FailedCheck>> {
        let mut checks = Vec::new();
        for report in failed(reports) {
            let log = match each!(self, forge => forge.check_log(pull, report).await) {
                Ok(log) => log.map(|log| tail(&log)),
                // The agent sees the name and the words of the check; people have the page.
                Err(_) => None,
            };
            let CheckReport { name, description, url, .. } = report.clone();
            checks.push(FailedCheck { name, description, url, log });
        }
        Ok(checks)
    }

    /// Answers in the thread of a remark on a pull request, once, like [`Self::create_pull`].
    pub async fn post_reply(&self, pull: u64, remark: &Comment, body: &str) -> ForgeResult<()> {
        each!(self, forge => once::post_reply(forge, pull, remark, body).await)
    }

    /// Resolves the thread of a remark; `false` if the forge cannot.
    pub async fn resolve_thread(&self, pull: u64, remark: &Comment) -> ForgeResult<bool> {
        each!(self, forge => forge.resolve_thread(pull, remark).await)
    }

    /// Lists the accounts with a thumbs-up on a comment.
    pub async fn thumbs_up(&self, thread: Thread, comment: u64) -> ForgeResult<Vec<String>> {
        each!(self, forge => forge.thumbs_up(thread, comment).await)
    }

    pub async fn request_reviewers(&self, pull: u64, logins: &[String]) -> ForgeResult<()> {
        each!(self, forge => forge.request_reviewers(pull, logins).await)
    }

    pub async fn add_labels(&self, pull: u64, labels: &[String]) -> ForgeResult<()> {
        each!(self, forge => forge.add_labels(pull, labels).await)
    }

    pub async fn add_assignees(&self, pull: u64, logins: &[String]) -> ForgeResult<()> {
        each!(self, forge => forge.add_assignees(pull, logins).await)
    }

    /// Comments on an issue or a pull request, once, like [`Self::create_pull`].
    pub async fn post_comment(&self, thread: Thread, body: &str) -> ForgeResult<Comment> {
        each!(self, forge => once::post_comment(forge, thread, body).await)
    }

    /// Replaces the text of a comment of the token's own account.
    pub async fn edit_comment(&self, thread: Thread, id: u64, body: &str) -> ForgeResult<()> {
        each!(self, forge => forge.edit_comment(thread, id, body).await)
    }

    /// Replaces the text of an issue or a pull request, and nothing else.
    pub async fn update_description(&self, thread: Thread, body: &str) -> ForgeResult<()> {
        each!(self, forge => forge.set_description(thread, body).await)
    }

    pub async fn webhooks(&self) -> ForgeResult<Vec<Webhook>> {
        each!(self, forge => forge.webhooks().await)
    }

    /// Ensures that exactly one webhook leads to this address, with this secret: one that is there is replaced.
    pub async fn set_webhook(&self, hook: &NewWebhook) -> ForgeResult<Webhook> {
        each!(self, forge => set_webhook(forge, hook).await)
    }

    /// Removes every webhook that leads to this address, and returns their number.
    pub async fn remove_webhooks(&self, url: &str) -> ForgeResult<usize> {
        let mut there = self.webhooks().await?;
        there.retain(|hook| hook.url == url);
        for hook in &there {
            each!(self, forge => forge.drop_webhook(hook.id).await)?;
        }
        Ok(there.len())
    }
}

/// Makes the new webhook before it removes the old ones, so that no event is lost in between.
async fn set_webhook<P: ForgeProvider>(forge: &P, hook: &NewWebhook) -> ForgeResult<Webhook> {
    let mut before = forge.webhooks().await?;
    before.retain(|there| there.url == hook.url);
    let edited = match before.first() {
        Some(old) => forge.edit_webhook(old.id, hook).await?,
        None => None,
    };
    let made = match edited {
        Some(edited) => edited,
        None => once::create_webhook(forge, hook, &before).await?,
    };
    for old in before.iter().filter(|old| old.id != made.id) {
        forge.drop_webhook(old.id).await?;
    }
    Ok(made)
}
