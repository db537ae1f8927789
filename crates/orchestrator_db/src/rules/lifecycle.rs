//! The life of a work item: it is queued, claimed before anything starts, runs, and freezes while people review, until its
//! pull request is closed.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkState {
    /// It runs as soon as a slot is free.
    Queued,
    /// A worker holds it, and may have started a bottle.
    Claimed,
    /// Its agent runs, or the result is being judged and published.
    Running,
    /// It waits for people; its bottle is kept.
    Frozen,
    /// It continues by itself: after a quota, a rate limit, a forge that is down, a budget, or other issues.
    Waiting,
    /// It needs a person to continue.
    NeedsAttention,
    /// Its bottle is removed.
    Destroyed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkStep {
    Queue,
    /// A worker takes it, before anything starts.
    Claim,
    /// Its bottle exists.
    Begin,
    /// Its run has ended in good order.
    Freeze,
    Wait,
    /// It needs a person to continue.
    CallPerson,
    /// Its bottle is removed.
    Destroy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("work that is {from} cannot {step}")]
pub struct WrongWorkStep {
    pub from: WorkState,
    pub step: WorkStep,
}

impl WorkState {
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Claimed,
        Self::Running,
        Self::Frozen,
        Self::Waiting,
        Self::NeedsAttention,
        Self::Destroyed,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Claimed => "claimed",
            Self::Running => "running",
            Self::Frozen => "frozen",
            Self::Waiting => "waiting",
            Self::NeedsAttention => "needs-attention",
            Self::Destroyed => "destroyed",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == word)
    }

    /// True if the state requires a lease.
    pub fn is_held(self) -> bool {
        matches!(self, Self::Claimed | Self::Running)
    }
}

impl fmt::Display for WorkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for WorkStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "be queued",
            Self::Claim => "be claimed",
            Self::Begin => "begin",
            Self::Freeze => "freeze",
            Self::Wait => "wait",
            Self::CallPerson => "call a person",
            Self::Destroy => "be destroyed",
        })
    }
}

/// The state after a step. Repeating a step is allowed because events come twice and late; only a claim is never given
/// twice.
pub fn next_work(from: WorkState, step: WorkStep) -> Result<WorkState, WrongWorkStep> {
    use WorkState as State;
    let (next, is_allowed) = match step {
        // The holder releases an item before it is queued: a claim is never taken from a live holder.
        WorkStep::Queue => (State::Queued, true),
        WorkStep::Claim => (State::Claimed, matches!(from, State::Queued | State::Waiting)),
        WorkStep::Begin => (State::Running, from.is_held()),
        WorkStep::Freeze => (State::Frozen, from.is_held() || from == State::Frozen),
        // What nobody holds waits without a claim: for a budget, or for other issues.
        WorkStep::Wait => (State::Waiting, !matches!(from, State::Frozen | State::Destroyed)),
        WorkStep::CallPerson => (State::NeedsAttention, from != State::Destroyed),
        // A running item is ended first.
        WorkStep::Destroy => (State::Destroyed, !from.is_held()),
    };
    if is_allowed { Ok(next) } else { Err(WrongWorkStep { from, step }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use WorkState::{Claimed, Destroyed, Frozen, NeedsAttention, Queued, Running, Waiting};

    #[track_caller]
    fn walk(steps: &[(WorkStep, WorkState)]) {
        let mut state = Queued;
        for (step, expected) in steps {
            state = next_work(state, *step).unwrap();
            assert_eq!(state, *expected, "after {step}");
        }
    }

    #[test]
    fn an_issue_goes_from_the_queue_to_a_bottle_that_is_gone() {
        walk(&[
            (WorkStep::Claim, Claimed),
            (WorkStep::Begin, Running),
            (WorkStep::Freeze, Frozen),
            (WorkStep::Queue, Queued),
            (WorkStep::Claim, Claimed),
            (WorkStep::Begin, Running),
            (WorkStep::Freeze, Frozen),
            (WorkStep::Destroy, Destroyed),
        ]);
    }

    #[test]
    fn what_waits_goes_on_by_itself_and_what_needs_somebody_does_not() {
        walk(&[
            (WorkStep::Claim, Claimed),
            (WorkStep::Begin, Running),
            (WorkStep::Wait, Waiting),
            (WorkStep::Claim, Claimed),
            (WorkStep::CallPerson, NeedsAttention),
        ]);
        assert!(next_work(NeedsAttention, WorkStep::Claim).is_err());
        assert_eq!(next_work(NeedsAttention, WorkStep::Queue), Ok(Queued));
    }

    #[test]
    fn nothing_is_claimed_twice() {
        for held in WorkState::ALL.into_iter().filter(|state| state.is_held()) {
            let error = next_work(held, WorkStep::Claim).unwrap_err();
            assert_eq!(error.to_string(), format!("work that is {held} cannot be claimed"));
        }
    }

    #[test]
    fn what_runs_is_not_destroyed_under_its_agent() {
        assert!(next_work(Running, WorkStep::Destroy).is_err());
        assert!(next_work(Claimed, WorkStep::Destroy).is_err());
        assert_eq!(next_work(Destroyed, WorkStep::Destroy), Ok(Destroyed));
    }

    #[test]
    fn only_what_was_claimed_can_begin_or_freeze() {
        for state in [Queued, NeedsAttention, Destroyed] {
            for step in [WorkStep::Begin, WorkStep::Freeze] {
                assert!(next_work(state, step).is_err(), "{state} {step}");
            }
        }
    }

    #[test]
    fn what_is_under_review_or_gone_does_not_wait() {
        for state in [Frozen, Destroyed] {
            assert!(next_work(state, WorkStep::Wait).is_err(), "{state}");
        }
        assert_eq!(next_work(Queued, WorkStep::Wait), Ok(Waiting), "for a budget");
        assert_eq!(next_work(NeedsAttention, WorkStep::Wait), Ok(Waiting), "for other issues");
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for state in WorkState::ALL {
            assert_eq!(WorkState::parse(state.name()), Some(state));
        }
        assert_eq!(WorkState::parse("Queued"), None);
    }
}
