//! Forge for one run: it may read anything, and write to the run's assigned threads.
//!
//! The scope is fixed when the forge is opened: a run's own pull request is opened after its agent has ended,
//! and is in the scope of the next run.
//!
//! The repository's own permissions are not such a limit: an account with write access may edit any text. A
//! refusal is a value, so that the caller can record the attempt.

use std::sync::Arc;

use model::redact::Redactor;
use serde::Serialize;

use crate::attachment::Attachment;
use crate::error::{ForgeError, ForgeResult};
use crate::forge::Forge;
use crate::pull::PullRequest;
use crate::rules::scope::{Scope, ThreadKind, WriteRefusal, judge_text};
use crate::thread::{Comment, CommentKind, Issue, Numbering, Thread};

/// A forge with a scope around its writes.
#[derive(Debug)]
pub struct ScopedForge {
    forge: Forge,
    scope: Scope,
    redactor: Arc<Redactor>,
    /// Files that the run may read.
    attachments: Vec<Attachment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOutcome<T> {
    Done(T),
    /// Not allowed; nothing was sent.
    Refused(WriteRefusal),
}

/// Answer to a remark that was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RemarkAnswer {
    /// True if the thread is resolved; `false` if nobody asked for it or the forge cannot.
    pub resolved: bool,
}

impl ScopedForge {
    /// Puts a scope around a forge. Every text passes the redactor before it is sent.
    pub fn new(forge: Forge, scope: Scope, redactor: Arc<Redactor>) -> Self {
        Self { forge, scope, redactor, attachments: Vec::new() }
    }

    /// Lets the run read these attachments, and no others.
    #[must_use]
    pub fn with_attachments(self, attachments: Vec<Attachment>) -> Self {
        Self { attachments, ..self }
    }

    pub fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    /// Reads one of the run's attachments; `None` if it has none of this name.
    pub async fn read_attachment(&self, name: &str) -> ForgeResult<Option<Vec<u8>>> {
        match self.attachments.iter().find(|attachment| attachment.name == name) {
            Some(attachment) => self.forge.read_attachment(attachment).await.map(Some),
            None => Ok(None),
        }
    }

    /// Chooses the thread that a number means to this run.
    pub fn choose_thread(&self, number: u64, kind: Option<ThreadKind>) -> Thread {
        self.scope.choose_thread(number, kind, self.forge.numbering())
    }

    pub fn may_write(&self, thread: Thread) -> bool {
        self.scope.allows(thread, self.forge.numbering())
    }

    pub async fn read_issue(&self, number: u64) -> ForgeResult<Issue> {
        self.forge.read_issue(number).await
    }

    pub async fn read_pr(&self, number: u64) -> ForgeResult<PullRequest> {
        self.forge.read_pr(number).await
    }

    /// Reads any conversation, for context. Where issues and pull requests are numbered separately and no
    /// kind is given, a number that is not an issue's is tried as a pull request's.
    pub async fn read_comments(
        &self,
        number: u64,
        kind: Option<ThreadKind>,
    ) -> ForgeResult<Vec<Comment>> {
        let thread = self.choose_thread(number, kind);
        match self.forge.read_comments(thread).await {
            Err(ForgeError::NotFound { .. }) if self.may_be_pull(thread, kind) => {
                self.forge.read_comments(Thread::Pull(number)).await
            }
            result => result,
        }
    }

    pub async fn post_comment(
        &self,
        thread: Thread,
        body: &str,
    ) -> ForgeResult<WriteOutcome<Comment>> {
        match self.judge("comment", thread, body) {
            Ok(text) => Ok(WriteOutcome::Done(self.forge.post_comment(thread, &text).await?)),
            Err(refusal) => Ok(WriteOutcome::Refused(refusal)),
        }
    }

    /// Answers a remark of a review in its thread, and resolves that thread if it is asked to and the forge can. The remark
    /// must be on a pull request in scope.
    pub async fn post_reply(
        &self,
        thread: Thread,
        remark: u64,
        body: &str,
        resolve: bool,
    ) -> ForgeResult<WriteOutcome<RemarkAnswer>> {
        let text = match self.judge("answer", thread, body) {
            Ok(text) => text,
            Err(refusal) => return Ok(WriteOutcome::Refused(refusal)),
        };
        let pull = thread.number();
        let is_meant = |comment: &Comment| {
            comment.id == remark && matches!(comment.kind, CommentKind::Remark { .. })
        };
        let comments = self.forge.read_comments(Thread::Pull(pull)).await?;
        let Some(found) = comments.into_iter().find(is_meant) else {
            let (operation, reason) = ("answer", crate::RefusalReason::NoSuchRemark);
            return Ok(WriteOutcome::Refused(WriteRefusal { operation, target: thread, reason }));
        };
        self.forge.post_reply(pull, &found, &text).await?;
        let resolved = resolve && self.forge.resolve_thread(pull, &found).await?;
        Ok(WriteOutcome::Done(RemarkAnswer { resolved }))
    }

    /// Replaces the text of a thread, and returns the text as it was sent.
    pub async fn update_description(
        &self,
        thread: Thread,
        body: &str,
    ) -> ForgeResult<WriteOutcome<String>> {
        match self.judge("update description", thread, body) {
            Ok(text) => {
                self.forge.update_description(thread, &text).await?;
                Ok(WriteOutcome::Done(text))
            }
            Err(refusal) => Ok(WriteOutcome::Refused(refusal)),
        }
    }

    fn judge(
        &self,
        operation: &'static str,
        target: Thread,
        body: &str,
    ) -> Result<String, WriteRefusal> {
        let scope = &self.scope;
        let refuse = |reason| WriteRefusal { operation, target, reason };
        if !scope.allows(target, self.forge.numbering()) {
            return Err(refuse(crate::RefusalReason::OutOfScope));
        }
        // Redacted first: the marks that make a text inert would hide a secret from the redactor.
        judge_text(&self.redactor.redact(body), scope.issue).map_err(refuse)
    }

    fn may_be_pull(&self, thread: Thread, kind: Option<ThreadKind>) -> bool {
        let apart = self.forge.numbering() == Numbering::Separate;
        apart && kind.is_none() && matches!(thread, Thread::Issue(_))
    }
}
