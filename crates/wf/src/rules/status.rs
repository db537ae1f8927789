//! The status of a workstream and its transitions.

use std::fmt;

use model::id::WorkstreamId;
use serde::{Serialize, Serializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WorkstreamStatus {
    Planning,
    Implement,
    BlockedClarification,
    BlockedReview,
    BlockedTest,
    Docs,
    UatPending,
    UatFailed,
    MergeReady,
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("STATUS is not one of {}", WorkstreamStatus::ALL.map(WorkstreamStatus::word).join(", "))]
pub(crate) struct UnknownStatus;

impl WorkstreamStatus {
    pub(crate) const ALL: [Self; 10] = [
        Self::Planning,
        Self::Implement,
        Self::BlockedClarification,
        Self::BlockedReview,
        Self::BlockedTest,
        Self::Docs,
        Self::UatPending,
        Self::UatFailed,
        Self::MergeReady,
        Self::Done,
    ];

    /// The word in meta.env.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Planning => "planning",
            Self::Implement => "implement",
            Self::BlockedClarification => "blocked:clarification",
            Self::BlockedReview => "blocked:review",
            Self::BlockedTest => "blocked:test",
            Self::Docs => "docs",
            Self::UatPending => "uat:pending",
            Self::UatFailed => "uat:failed",
            Self::MergeReady => "merge-ready",
            Self::Done => "done",
        }
    }

    /// Reads the word, and the alias that the specification's appendix has.
    pub(crate) fn parse(text: &str) -> Result<Self, UnknownStatus> {
        if text == "blocked:clarify" {
            return Ok(Self::BlockedClarification);
        }
        Self::ALL.into_iter().find(|status| status.word() == text).ok_or(UnknownStatus)
    }

    /// Reports whether `wf close` works without `--force`.
    pub(crate) fn is_complete(self) -> bool {
        matches!(self, Self::MergeReady | Self::Done)
    }

    pub(crate) fn needs(self) -> Option<&'static str> {
        match self {
            Self::BlockedClarification => Some("answer: wf clarify list"),
            Self::UatPending => Some("accept: wf uat list"),
            Self::UatFailed => Some("run the fix in the plan: wf run"),
            Self::MergeReady => Some("merge: wf merge"),
            Self::BlockedReview | Self::BlockedTest => Some("look at the last run: wf show"),
            Self::Planning => Some("write the plan, then: wf run"),
            Self::Implement | Self::Docs | Self::Done => None,
        }
    }

    /// The same for one workstream: a command that takes its name gets it, so that it can be typed as it stands.
    pub(crate) fn needs_of(self, id: &WorkstreamId) -> Option<String> {
        let needs = self.needs()?;
        Some(match self {
            Self::MergeReady | Self::Planning | Self::UatFailed => format!("{needs} {id}"),
            Self::BlockedReview | Self::BlockedTest => format!("{needs} -w {id}"),
            Self::BlockedClarification
            | Self::UatPending
            | Self::Implement
            | Self::Docs
            | Self::Done => needs.to_owned(),
        })
    }
}

impl fmt::Display for WorkstreamStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl Serialize for WorkstreamStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GateFacts {
    pub(crate) all_done: bool,
    pub(crate) has_blocking_question: bool,
    pub(crate) uat_pending: usize,
    pub(crate) uat_passed: usize,
    pub(crate) uat_failed: usize,
}

/// The status after a person passed or failed an acceptance test, or answered a question, while no run is on.
pub(crate) fn next_after_person(now: WorkstreamStatus, gate: GateFacts) -> WorkstreamStatus {
    use WorkstreamStatus as S;
    match now {
        S::Done => S::Done,
        _ if gate.has_blocking_question => S::BlockedClarification,
        _ if gate.uat_failed > 0 => S::UatFailed,
        _ if gate.all_done && gate.uat_pending > 0 => S::UatPending,
        _ if gate.all_done && gate.uat_passed > 0 => S::MergeReady,
        S::BlockedClarification | S::UatPending | S::UatFailed | S::MergeReady => S::Implement,
        S::Planning | S::Implement | S::BlockedReview | S::BlockedTest | S::Docs => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use WorkstreamStatus as S;

    #[test]
    fn every_status_reads_back_and_the_alias_is_known() {
        for status in S::ALL {
            assert_eq!(S::parse(status.word()), Ok(status));
        }
        assert_eq!(S::parse("blocked:clarify"), Ok(S::BlockedClarification));
        assert!(S::parse("Done").unwrap_err().to_string().contains("merge-ready"));
    }

    #[track_caller]
    fn after(now: S, all_done: bool, question: bool, uat: [usize; 3], expected: S) {
        let [uat_pending, uat_passed, uat_failed] = uat;
        let gate = GateFacts {
            all_done,
            has_blocking_question: question,
            uat_pending,
            uat_passed,
            uat_failed,
        };
        assert_eq!(next_after_person(now, gate), expected);
    }

    #[test]
    fn the_last_pass_makes_merge_ready_unless_a_question_blocks() {
        after(S::UatPending, true, false, [0, 1, 0], S::MergeReady);
        after(S::UatPending, true, false, [1, 1, 0], S::UatPending);
        after(S::UatPending, true, true, [0, 1, 0], S::BlockedClarification);
        after(S::UatPending, true, false, [0, 1, 1], S::UatFailed);
        after(S::UatPending, false, false, [0, 1, 0], S::Implement);
    }

    #[test]
    fn the_last_answer_leads_back_to_implement() {
        after(S::BlockedClarification, false, false, [0, 0, 0], S::Implement);
        after(S::BlockedClarification, false, true, [0, 0, 0], S::BlockedClarification);
        after(S::BlockedTest, false, false, [0, 0, 0], S::BlockedTest);
        after(S::Planning, false, false, [0, 0, 0], S::Planning);
        after(S::Done, true, true, [0, 0, 1], S::Done);
    }
}
