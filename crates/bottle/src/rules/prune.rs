//! Choice of the bottles to remove, with a reason for each of the others.

use std::path::PathBuf;

use jiff::{SignedDuration, Span, SpanRelativeTo};
use serde::Serialize;

/// An older folder of a bottle that went on on another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OldFolder {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The reason why it stays; `None` if the store has what is in it, or something newer.
    pub(crate) kept_because: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OldBottleState {
    /// A process works on it, or its last run is not finished.
    Alive,
    Unreadable,
    /// It waits for the review of its pull request, which can resume it.
    Waiting,
    /// Its last run left work that neither origin nor the checkout has.
    Unpublished,
    /// All of its work is at origin or in the checkout, or there is none.
    Done,
    /// Only the records of its runs are left.
    Destroyed,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct OldBottle {
    /// Time since its last run ended.
    pub(crate) age: SignedDuration,
    pub(crate) state: OldBottleState,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct PruneOptions {
    pub(crate) older_than: SignedDuration,
    /// Newest bottles that stay.
    pub(crate) keep: usize,
    /// Bottles with unpublished work go too.
    pub(crate) takes_unpublished: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BottleFate {
    Remove,
    Alive,
    Unreadable,
    Waiting,
    Young,
    Newest,
    Unpublished,
}

impl BottleFate {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Remove => "it is old",
            Self::Alive => "it is at work, or its last run is not finished",
            Self::Unreadable => "its record cannot be read",
            Self::Waiting => "it waits for its pull request (bot-bottle destroy ends that)",
            Self::Young => "it is young (--older-than)",
            Self::Newest => "it is among the newest (--keep)",
            Self::Unpublished => {
                "it has work that neither origin nor the checkout has (see: bot-bottle diff; --unpublished)"
            }
        }
    }
}

/// Decides about every bottle; they must come newest first. What must never be removed outranks every option.
pub(crate) fn judge_bottles(bottles: &[OldBottle], options: PruneOptions) -> Vec<BottleFate> {
    let judge = |(place, bottle): (usize, &OldBottle)| match bottle.state {
        OldBottleState::Alive => BottleFate::Alive,
        OldBottleState::Unreadable => BottleFate::Unreadable,
        OldBottleState::Waiting => BottleFate::Waiting,
        _ if bottle.age <= options.older_than => BottleFate::Young,
        _ if place < options.keep => BottleFate::Newest,
        OldBottleState::Unpublished if !options.takes_unpublished => BottleFate::Unpublished,
        OldBottleState::Unpublished | OldBottleState::Done | OldBottleState::Destroyed => {
            BottleFate::Remove
        }
    };
    bottles.iter().enumerate().map(judge).collect()
}

/// Reads an age such as `30d`, `2w` or `12h`. A day has 24 hours.
pub(crate) fn parse_age(text: &str) -> Result<SignedDuration, String> {
    let wrong = || format!("'{text}' is no age; give a number and w, d, h or m, such as 30d");
    let span: Span = text.parse().map_err(|_ignored: jiff::Error| wrong())?;
    let age = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok();
    age.filter(|age| !age.is_negative()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        state: OldBottleState,
        days: i64,
        keep: usize,
        unpublished: bool,
        expected: BottleFate,
    ) {
        let bottle = OldBottle { age: SignedDuration::from_hours(24 * days), state };
        let older_than = SignedDuration::from_hours(24 * 10);
        let options = PruneOptions { older_than, keep, takes_unpublished: unpublished };
        assert_eq!(judge_bottles(&[bottle], options), [expected], "{state:?} {days} {keep}");
    }

    #[test]
    fn each_state_has_its_fate_when_age_and_number_allow() {
        check(OldBottleState::Alive, 20, 0, true, BottleFate::Alive);
        check(OldBottleState::Unreadable, 20, 0, true, BottleFate::Unreadable);
        check(OldBottleState::Waiting, 20, 0, true, BottleFate::Waiting);
        check(OldBottleState::Unpublished, 20, 0, false, BottleFate::Unpublished);
        check(OldBottleState::Unpublished, 20, 0, true, BottleFate::Remove);
        check(OldBottleState::Done, 20, 0, false, BottleFate::Remove);
        check(OldBottleState::Destroyed, 20, 0, false, BottleFate::Remove);
    }

    #[test]
    fn age_and_number_must_both_allow_it() {
        check(OldBottleState::Done, 5, 0, false, BottleFate::Young);
        check(OldBottleState::Done, 20, 1, false, BottleFate::Newest);
        check(OldBottleState::Unpublished, 5, 0, true, BottleFate::Young);
    }
}
