//! Writes that are done once: when nobody knows what became of one, it is looked for before it is repeated.

use jiff::Timestamp;

use super::Gitea;
use super::wire::WireComment;
use crate::error::ForgeError;
use crate::http::Ask;
use crate::pull::{NewPull, PullRequest};

/// Something to be made on the server.
pub(super) trait Write: Sync {
    /// What is made.
    type Made: Send;

    /// Asks for it, without regard to earlier attempts.
    fn make(&self) -> impl Future<Output = Result<Self::Made, ForgeError>> + Send;

    /// Looks whether an earlier attempt has made it after all.
    fn look(&self) -> impl Future<Output = Result<Option<Self::Made>, ForgeError>> + Send;
}

/// A pull request, known again by its branches: a server has one open at most for the two.
pub(super) struct PullWrite<'a> {
    pub(super) gitea: &'a Gitea,
    pub(super) ask: Ask,
    pub(super) pull: &'a NewPull,
}

/// A comment, known again by its words and its time.
pub(super) struct CommentWrite<'a> {
    pub(super) gitea: &'a Gitea,
    pub(super) ask: Ask,
    pub(super) number: u64,
    pub(super) body: &'a str,
    pub(super) began: Timestamp,
}

impl Write for PullWrite<'_> {
    type Made = PullRequest;

    async fn make(&self) -> Result<PullRequest, ForgeError> {
        self.gitea.pull(&self.ask).await
    }

    async fn look(&self) -> Result<Option<PullRequest>, ForgeError> {
        let (head, base) = (self.pull.head.as_str(), self.pull.base.as_str());
        let pulls = self.gitea.list_open_pulls().await?;
        Ok(pulls.into_iter().find(|pull| pull.head_branch == head && pull.base_branch == base))
    }
}

impl Write for CommentWrite<'_> {
    type Made = WireComment;

    async fn make(&self) -> Result<WireComment, ForgeError> {
        self.gitea.json(&self.ask).await
    }

    async fn look(&self) -> Result<Option<WireComment>, ForgeError> {
        let comments = self.gitea.comments(self.number).await?;
        Ok(comments.into_iter().rev().find(|comment| comment.may_be(self.body, self.began)))
    }
}

impl Gitea {
    /// Makes something, unless a look shows that an earlier attempt has made it.
    pub(super) async fn write_once<W: Write>(&self, write: W) -> Result<W::Made, ForgeError> {
        let mut unclear = match write.make().await {
            Err(error) if leaves_doubt(&error) => error,
            settled => return settled,
        };
        let attempts = self.client.patience().attempts;
        for attempt in 1..=attempts {
            self.client.rest(attempt).await;
            match write.look().await {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                // Now it cannot even be looked for, and the first error is the one that matters.
                Err(error) if leaves_doubt(&error) => return Err(unclear),
                Err(error) => return Err(error),
            }
            // The last look comes after the last attempt.
            if attempt == attempts {
                break;
            }
            match write.make().await {
                Err(error) if leaves_doubt(&error) => unclear = error,
                // What stands in the way is the first attempt, which was slow and not lost.
                Err(error @ ForgeError::Conflict { .. }) => {
                    return write.look().await?.ok_or(error);
                }
                settled => return settled,
            }
        }
        Err(unclear)
    }
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
        | ForgeError::NotSupportedYet { .. }
        | ForgeError::UnknownForge { .. }
        | ForgeError::BadToken { .. }
        | ForgeError::Tls(_) => false,
    }
}
