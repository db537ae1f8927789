//! The life of a bottle: it runs, freezes while people review, runs again, and is destroyed in the end.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BottleState {
    Running,
    /// It waits for people; its folders are kept.
    Frozen,
    /// Its folders are removed; the record remains.
    Destroyed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BottleStep {
    /// A run begins in a new bottle.
    Start,
    Freeze,
    /// A run begins in a frozen bottle.
    Rehydrate,
    Destroy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a bottle that is {from} cannot {step}")]
pub struct WrongBottleStep {
    pub from: BottleState,
    pub step: BottleStep,
}

impl BottleState {
    pub const ALL: [Self; 3] = [Self::Running, Self::Frozen, Self::Destroyed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Frozen => "frozen",
            Self::Destroyed => "destroyed",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == word)
    }
}

impl fmt::Display for BottleState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for BottleStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "be started",
            Self::Freeze => "be frozen",
            Self::Rehydrate => "be rehydrated",
            Self::Destroy => "be destroyed",
        })
    }
}

/// The state after a step. Repeating a step is allowed where events can come twice: the done signal and the watchdog may
/// both freeze a bottle, and a webhook may be delivered twice.
pub fn next_status(from: BottleState, step: BottleStep) -> Result<BottleState, WrongBottleStep> {
    match (from, step) {
        (BottleState::Running | BottleState::Frozen, BottleStep::Freeze) => Ok(BottleState::Frozen),
        (BottleState::Frozen, BottleStep::Rehydrate) => Ok(BottleState::Running),
        (_, BottleStep::Destroy) => Ok(BottleState::Destroyed),
        // Only the record of a destroyed bottle remains, so the issue may get a new one.
        (BottleState::Destroyed, BottleStep::Start) => Ok(BottleState::Running),
        // Two runs in one bottle would overwrite each other, and a frozen bottle holds work.
        (BottleState::Running, BottleStep::Start | BottleStep::Rehydrate)
        | (BottleState::Frozen, BottleStep::Start)
        | (BottleState::Destroyed, BottleStep::Freeze | BottleStep::Rehydrate) => {
            Err(WrongBottleStep { from, step })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BottleState::{Destroyed, Frozen, Running};

    #[track_caller]
    fn check(from: BottleState, step: BottleStep, to: Option<BottleState>) {
        assert_eq!(next_status(from, step).ok(), to, "{from} {step}");
    }

    #[test]
    fn a_bottle_freezes_and_runs_again_until_it_is_destroyed() {
        check(Running, BottleStep::Freeze, Some(Frozen));
        check(Frozen, BottleStep::Rehydrate, Some(Running));
        check(Running, BottleStep::Destroy, Some(Destroyed));
        check(Frozen, BottleStep::Destroy, Some(Destroyed));
        check(Destroyed, BottleStep::Start, Some(Running));
    }

    #[test]
    fn what_is_so_already_stays_so() {
        check(Frozen, BottleStep::Freeze, Some(Frozen));
        check(Destroyed, BottleStep::Destroy, Some(Destroyed));
    }

    #[test]
    fn a_bottle_runs_once_at_a_time_and_never_after_its_end() {
        check(Running, BottleStep::Start, None);
        check(Running, BottleStep::Rehydrate, None);
        check(Frozen, BottleStep::Start, None);
        check(Destroyed, BottleStep::Freeze, None);
        check(Destroyed, BottleStep::Rehydrate, None);
        let error = next_status(Destroyed, BottleStep::Freeze).unwrap_err();
        assert_eq!(error.to_string(), "a bottle that is destroyed cannot be frozen");
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for status in BottleState::ALL {
            assert_eq!(BottleState::parse(status.name()), Some(status));
        }
        assert_eq!(BottleState::parse("Running"), None);
    }
}
