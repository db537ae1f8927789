//! Actions that a user may request for a bottle, and when each of them is possible.

use serde::Deserialize;

use super::case_status::CaseStatus;

/// A longer prompt belongs in a file of the repository.
pub(crate) const PROMPT_MAX_CHARS: usize = 20_000;

/// An action's name, as addresses and deliveries spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ActionName {
    Freeze,
    Resume,
    Destroy,
}

/// A user's request for a bottle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UserAction {
    /// Ends the agent and keeps everything.
    Freeze,
    /// Runs the agent again with this prompt.
    Resume { prompt: String },
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

impl ActionName {
    pub(crate) const ALL: [Self; 3] = [Self::Freeze, Self::Resume, Self::Destroy];

    /// The stored name.
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

    /// The action with its prompt; only resuming has one.
    pub(crate) fn with_prompt(self, prompt: String) -> UserAction {
        match self {
            Self::Freeze => UserAction::Freeze,
            Self::Resume => UserAction::Resume { prompt },
            Self::Destroy => UserAction::Destroy,
        }
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
}

impl UserAction {
    pub(crate) fn name(&self) -> ActionName {
        match self {
            Self::Freeze => ActionName::Freeze,
            Self::Resume { .. } => ActionName::Resume,
            Self::Destroy => ActionName::Destroy,
        }
    }

    /// Checks the action against the case's current status. The reconciler checks it again when it acts.
    pub(crate) fn check(&self, from: CaseStatus) -> Result<(), ActionError> {
        let refused = |verb| Err(ActionError::Status { from, verb });
        match (self, from) {
            (Self::Freeze, CaseStatus::Running) => Ok(()),
            (Self::Freeze, _) => refused("be frozen"),
            (
                Self::Resume { .. },
                CaseStatus::Destroyed | CaseStatus::Running | CaseStatus::Queued,
            ) => refused("be resumed"),
            (
                Self::Resume { prompt },
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

    fn resume(prompt: &str) -> UserAction {
        UserAction::Resume { prompt: prompt.to_owned() }
    }

    /// Which of the three are possible in a status.
    #[track_caller]
    fn check(from: CaseStatus, expected: [bool; 3]) {
        let found = [UserAction::Freeze, resume("continue"), UserAction::Destroy]
            .map(|it| it.check(from).is_ok());
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
        assert_eq!(resume(" \n").check(CaseStatus::Frozen), Err(ActionError::NoPrompt));
        let book = "x".repeat(PROMPT_MAX_CHARS + 1);
        assert_eq!(resume(&book).check(CaseStatus::Frozen), Err(ActionError::LongPrompt));
    }

    #[test]
    fn a_refusal_names_the_status() {
        let refusal = UserAction::Freeze.check(CaseStatus::Destroyed).expect_err("it is destroyed");
        assert_eq!(refusal.to_string(), "a bottle that is destroyed cannot be frozen");
    }

    #[test]
    fn names_are_parsed_as_they_are_written() {
        for action in ActionName::ALL {
            assert_eq!(ActionName::parse(action.name()), Some(action));
            assert_eq!(action.with_prompt(String::new()).name(), action);
        }
        assert_eq!(ActionName::parse("explode"), None);
    }
}
