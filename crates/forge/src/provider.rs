//! Operations that each kind of forge implements, roughly one request each. `forge` builds on them, once for all kinds.

use model::id::BranchName;

use crate::attachment::Attachment;
use crate::check_report::CheckReport;
use crate::error::ForgeResult;
use crate::http::RetryPolicy;
use crate::pull::{NewPull, PullEdit, PullRequest};
use crate::thread::{Account, Blocker, Comment, Issue, IssueEvent, Numbering, Thread};
use crate::webhook::{NewWebhook, Webhook};

/// One repository on one forge.
pub(crate) trait ForgeProvider: Sync {
    fn numbering(&self) -> Numbering;

    fn retry(&self) -> &RetryPolicy;

    async fn whoami(&self) -> ForgeResult<Account>;

    async fn is_org_member(&self, org: &str, user: &str) -> ForgeResult<bool>;

    async fn read_issue(&self, number: u64) -> ForgeResult<Issue>;

    /// Lists open issues, optionally only those with these labels, without pull requests.
    async fn open_issues(&self, labels: &[String]) -> ForgeResult<Vec<Issue>>;

    async fn read_pr(&self, number: u64) -> ForgeResult<PullRequest>;

    /// Lists open pull requests, optionally only those of one branch.
    async fn open_pulls(&self, head: Option<&BranchName>) -> ForgeResult<Vec<PullRequest>>;

    /// Lists open pull requests from branches of the repository itself, oldest first. In a fork anyone may
    /// create a branch of the same name.
    async fn own_pulls(&self, head: Option<&BranchName>) -> ForgeResult<Vec<PullRequest>> {
        let mut pulls = self.open_pulls(head).await?;
        pulls.retain(|pull| pull.is_open() && !pull.from_fork);
        pulls.sort_by_key(|pull| pull.number);
        Ok(pulls)
    }

    /// Sends one request for a pull request. An existing one is a conflict.
    async fn make_pull(&self, pull: &NewPull) -> ForgeResult<PullRequest>;

    async fn edit_pull(&self, number: u64, edit: &PullEdit<'_>) -> ForgeResult<PullRequest>;

    /// Lists comments of the conversation, oldest first.
    async fn plain_comments(&self, thread: Thread) -> ForgeResult<Vec<Comment>>;

    /// Lists comments of reviews, where these are separate; none for an issue.
    async fn review_comments(&self, thread: Thread) -> ForgeResult<Vec<Comment>>;

    /// Lists who set which label and who assigned whom on an issue, oldest first.
    async fn issue_events(&self, number: u64) -> ForgeResult<Vec<IssueEvent>>;

    /// Sends one request for a comment.
    async fn make_comment(&self, thread: Thread, body: &str) -> ForgeResult<Comment>;

    /// Replaces the text of a comment of the conversation.
    async fn edit_comment(&self, thread: Thread, id: u64, body: &str) -> ForgeResult<()>;

    /// Replaces the text of a thread, and nothing else.
    async fn set_description(&self, thread: Thread, body: &str) -> ForgeResult<()>;

    async fn webhooks(&self) -> ForgeResult<Vec<Webhook>>;

    /// Sends one request for a webhook that reports issues, pull requests and the comments on them.
    async fn make_webhook(&self, hook: &NewWebhook) -> ForgeResult<Webhook>;

    /// Gives a webhook another secret; `None` where a forge cannot do that.
    async fn edit_webhook(&self, id: u64, hook: &NewWebhook) -> ForgeResult<Option<Webhook>>;

    /// Removes a webhook; a missing one is not an error.
    async fn drop_webhook(&self, id: u64) -> ForgeResult<()>;
}

/// Checks of commits, on a forge that has them.
pub(crate) trait CheckProvider: Sync {
    /// Lists the checks of the newest commit of a pull request.
    async fn checks(&self, pull: &PullRequest) -> ForgeResult<Vec<CheckReport>>;

    /// Reads the log of a failed check; `None` if the forge has none.
    async fn check_log(
        &self,
        pull: &PullRequest,
        report: &CheckReport,
    ) -> ForgeResult<Option<Vec<u8>>>;
}

/// Order and attachments of an issue.
pub(crate) trait IssueProvider: Sync {
    /// Lists the issues that have to be closed before this one; none where the forge has no such list.
    async fn blockers(&self, number: u64) -> ForgeResult<Vec<Blocker>>;

    /// Reads an attachment, up to its size limit.
    async fn attachment(&self, attachment: &Attachment) -> ForgeResult<Vec<u8>>;
}

/// Answers to remarks, and what goes with a pull request beside its text.
pub(crate) trait ReviewProvider: Sync {
    /// Sends one request for an answer in the thread of a remark.
    async fn make_reply(&self, pull: u64, remark: &Comment, body: &str) -> ForgeResult<()>;

    /// Resolves the thread of a remark; `false` if the forge cannot.
    async fn resolve_thread(&self, pull: u64, remark: &Comment) -> ForgeResult<bool>;

    /// Lists the accounts with a thumbs-up on a comment.
    async fn thumbs_up(&self, thread: Thread, comment: u64) -> ForgeResult<Vec<String>>;

    async fn request_reviewers(&self, pull: u64, logins: &[String]) -> ForgeResult<()>;

    async fn add_labels(&self, pull: u64, labels: &[String]) -> ForgeResult<()>;

    async fn add_assignees(&self, pull: u64, logins: &[String]) -> ForgeResult<()>;
}
