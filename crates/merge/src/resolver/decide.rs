//! Picks the answer with the highest confidence that reaches the trust threshold and passes the gate. Pure.

use std::fmt;

use super::conflict::{FileConflict, FileVersion};
use super::gate::{self, GateRefusal};
use super::habit::Resolution;
use super::human::HumanResolution;
use super::hunk::join;
use super::scorer::ScoredConflict;
use super::standing::SAME_FILE;

/// Confidence that an answer needs to be applied, from 0 to 1. At 1 no answer is applied.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct TrustThreshold(f64);

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0} is not a trust threshold: it must be a number from 0 to 1")]
pub struct TrustError(String);

impl TrustThreshold {
    /// Threshold without a flag or a rule.
    pub const DEFAULT: Self = Self(0.9);
    /// No answer is applied.
    pub const NEVER: Self = Self(1.0);

    /// Checks that the number is from 0 to 1.
    pub fn new(share: f64) -> Result<Self, TrustError> {
        if (0.0..=1.0).contains(&share) {
            Ok(Self(share))
        } else {
            Err(TrustError(share.to_string()))
        }
    }

    /// Parses a number from 0 to 1.
    pub fn parse(text: &str) -> Result<Self, TrustError> {
        let share = text
            .parse()
            .map_err(|_ignored: std::num::ParseFloatError| TrustError(text.to_owned()))?;
        Self::new(share)
    }

    pub fn share(self) -> f64 {
        self.0
    }

    /// Returns whether an answer with this confidence may be applied.
    pub fn allows(self, confidence: f64) -> bool {
        self < Self::NEVER && confidence >= self.0
    }
}

impl fmt::Display for TrustThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// An answer that will be applied.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolverDecision {
    pub outcome: ResolvedContent,
    pub confidence: f64,
}

/// New content of a conflicting file.
#[derive(Clone, Debug, PartialEq)]
pub enum ResolvedContent {
    /// One side's version, or no file.
    Whole(Resolution),
    /// A merged text.
    Text(Vec<u8>),
}

/// Reason why a conflict stays open.
#[derive(Clone, Debug, PartialEq)]
pub enum Declined {
    /// No strategy has an answer.
    NoAnswer,
    /// The best answer is below the trust threshold.
    NotTrusted { confidence: f64 },
    /// The gate rejected the answer.
    Refused(GateRefusal),
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer => f.write_str("no strategy has an answer"),
            Self::NotTrusted { confidence } => {
                write!(f, "the best answer has a confidence of {confidence:.2}")
            }
            Self::Refused(refusal) => write!(f, "the answer was rejected: {refusal}"),
        }
    }
}

/// An answer that may be applied.
pub struct TriedAnswer<'a> {
    pub confidence: f64,
    pub basis: &'a str,
    source: AnswerSource<'a>,
}

enum AnswerSource<'a> {
    /// People's own answer to the same three versions.
    Known(&'a ResolvedContent),
    Whole(Resolution),
    Hunks,
}

impl TriedAnswer<'_> {
    /// Content that it gives, unless the gate rejects that.
    pub fn content(
        &self,
        conflict: &FileConflict,
        scored: &ScoredConflict,
    ) -> Result<ResolvedContent, GateRefusal> {
        let content = match self.source {
            AnswerSource::Known(content) => content.clone(),
            AnswerSource::Whole(choice) => ResolvedContent::Whole(choice),
            AnswerSource::Hunks => {
                ResolvedContent::Text(join(&conflict.pieces, best_texts(scored)))
            }
        };
        // A whole version of one side needs no check: its authors committed it.
        if let ResolvedContent::Text(text) = &content {
            gate::judge(conflict, text)?;
        }
        Ok(content)
    }
}

