//! What a person may wish for a bottle, and when that makes sense.

use super::standing::Standing;

/// A prompt longer than this is a document, and belongs into the repository.
pub(crate) const PROMPT_MAX_CHARS: usize = 20_000;

/// Something a person wants done with a bottle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// End the agent and keep everything.
    Freeze,
    /// Go on, with these words.
    Resume { prompt: String },
    /// Remove the bottle; its records stay.
    Destroy,
}

/// Why a wish is not kept.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unwanted {
    #[error("a bottle that is {} cannot {verb}", from.name())]
    Standing { from: Standing, verb: &'static str },
    #[error("the prompt is empty; say what is to be done")]
    NoPrompt,
    #[error(
        "the prompt is longer than {PROMPT_MAX_CHARS} characters; put it into a file of the repository"
    )]
    LongPrompt,
}

impl Wish {
    /// The word under which it is kept.
    pub(crate) fn event(&self) -> &'static str {
        match self {
            Self::Freeze => "freeze",
            Self::Resume { .. } => "resume",
            Self::Destroy => "destroy",
        }
    }

    /// What is told to whoever wished.
    pub(crate) fn notice(&self) -> &'static str {
        match self {
            Self::Freeze => {
                "Asked to freeze. The agent has a few seconds to leave; then its work is judged."
            }
            Self::Resume { .. } => "Asked to go on. It runs as soon as there is room.",
            Self::Destroy => "Asked to destroy. The records of its runs stay.",
        }
    }

    /// Whether it makes sense now. What happens in between is for whoever acts on it.
    pub(crate) fn check(&self, from: Standing) -> Result<(), Unwanted> {
        let refused = |verb| Err(Unwanted::Standing { from, verb });
        match (self, from) {
            (Self::Freeze, Standing::Running) => Ok(()),
            (Self::Freeze, _) => refused("be frozen"),
            (Self::Resume { .. }, Standing::Destroyed | Standing::Running | Standing::Queued) => {
                refused("be resumed")
            }
            (
                Self::Resume { prompt },
                Standing::NeedsAttention | Standing::Waiting | Standing::Frozen,
            ) => check_prompt(prompt),
            (Self::Destroy, Standing::Destroyed) => refused("be destroyed again"),
            (Self::Destroy, _) => Ok(()),
        }
    }
}

fn check_prompt(prompt: &str) -> Result<(), Unwanted> {
    match prompt.trim().is_empty() {
        true => Err(Unwanted::NoPrompt),
        false if prompt.chars().count() > PROMPT_MAX_CHARS => Err(Unwanted::LongPrompt),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resume(prompt: &str) -> Wish {
        Wish::Resume { prompt: prompt.to_owned() }
    }

    /// Which of the three make sense where.
    #[track_caller]
    fn check(from: Standing, expected: [bool; 3]) {
        let found = [Wish::Freeze, resume("go on"), Wish::Destroy].map(|it| it.check(from).is_ok());
        assert_eq!(found, expected, "{from:?}");
    }

    #[test]
    fn only_what_makes_sense_can_be_wished_for() {
        check(Standing::NeedsAttention, [false, true, true]);
        check(Standing::Waiting, [false, true, true]);
        check(Standing::Running, [true, false, true]);
        check(Standing::Queued, [false, false, true]);
        check(Standing::Frozen, [false, true, true]);
        check(Standing::Destroyed, [false, false, false]);
    }

    #[test]
    fn going_on_needs_words_and_not_a_book() {
        assert_eq!(resume(" \n").check(Standing::Frozen), Err(Unwanted::NoPrompt));
        let book = "x".repeat(PROMPT_MAX_CHARS + 1);
        assert_eq!(resume(&book).check(Standing::Frozen), Err(Unwanted::LongPrompt));
    }

    #[test]
    fn a_refusal_says_what_stands_against_it() {
        let refusal = Wish::Freeze.check(Standing::Destroyed).expect_err("it is gone");
        assert_eq!(refusal.to_string(), "a bottle that is destroyed cannot be frozen");
    }
}
