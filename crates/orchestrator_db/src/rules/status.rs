//! The life of a bottle: it runs, freezes while people review, runs again, and is destroyed in the end.

use std::fmt;

/// What a bottle is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BottleStatus {
    /// Its agent works.
    Running,
    /// It waits for people, its folders kept.
    Frozen,
    /// It is gone; only the record is left.
    Destroyed,
}

/// What happens to a bottle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// A run begins, with a new bottle.
    Start,
    /// The run is over.
    Freeze,
    /// A run begins, with the bottle that was frozen.
    Rehydrate,
    /// The bottle is not needed any more.
    Destroy,
}

/// A step that a bottle cannot take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a bottle that is {from} cannot {step}")]
pub struct WrongStep {
    /// What it is doing.
    pub from: BottleStatus,
    /// What was to happen.
    pub step: Step,
}

impl BottleStatus {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Running, Self::Frozen, Self::Destroyed];

    /// The word that is kept.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Frozen => "frozen",
            Self::Destroyed => "destroyed",
        }
    }

    /// Reads the word that is kept.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == word)
    }
}

impl fmt::Display for BottleStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "be started",
            Self::Freeze => "be frozen",
            Self::Rehydrate => "be rehydrated",
            Self::Destroy => "be destroyed",
        })
    }
}

/// The status after a step. What is so already stays so: the done signal and the watchdog may both freeze a bottle, and
/// a webhook may come twice.
pub fn next_status(from: BottleStatus, step: Step) -> Result<BottleStatus, WrongStep> {
    match (from, step) {
        (BottleStatus::Running | BottleStatus::Frozen, Step::Freeze) => Ok(BottleStatus::Frozen),
        (BottleStatus::Frozen, Step::Rehydrate) => Ok(BottleStatus::Running),
        (_, Step::Destroy) => Ok(BottleStatus::Destroyed),
        // What is left of a destroyed bottle is a record, so the issue may get a new one.
        (BottleStatus::Destroyed, Step::Start) => Ok(BottleStatus::Running),
        // Two runs in one bottle would write over one another, and a frozen one holds work.
        (BottleStatus::Running, Step::Start | Step::Rehydrate)
        | (BottleStatus::Frozen, Step::Start)
        | (BottleStatus::Destroyed, Step::Freeze | Step::Rehydrate) => {
            Err(WrongStep { from, step })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BottleStatus::{Destroyed, Frozen, Running};

    #[track_caller]
    fn check(from: BottleStatus, step: Step, to: Option<BottleStatus>) {
        assert_eq!(next_status(from, step).ok(), to, "{from} {step}");
    }

    #[test]
    fn a_bottle_freezes_and_runs_again_until_it_is_destroyed() {
        check(Running, Step::Freeze, Some(Frozen));
        check(Frozen, Step::Rehydrate, Some(Running));
        check(Running, Step::Destroy, Some(Destroyed));
        check(Frozen, Step::Destroy, Some(Destroyed));
        check(Destroyed, Step::Start, Some(Running));
    }

    #[test]
    fn what_is_so_already_stays_so() {
        check(Frozen, Step::Freeze, Some(Frozen));
        check(Destroyed, Step::Destroy, Some(Destroyed));
    }

    #[test]
    fn a_bottle_runs_once_at_a_time_and_never_after_its_end() {
        check(Running, Step::Start, None);
        check(Running, Step::Rehydrate, None);
        check(Frozen, Step::Start, None);
        check(Destroyed, Step::Freeze, None);
        check(Destroyed, Step::Rehydrate, None);
        let error = next_status(Destroyed, Step::Freeze).unwrap_err();
        assert_eq!(error.to_string(), "a bottle that is destroyed cannot be frozen");
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for status in BottleStatus::ALL {
            assert_eq!(BottleStatus::parse(status.name()), Some(status));
        }
        assert_eq!(BottleStatus::parse("Running"), None);
    }
}
