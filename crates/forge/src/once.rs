//! Writes that are done once: when the effect of one is unknown, its result is looked up before it is
//! repeated.

use jiff::{SignedDuration, Timestamp};

use crate::error::ForgeError;
use crate::http::RetryPolicy;
use crate::provider::ForgeProvider;
use crate::pull::{NewPull, PullRequest};
use crate::thread::{Comment, Thread};
use crate::webhook::{NewWebhook, Webhook};

/// Largest difference between the server's clock and ours.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(10);

/// Something to be created on the server once.
pub(crate) trait OnceWrite: Sync {
    /// The thing that is created.
    type Created: Send;

    /// Sends the request, without regard to earlier attempts.
    fn create(&self) -> impl Future<Output = Result<Self::Created, ForgeError>> + Send;

    /// Finds the result of an earlier attempt.
    fn find_created(
        &self,
    ) -> impl Future<Output = Result<Option<Self::Created>, ForgeError>> + Send;
}

/// A pull request, recognised by its branches: a server has at most one open for the two.
pub(crate) struct PullWrite<'a, P> {
    pub(crate) forge: &'a P,
    pub(crate) pull: &'a NewPull,
}

/// A comment, recognised by its text and its time.
pub(crate) struct CommentWrite<'a, P> {
    pub(crate) forge: &'a P,
    pub(crate) thread: Thread,
    pub(crate) body: &'a str,
    pub(crate) began: Timestamp,
}

/// A webhook, recognised by its address: one that leads there and was not there before.
pub(crate) struct WebhookWrite<'a, P> {
    pub(crate) forge: &'a P,
    pub(crate) hook: &'a NewWebhook,
    pub(crate) before: &'a [Webhook],
}

impl<P: ForgeProvider> OnceWrite for PullWrite<'_, P> {
    type Created = PullRequest;

    async fn create(&self) -> Result<PullRequest, ForgeError> {
        self.forge.make_pull(self.pull).await
    }

    async fn find_created(&self) -> Result<Option<PullRequest>, ForgeError> {
        let NewPull { head, base, .. } = self.pull;
        let pulls = self.forge.own_pulls(Some(head)).await?;
        Ok(pulls.into_iter().find(|pull| pull.is_between(head, base)))
    }
}

impl<P: ForgeProvider> OnceWrite for CommentWrite<'_, P> {
    type Created = Comment;

    async fn create(&self) -> Result<Comment, ForgeError> {
        self.forge.make_comment(self.thread, self.body).await
    }

    async fn find_created(&self) -> Result<Option<Comment>, ForgeError> {
        let comments = self.forge.plain_comments(self.thread).await?;
        Ok(comments.into_iter().rev().find(|comment| may_be(comment, self.body, self.began)))
    }
}

impl<P: ForgeProvider> OnceWrite for WebhookWrite<'_, P> {
    type Created = Webhook;

    async fn create(&self) -> Result<Webhook, ForgeError> {
        self.forge.make_webhook(self.hook).await
    }

    async fn find_created(&self) -> Result<Option<Webhook>, ForgeError> {
        let hooks = self.forge.webhooks().await?;
        let is_old = |hook: &Webhook| self.before.iter().any(|old| old.id == hook.id);
        Ok(hooks.into_iter().find(|hook| hook.url == self.hook.url && !is_old(hook)))
    }
}

/// Creates something, unless an earlier attempt turns out to have created it.
pub(crate) async fn write_once<W: OnceWrite>(
    retry: &RetryPolicy,
    write: W,
) -> Result<W::Created, ForgeError> {
    let mut unclear = match write.create().await {
        Err(error) if leaves_doubt(&error) => error,
        result => return result,
    };
    for attempt in 1..=retry.attempts {
        retry.pause(attempt).await;
        match write.find_created().await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            // The lookup fails too, and the first error is the one that matters.
            Err(error) if leaves_doubt(&error) => return Err(unclear),
            Err(error) => return Err(error),
        }
        // The last lookup comes after the last attempt.
        if attempt == retry.attempts {
            break;
        }
        match write.create().await {
            Err(error) if leaves_doubt(&error) => unclear = error,
            // The conflict is with the first attempt, which was slow and not lost.
            Err(error @ ForgeError::Conflict { .. }) => {
                return write.find_created().await?.ok_or(error);
            }
            result => return result,
        }
    }
    Err(unclear)
}

/// Returns whether a comment can be the one that was posted with this text since then.
fn may_be(comment: &Comment, body: &str, began: Timestamp) -> bool {
    let is_recent = comment.created_at.is_some_and(|at| at.duration_since(began) > -CLOCK_SKEW);
    is_recent && comment.body.trim_end() == body.trim_end()
}

/// Returns whether a write may have taken effect in spite of this error.
fn leaves_doubt(error: &ForgeError) -> bool {
    match error {
        ForgeError::Lost { .. }
        | ForgeError::Server { .. }
        | ForgeError::Unreachable { .. }
        | ForgeError::Unreadable { .. } => true,
        ForgeError::Unauthorized { .. }
        | ForgeError::Forbidden { .. }
        | ForgeError::NotFound { .. }
        | ForgeError::Conflict { .. }
        | ForgeError::Invalid { .. }
        | ForgeError::RateLimited { .. }
        | ForgeError::Moved { .. }
        | ForgeError::MembersHidden { .. }
        | ForgeError::UnknownForge { .. }
        | ForgeError::LoginWanted { .. }
        | ForgeError::BadToken { .. }
        | ForgeError::PlainHttp { .. }
        | ForgeError::Tls(_)
        | ForgeError::NoWebhooks { .. }
        | ForgeError::Folder { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::CommentKind;

    #[test]
    fn a_comment_is_recognised_by_its_text_and_its_time() {
        let posted: Timestamp = "2026-11-15T08:06:07Z".parse().unwrap();
        let comment = Comment {
            id: 1,
            kind: CommentKind::Plain,
            url: String::new(),
            author: "bot1".to_owned(),
            body: "hello".to_owned(),
            created_at: Some(posted),
        };
        assert!(may_be(&comment, "hello\n", posted));
        assert!(!may_be(&comment, "hello there", posted));
        assert!(!may_be(&comment, "hello", posted + SignedDuration::from_hours(1)));
        assert!(!may_be(&Comment { created_at: None, ..comment }, "hello", posted));
    }
}