/// Answers in the order in which they are tried: a known one first, then by confidence.
pub fn answers(scored: &ScoredConflict) -> Vec<TriedAnswer<'_>> {
    let whole = scored.whole.as_ref().map(|answer| TriedAnswer {
        confidence: answer.confidence,
        basis: &answer.basis,
        source: AnswerSource::Whole(answer.choice),
    });
    let by_hunks = scored.by_hunks.as_ref().map(|answer| TriedAnswer {
        confidence: answer.confidence,
        basis: &answer.basis,
        source: AnswerSource::Hunks,
    });
    let mut found: Vec<TriedAnswer<'_>> = whole.into_iter().chain(by_hunks).collect();
    found.sort_by(|one, other| other.confidence.total_cmp(&one.confidence));
    let known = scored.known.as_ref().map(|answer| TriedAnswer {
        confidence: answer.confidence,
        basis: SAME_FILE,
        source: AnswerSource::Known(&answer.content),
    });
    known.into_iter().chain(found).collect()
}

/// Decides whether and how a conflict is resolved.
pub fn decide(
    conflict: &FileConflict,
    scored: &ScoredConflict,
    trust: TrustThreshold,
) -> Result<ResolverDecision, Declined> {
    let answers = answers(scored);
    let surest = answers.iter().map(|answer| answer.confidence).reduce(f64::max);
    let Some(confidence) = surest else { return Err(Declined::NoAnswer) };
    let mut declined = Declined::NotTrusted { confidence };
    for answer in answers.iter().filter(|answer| trust.allows(answer.confidence)) {
        match answer.content(conflict, scored) {
            Ok(outcome) => {
                return Ok(ResolverDecision { outcome, confidence: answer.confidence });
            }
            Err(refusal) => declined = Declined::Refused(refusal),
        }
    }
    Err(declined)
}

/// Best answer for each hunk.
pub fn best_texts(scored: &ScoredConflict) -> impl Iterator<Item = &[u8]> {
    scored.hunks.iter().filter_map(|hunk| Some(hunk.candidates.get(hunk.best?)?.text.as_slice()))
}

/// Version that a choice selects; `None` deletes the file.
pub fn version_for(conflict: &FileConflict, choice: Resolution) -> Option<&FileVersion> {
    match choice {
        Resolution::Ours => conflict.ours.as_ref(),
        Resolution::Theirs => conflict.theirs.as_ref(),
        _ => None,
    }
}

/// Returns whether people resolved the conflict in the same way: every conflicting hunk is as they committed it, wherever the
/// text comes from. A whole version of one side replaces the file, and is compared with the committed file.
pub fn agrees(
    conflict: &FileConflict,
    scored: &ScoredConflict,
    human: &HumanResolution,
    outcome: &ResolvedContent,
) -> bool {
    match outcome {
        ResolvedContent::Whole(choice) => human.agree_with_choice(conflict, *choice),
        ResolvedContent::Text(text) => {
            let answers: Vec<&[u8]> = best_texts(scored).collect();
            // The hunks of such a text are known, and need not be located in it.
            let is_by_hunks = join(&conflict.pieces, answers.iter().copied()) == *text;
            match is_by_hunks {
                true => human.agree_with_hunks(conflict, &answers),
                false => human.agree_with_file(conflict, text),
            }
        }
    }
}

/// Returns whether people committed the outcome as the whole file, edits outside of the conflict among it.
pub fn is_committed_file(
    conflict: &FileConflict,
    human: &HumanResolution,
    outcome: &ResolvedContent,
) -> bool {
    match outcome {
        ResolvedContent::Whole(choice) => human.agree_with_choice(conflict, *choice),
        ResolvedContent::Text(text) => human.agree_with_text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_a_number_from_0_to_1() {
        assert_eq!(TrustThreshold::parse("0.9"), Ok(TrustThreshold::DEFAULT));
        for text in ["1.1", "-1", "NaN", "much"] {
            assert!(TrustThreshold::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn threshold_1_allows_nothing() {
        assert!(!TrustThreshold::NEVER.allows(1.0));
        assert!(TrustThreshold::DEFAULT.allows(0.9) && !TrustThreshold::DEFAULT.allows(0.899));
    }
}
