//! Actions that a user may request for a bottle, and when each of them is possible.

use serde::Deserialize;

use super::case_status::CaseStatus;

/// A longer prompt belongs in a file of the repository.
pub(crate) const PROMPT_MAX_CHARS: usize = 20_000;

/// A user's request for a bottle, as addresses and deliveries name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UserAction {
    /// Ends the agent and keeps everything.
    Freeze,
    /// Runs the agent again with a prompt.
    Resume,
    /// Removes the bottle; its records stay.
    Destroy,
}

/// Reason why an action is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ActionError {
    #[error("a bottle that is {} cannot {verb}", from.name())]
    Status { from: CaseStatus, verb: &'static str },
    #[error("the prompt is empty; say what the agent is to do")]
    NoPrompt,
    #[error(
        "the prompt is longer than {PROMPT_MAX_CHARS} characters; put it into a file of the repository"
    )]
    LongPrompt,
}

impl UserAction {
    pub(crate) const ALL: [Self; 3] = [Self::Freeze, Self::Resume, Self::Destroy];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Freeze => "freeze",
            Self::Resume => "resume",
            Self::Destroy => "destroy",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == word)
    }

    /// Confirmation on the page after the action was accepted.
    pub(crate) fn notice(self) -> &'static str {
        match self {
            Self::Freeze => {
                "Freeze requested. The agent has a few seconds to end; then its work is judged."
            }
            Self::Resume => "Resume requested. It runs as soon as a slot is free.",
            Self::Destroy => "Destroy requested. The records of its runs stay.",
        }
    }

    /// Checks the action against the case's current status. The reconciler checks it again when it acts.
    pub(crate) fn check(self, from: CaseStatus, prompt: &str) -> Result<(), ActionError> {
        let refused = |verb| Err(ActionError::Status { from, verb });
        match (self, from) {
            (Self::Freeze, CaseStatus::Running) => Ok(()),
            (Self::Freeze, _) => refused("be frozen"),
            (Self::Resume, CaseStatus::Destroyed | CaseStatus::Running | CaseStatus::Queued) => {
                refused("be resumed")
            }
            (
                Self::Resume,
                CaseStatus::NeedsAttention | CaseStatus::Waiting | CaseStatus::Frozen,
            ) => check_prompt(prompt),
            (Self::Destroy, CaseStatus::Destroyed) => refused("be destroyed again"),
            (Self::Destroy, _) => Ok(()),
        }
    }
}

fn check_prompt(prompt: &str) -> Result<(), ActionError> {
    match prompt.trim().is_empty() {
        true => Err(ActionError::NoPrompt),
        false if prompt.chars().count() > PROMPT_MAX_CHARS => Err(ActionError::LongPrompt),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Possible actions in a status.
    #[track_caller]
    fn check(from: CaseStatus, expected: [bool; 3]) {
        let found = UserAction::ALL.map(|it| it.check(from, "continue").is_ok());
        assert_eq!(found, expected, "{from:?}");
    }

    #[test]
    fn only_what_the_status_allows_is_accepted() {
        check(CaseStatus::NeedsAttention, [false, true, true]);
        check(CaseStatus::Waiting, [false, true, true]);
        check(CaseStatus::Running, [true, false, true]);
        check(CaseStatus::Queued, [false, false, true]);
        check(CaseStatus::Frozen, [false, true, true]);
        check(CaseStatus::Destroyed, [false, false, false]);
    }

    #[test]
    fn resuming_needs_a_prompt_of_a_sensible_length() {
        assert_eq!(UserAction::Resume.check(CaseStatus::Frozen, " \n"), Err(ActionError::NoPrompt));
        let book = "x".repeat(PROMPT_MAX_CHARS + 1);
        let refused = UserAction::Resume.check(CaseStatus::Frozen, &book);
        assert_eq!(refused, Err(ActionError::LongPrompt));
    }

    #[test]
    fn a_refusal_names_the_status() {
        let refusal = UserAction::Freeze.check(CaseStatus::Destroyed, "");
        let refusal = refusal.expect_err("it is destroyed");
        assert_eq!(refusal.to_string(), "a bottle that is destroyed cannot be frozen");
    }

    #[test]
    fn names_are_parsed_as_they_are_written() {
        for action in UserAction::ALL {
            assert_eq!(UserAction::parse(action.name()), Some(action));
        }
        assert_eq!(UserAction::parse("explode"), None);
    }
}
