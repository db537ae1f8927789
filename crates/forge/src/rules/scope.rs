//! Scope of a run's writes: its issue, and the pull requests that are its own.

use std::collections::BTreeSet;

use model::inert::inert_markdown;
use thiserror::Error;

use crate::thread::{Numbering, Thread};

/// Length limit of a text, below the limit of every forge.
pub const BODY_MAX_BYTES: usize = 60_000;

/// Threads that a run was assigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub issue: u64,
    /// The pull requests that earlier runs for it have opened.
    pub pulls: BTreeSet<u64>,
}

/// Kind of thread that a number means, where the caller says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadKind {
    Issue,
    Pull,
}

/// Write that was not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("refused {operation} to #{}: {reason}", .target.number())]
pub struct WriteRefusal {
    /// As a verb: `comment` or `update description`.
    pub operation: &'static str,
    pub target: Thread,
    pub reason: RefusalReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RefusalReason {
    /// It is neither the assigned issue nor one of its pull requests.
    #[error("out of scope")]
    OutOfScope,
    #[error("there is no such remark on it")]
    NoSuchRemark,
    #[error("the text is empty")]
    Empty,
    #[error("the text has {bytes} bytes and {BODY_MAX_BYTES} are the most")]
    TooLong { bytes: usize },
}

impl Scope {
    /// Chooses the thread that a number means to this run. Where the two are numbered separately, the run's
    /// own come first and then issues.
    pub(crate) fn choose_thread(
        &self,
        number: u64,
        kind: Option<ThreadKind>,
        numbering: Numbering,
    ) -> Thread {
        let is_pull = self.pulls.contains(&number);
        let is_own_issue = number == self.issue && numbering == Numbering::Separate;
        match kind {
            Some(ThreadKind::Issue) => Thread::Issue(number),
            Some(ThreadKind::Pull) => Thread::Pull(number),
            None if is_pull && !is_own_issue => Thread::Pull(number),
            None => Thread::Issue(number),
        }
    }

    pub(crate) fn allows(&self, thread: Thread, numbering: Numbering) -> bool {
        match (numbering, thread) {
            (Numbering::Shared, thread) => {
                thread.number() == self.issue || self.pulls.contains(&thread.number())
            }
            (Numbering::Separate, Thread::Issue(number)) => number == self.issue,
            (Numbering::Separate, Thread::Pull(number)) => self.pulls.contains(&number),
        }
    }
}

/// Returns the text as it may be written, or the reason of the refusal. It refers to no other issue, mentions no account
/// and gives no command.
pub(crate) fn judge_text(text: &str, own_issue: u64) -> Result<String, RefusalReason> {
    if text.trim().is_empty() {
        return Err(RefusalReason::Empty);
    }
    let text = inert_markdown(text, Some(own_issue));
    match text.len() {
        bytes if bytes > BODY_MAX_BYTES => Err(RefusalReason::TooLong { bytes }),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope { issue: 317, pulls: BTreeSet::from([318, 5]) }
    }

    #[track_caller]
    fn check(number: u64, kind: Option<ThreadKind>, numbering: Numbering, allowed: bool) {
        let scope = scope();
        let thread = scope.choose_thread(number, kind, numbering);
        assert_eq!(scope.allows(thread, numbering), allowed, "{thread:?}");
    }

    #[test]
    fn the_issue_and_its_pull_requests_are_in_scope() {
        for numbering in [Numbering::Shared, Numbering::Separate] {
            for (number, allowed) in [(317, true), (318, true), (5, true), (12, false)] {
                check(number, None, numbering, allowed);
            }
        }
    }

    #[test]
    fn where_they_are_numbered_apart_the_kind_decides() {
        let (issue, pull) = (Some(ThreadKind::Issue), Some(ThreadKind::Pull));
        check(5, issue, Numbering::Separate, false);
        check(5, pull, Numbering::Separate, true);
        check(317, pull, Numbering::Separate, false);
        check(5, issue, Numbering::Shared, true);
    }

    #[test]
    fn texts_have_an_end_and_a_beginning() {
        assert_eq!(judge_text(" \n", 1), Err(RefusalReason::Empty));
        let bytes = BODY_MAX_BYTES + 1;
        assert_eq!(judge_text(&"x".repeat(bytes), 1), Err(RefusalReason::TooLong { bytes }));
        assert_eq!(judge_text("hello", 1).as_deref(), Ok("hello"));
        let marks = "#2 ".repeat(BODY_MAX_BYTES / 3);
        assert!(matches!(judge_text(&marks, 1), Err(RefusalReason::TooLong { .. })));
    }

    #[test]
    fn a_comment_acts_on_the_own_issue_alone() {
        let text =
            "closes #317, fixes #12, GH-3 and https://git.example/a/b/issues/3; cc @alice\n/close";
        let shown = judge_text(text, 317).map(|text| text.replace('\u{200b}', "|"));
        let expected = "closes #317, fixes #|12, GH-|3 and https:|//git.example/a/b/issues/3; cc @|alice\n/|close";
        assert_eq!(shown.as_deref(), Ok(expected));
    }

    #[test]
    fn a_refusal_says_operation_target_and_reason() {
        let refusal = WriteRefusal {
            operation: "comment",
            target: Thread::Issue(12),
            reason: RefusalReason::OutOfScope,
        };
        assert_eq!(refusal.to_string(), "refused comment to #12: out of scope");
    }
}
