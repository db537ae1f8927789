//! Which answer is acted upon, if any: the surest one that passes the gates and is trusted enough. Pure.

use std::fmt;

use super::dispute::{Dispute, Version};
use super::gate::{self, Refusal};
use super::habit::Choice;
use super::hunk::join;
use super::people::{Agreement, People};
use super::weigh::{Weighed, Whole};

/// How sure an answer must be. At 1 nothing is ever acted upon.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Trust(f64);

/// A number that is no trust.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0} is no trust: it must be a number from 0 to 1")]
pub struct TrustError(String);

impl Trust {
    /// What is asked for when nobody says anything.
    pub const USUAL: Self = Self(0.9);
    /// Nothing is acted upon.
    pub const NEVER: Self = Self(1.0);

    /// Takes a number from 0 to 1.
    pub fn new(share: f64) -> Result<Self, TrustError> {
        if (0.0..=1.0).contains(&share) {
            Ok(Self(share))
        } else {
            Err(TrustError(share.to_string()))
        }
    }

    /// Reads a number from 0 to 1.
    pub fn parse(text: &str) -> Result<Self, TrustError> {
        let share = text
            .parse()
            .map_err(|_ignored: std::num::ParseFloatError| TrustError(text.to_owned()))?;
        Self::new(share)
    }

    /// The number.
    #[must_use]
    pub fn share(self) -> f64 {
        self.0
    }

    /// Whether an answer of this confidence may be acted upon.
    #[must_use]
    pub fn allows(self, confidence: f64) -> bool {
        self < Self::NEVER && confidence >= self.0
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// An answer that is acted upon.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What becomes of the file.
    pub outcome: Outcome,
    /// How sure it is.
    pub confidence: f64,
}

/// What becomes of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// One side's version, or none.
    Whole(Choice),
    /// A text made hunk by hunk.
    Text(Vec<u8>),
}

/// Why nothing was done.
#[derive(Clone, Debug, PartialEq)]
pub enum Declined {
    /// No rung has an answer.
    NoAnswer,
    /// The surest answer is not trusted enough.
    NotTrusted {
        /// How sure it is.
        confidence: f64,
    },
    /// The answer that was trusted did not pass a gate.
    Refused(Refusal),
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer => f.write_str("no rung has an answer"),
            Self::NotTrusted { confidence } => {
                write!(f, "the surest answer has a confidence of {confidence:.2}")
            }
            Self::Refused(refusal) => write!(f, "the answer was refused: {refusal}"),
        }
    }
}

/// Decides about a dispute.
pub fn decide(dispute: &Dispute, weighed: &Weighed, trust: Trust) -> Result<Decision, Declined> {
    let mut options: Vec<(f64, Option<&Whole>)> = Vec::new();
    options.extend(weighed.whole.as_ref().map(|whole| (whole.confidence, Some(whole))));
    options.extend(weighed.by_hunks.as_ref().map(|by_hunks| (by_hunks.confidence, None)));
    options.sort_by(|one, other| other.0.total_cmp(&one.0));
    let Some(&(surest, _)) = options.first() else { return Err(Declined::NoAnswer) };
    let mut declined = Declined::NotTrusted { confidence: surest };
    for (confidence, whole) in options {
        if !trust.allows(confidence) {
            break;
        }
        let outcome = match whole {
            Some(whole) => Outcome::Whole(whole.choice),
            None => Outcome::Text(join(&dispute.pieces, best_texts(weighed))),
        };
        match check(dispute, &outcome) {
            Ok(()) => return Ok(Decision { outcome, confidence }),
            Err(refusal) => declined = Declined::Refused(refusal),
        }
    }
    Err(declined)
}

/// A side that is taken as it is was accepted by those who committed it; a text of ours was not.
fn check(dispute: &Dispute, outcome: &Outcome) -> Result<(), Refusal> {
    match outcome {
        Outcome::Whole(_) => Ok(()),
        Outcome::Text(text) => gate::judge(dispute, text),
    }
}

/// The preferred answer to each hunk.
pub fn best_texts(weighed: &Weighed) -> impl Iterator<Item = &[u8]> {
    weighed.hunks.iter().filter_map(|hunk| Some(hunk.candidates.get(hunk.best?)?.text.as_slice()))
}

/// The version that a choice means; none means that the file goes.
#[must_use]
pub fn version_for(dispute: &Dispute, choice: Choice) -> Option<&Version> {
    match choice {
        Choice::Ours => dispute.ours.as_ref(),
        Choice::Theirs => dispute.theirs.as_ref(),
        _ => None,
    }
}

/// Whether people did what was decided.
#[must_use]
pub fn agrees(dispute: &Dispute, weighed: &Weighed, people: &People, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Whole(choice) => people.agree_with_choice(dispute, *choice),
        Outcome::Text(_) => {
            let answers: Vec<&[u8]> = best_texts(weighed).collect();
            people.agree_with_hunks(dispute, &answers) != Agreement::No
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trust_is_a_share() {
        assert_eq!(Trust::parse("0.9"), Ok(Trust::USUAL));
        for text in ["1.1", "-1", "NaN", "much"] {
            assert!(Trust::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn full_trust_allows_nothing() {
        assert!(!Trust::NEVER.allows(1.0));
        assert!(Trust::USUAL.allows(0.9) && !Trust::USUAL.allows(0.899));
    }
}
