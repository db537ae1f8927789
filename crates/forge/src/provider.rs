//! Operations that each kind of forge implements, roughly one request each. `forge` builds on them, once for
//! all kinds.

use model::id::BranchName;

use crate::error::ForgeError;
use crate::http::RetryPolicy;
use crate::pull::{NewPull, PullEdit, PullRequest};
use crate::thread::{Account, Comment, Issue, Numbering, Thread};
use crate::webhook::{NewWebhook, Webhook};

pub(crate) type ForgeResult<T> = Result<T, ForgeError>;

/// One repository on one forge.
pub(crate) trait ForgeProvider: Sync {
    fn numbering(&self) -> Numbering;

    fn retry(&self) -> &RetryPolicy;

    fn whoami(&self) -> impl Future<Output = ForgeResult<Account>> + Send;

    fn is_org_member(
        &self,
        org: &str,
        user: &str,
    ) -> impl Future<Output = ForgeResult<bool>> + Send;

    fn read_issue(&self, number: u64) -> impl Future<Output = ForgeResult<Issue>> + Send;

    /// Lists open issues, optionally only those with these labels, without pull requests.
    fn open_issues(
        &self,
        labels: &[String],
    ) -> impl Future<Output = ForgeResult<Vec<Issue>>> + Send;

    fn read_pr(&self, number: u64) -> impl Future<Output = ForgeResult<PullRequest>> + Send;

    /// Lists open pull requests, optionally only those of one branch.
    fn open_pulls(
        &self,
        head: Option<&BranchName>,
    ) -> impl Future<Output = ForgeResult<Vec<PullRequest>>> + Send;

    /// Lists open pull requests from branches of the repository itself, oldest first. In a fork anyone may
    /// create a branch of the same name.
    fn own_pulls(
        &self,
        head: Option<&BranchName>,
    ) -> impl Future<Output = ForgeResult<Vec<PullRequest>>> + Send {
        async move {
            let mut pulls = self.open_pulls(head).await?;
            pulls.retain(|pull| pull.is_open() && !pull.from_fork);
            pulls.sort_by_key(|pull| pull.number);
            Ok(pulls)
        }
    }

    /// Sends one request for a pull request. An existing one is a conflict.
    fn make_pull(&self, pull: &NewPull) -> impl Future<Output = ForgeResult<PullRequest>> + Send;

    fn edit_pull(
        &self,
        number: u64,
        edit: &PullEdit<'_>,
    ) -> impl Future<Output = ForgeResult<PullRequest>> + Send;

    /// Lists comments of the conversation, oldest first.
    fn plain_comments(
        &self,
        thread: Thread,
    ) -> impl Future<Output = ForgeResult<Vec<Comment>>> + Send;

    /// Lists comments of reviews, where these are separate; none for an issue.
    fn review_comments(
        &self,
        thread: Thread,
    ) -> impl Future<Output = ForgeResult<Vec<Comment>>> + Send;

    /// Sends one request for a comment.
    fn make_comment(
        &self,
        thread: Thread,
        body: &str,
    ) -> impl Future<Output = ForgeResult<Comment>> + Send;

    /// Replaces the text of a thread, and nothing else.
    fn set_description(
        &self,
        thread: Thread,
        body: &str,
    ) -> impl Future<Output = ForgeResult<()>> + Send;

    fn webhooks(&self) -> impl Future<Output = ForgeResult<Vec<Webhook>>> + Send;

    /// Sends one request for a webhook that reports issues, pull requests and the comments on them.
    fn make_webhook(&self, hook: &NewWebhook) -> impl Future<Output = ForgeResult<Webhook>> + Send;

    /// Gives a webhook another secret; `None` where a forge cannot do that.
    fn edit_webhook(
        &self,
        id: u64,
        hook: &NewWebhook,
    ) -> impl Future<Output = ForgeResult<Option<Webhook>>> + Send;

    /// Removes a webhook; a missing one is not an error.
    fn drop_webhook(&self, id: u64) -> impl Future<Output = ForgeResult<()>> + Send;
}
