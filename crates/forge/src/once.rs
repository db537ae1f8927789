//! Writes that are done once: when nobody knows what became of one, it is looked for before it is repeated.

use jiff::{SignedDuration, Timestamp};

use crate::error::ForgeError;
use crate::http::Patience;
use crate::provider::Provider;
use crate::pull::{NewPull, PullRequest};
use crate::thread::{Comment, Thread};
use crate::webhook::{NewWebhook, Webhook};

/// How far the server's clock may be from ours.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(10);

/// Something to be made on the server.
pub(crate) trait Write: Sync {
    /// What is made.
    type Made: Send;

    /// Asks for it, without regard to earlier attempts.
    fn make(&self) -> impl Future<Output = Result<Self::Made, ForgeError>> + Send;

    /// Looks whether an earlier attempt has made it after all.
    fn look(&self) -> impl Future<Output = Result<Option<Self::Made>, ForgeError>> + Send;
}

/// A pull request, known again by its branches: a server has one open at most for the two.
pub(crate) struct PullWrite<'a, P> {
    pub(crate) forge: &'a P,
    pub(crate) pull: &'a NewPull,
}

/// A comment, known again by its words and its time.
pub(crate) struct CommentWrite<'a, P> {
    pub(crate) forge: &'a P,
    pub(crate) thread: Thread,
    pub(crate) body: &'a str,
    pub(crate) began: Timestamp,
}

/// A webhook, known again by its address: one that leads there and was not there before.
pub(crate) struct WebhookWrite<'a, P> {
    pub(crate) forge: &'a P,
    pub(crate) hook: &'a NewWebhook,
    pub(crate) before: &'a [Webhook],
}

impl<P: Provider> Write for PullWrite<'_, P> {
    type Made = PullRequest;

    async fn make(&self) -> Result<PullRequest, ForgeError> {
        self.forge.make_pull(self.pull).await
    }

    async fn look(&self) -> Result<Option<PullRequest>, ForgeError> {
        let (head, base) = (&self.pull.head, self.pull.base.as_str());
        let pulls = self.forge.open_pulls(Some(head)).await?;
        let same =
            |pull: &PullRequest| pull.head_branch == head.as_str() && pull.base_branch == base;
        Ok(pulls.into_iter().find(same))
    }
}

impl<P: Provider> Write for CommentWrite<'_, P> {
    type Made = Comment;

    async fn make(&self) -> Result<Comment, ForgeError> {
        self.forge.make_comment(self.thread, self.body).await
    }

    async fn look(&self) -> Result<Option<Comment>, ForgeError> {
        let comments = self.forge.plain_comments(self.thread).await?;
        Ok(comments.into_iter().rev().find(|comment| may_be(comment, self.body, self.began)))
    }
}

impl<P: Provider> Write for WebhookWrite<'_, P> {
    type Made = Webhook;

    async fn make(&self) -> Result<Webhook, ForgeError> {
        self.forge.make_webhook(self.hook).await
    }

    async fn look(&self) -> Result<Option<Webhook>, ForgeError> {
        let hooks = self.forge.webhooks().await?;
        let is_old = |hook: &Webhook| self.before.iter().any(|old| old.id == hook.id);
        Ok(hooks.into_iter().find(|hook| hook.url == self.hook.url && !is_old(hook)))
    }
}

/// Makes something, unless a look shows that an earlier attempt has made it.
pub(crate) async fn write_once<W: Write>(
    patience: &Patience,
    write: W,
) -> Result<W::Made, ForgeError> {
    let mut unclear = match write.make().await {
        Err(error) if leaves_doubt(&error) => error,
        settled => return settled,
    };
    for attempt in 1..=patience.attempts {
        patience.rest(attempt).await;
        match write.look().await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            // Now it cannot even be looked for, and the first error is the one that matters.
            Err(error) if leaves_doubt(&error) => return Err(unclear),
            Err(error) => return Err(error),
        }
        // The last look comes after the last attempt.
        if attempt == patience.attempts {
            break;
        }
        match write.make().await {
            Err(error) if leaves_doubt(&error) => unclear = error,
            // What stands in the way is the first attempt, which was slow and not lost.
            Err(error @ ForgeError::Conflict { .. }) => return write.look().await?.ok_or(error),
            settled => return settled,
        }
    }
    Err(unclear)
}

/// Whether a comment can be what was posted with these words since then.
fn may_be(comment: &Comment, body: &str, began: Timestamp) -> bool {
    let is_recent = comment.created_at.is_some_and(|at| at.duration_since(began) > -CLOCK_SKEW);
    is_recent && comment.body.trim_end() == body.trim_end()
}

/// Whether a write may have been done in spite of this error.
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
        | ForgeError::NoSuchLabel { .. }
        | ForgeError::NoSuchAccount { .. }
        | ForgeError::MembersHidden { .. }
        | ForgeError::UnknownForge { .. }
        | ForgeError::BadToken { .. }
        | ForgeError::Tls(_)
        | ForgeError::NoWebhooks { .. }
        | ForgeError::Shelf { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::CommentKind;

    #[test]
    fn a_comment_is_known_again_by_its_words_and_its_time() {
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
