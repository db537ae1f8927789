//! What each kind of forge must be able to do, one request or so at a time. What is made of these is in `forge`, once
//! for all kinds.

use model::id::BranchName;

use crate::error::ForgeError;
use crate::http::Patience;
use crate::pull::{NewPull, PullEdit, PullRequest};
use crate::thread::{Account, Comment, Issue, IssueFilter, Numbering, Thread};
use crate::webhook::{NewWebhook, Webhook};

pub(crate) type Answer<T> = Result<T, ForgeError>;

/// One repository on one forge.
pub(crate) trait Provider: Sync {
    fn numbering(&self) -> Numbering;

    /// The server's name, for errors.
    fn host(&self) -> String;

    /// How long to wait between attempts.
    fn patience(&self) -> &Patience;

    /// Where git pushes to, without any credential.
    fn push_url(&self) -> String;

    fn whoami(&self) -> impl Future<Output = Answer<Account>> + Send;

    fn is_org_member(&self, org: &str, user: &str) -> impl Future<Output = Answer<bool>> + Send;

    fn read_issue(&self, number: u64) -> impl Future<Output = Answer<Issue>> + Send;

    /// Open issues that fit; no pull requests among them.
    fn open_issues(&self, filter: &IssueFilter) -> impl Future<Output = Answer<Vec<Issue>>> + Send;

    fn read_pr(&self, number: u64) -> impl Future<Output = Answer<PullRequest>> + Send;

    /// Open pull requests from branches of the repository itself (in a fork anybody may name a branch as we do), perhaps
    /// of one branch only, oldest first.
    fn open_pulls(
        &self,
        head: Option<&BranchName>,
    ) -> impl Future<Output = Answer<Vec<PullRequest>>> + Send;

    /// Asks once for a pull request, without its labels. One that is there already is a conflict.
    fn make_pull(&self, pull: &NewPull) -> impl Future<Output = Answer<PullRequest>> + Send;

    fn edit_pull(
        &self,
        number: u64,
        edit: &PullEdit<'_>,
    ) -> impl Future<Output = Answer<PullRequest>> + Send;

    /// What was said in the conversation, oldest first.
    fn plain_comments(&self, thread: Thread) -> impl Future<Output = Answer<Vec<Comment>>> + Send;

    /// What was said in reviews, where these are kept apart; nothing for an issue.
    fn review_comments(&self, thread: Thread) -> impl Future<Output = Answer<Vec<Comment>>> + Send;

    /// Asks once for a comment.
    fn make_comment(
        &self,
        thread: Thread,
        body: &str,
    ) -> impl Future<Output = Answer<Comment>> + Send;

    /// Replaces the text of a thread, and nothing else.
    fn set_description(
        &self,
        thread: Thread,
        body: &str,
    ) -> impl Future<Output = Answer<()>> + Send;

    /// The labels that the repository has.
    fn label_names(&self) -> impl Future<Output = Answer<Vec<String>>> + Send;

    /// Adds labels that the repository has.
    fn put_labels(
        &self,
        thread: Thread,
        names: &[String],
    ) -> impl Future<Output = Answer<()>> + Send;

    /// Takes a label off; one that is not there is no error.
    fn drop_label(&self, thread: Thread, name: &str) -> impl Future<Output = Answer<()>> + Send;

    fn webhooks(&self) -> impl Future<Output = Answer<Vec<Webhook>>> + Send;

    /// Asks once for a webhook that tells of issues, pull requests and what is said on them.
    fn make_webhook(&self, hook: &NewWebhook) -> impl Future<Output = Answer<Webhook>> + Send;

    /// Gives a webhook another secret; nothing where a forge cannot do that.
    fn edit_webhook(
        &self,
        id: u64,
        hook: &NewWebhook,
    ) -> impl Future<Output = Answer<Option<Webhook>>> + Send;

    /// Removes a webhook; one that is not there is no error.
    fn drop_webhook(&self, id: u64) -> impl Future<Output = Answer<()>> + Send;

    /// Assigns exactly these accounts.
    fn set_assignees(
        &self,
        thread: Thread,
        logins: &[String],
    ) -> impl Future<Output = Answer<()>> + Send;
}
