//! Results of replayed merges. They are kept by merge, and can be judged at any trust threshold later.

use imara_diff::{Algorithm, Diff, InternedInput};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::conflict::FileConflict;
use super::decide::{ResolvedContent, TrustThreshold, agrees, answers, version_for};
use super::habit::Resolution;
use super::human::HumanResolution;
use super::knowledge::ReplayedConflict;
use super::replay::ReplayScore;
use crate::path::TreePath;
use crate::three::text::{is_text, lines};

/// A past merge that was made again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayedMerge {
    pub merge: Sha,
    pub conflicts: usize,
    /// Files in conflict. None if the merge has too many conflicts to replay.
    pub files: Vec<ReplayedFile>,
    pub merge_ms: u64,
    pub resolver_ms: u64,
}

/// A file in conflict with the answers that pass the gate, in the order in which they are tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayedFile {
    pub path: TreePath,
    pub answers: Vec<ReplayedAnswer>,
}

/// An answer, with the knowledge from before the merge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayedAnswer {
    pub confidence: f64,
    pub basis: String,
    /// Difference from what people committed, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Otherwise>,
}

/// Two versions of a file: the resolver's and people's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Otherwise {
    pub resolver: Resolution,
    pub people: Resolution,
    /// Lines that differ. None for a file that was deleted, is binary or too large.
    pub hunks: Vec<DifferentLines>,
    /// Hunks beyond those.
    pub more: usize,
}

/// Lines that differ, from this line of people's version on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferentLines {
    pub line: usize,
    pub resolver: Vec<String>,
    pub people: Vec<String>,
}

/// Most hunks of a file, lines of a hunk and characters of a line that are kept to be shown.
const HUNKS_CAP: usize = 8;
const LINES_CAP: usize = 24;
const CHARACTERS_CAP: usize = 240;
/// Confidence below which the lines are not kept: nobody would have applied the answer.
const SHOWN: f64 = 0.5;

impl ReplayedMerge {
    /// Totals at a threshold.
    pub fn score(&self, trust: TrustThreshold) -> ReplayScore {
        let mut score = ReplayScore::default();
        if self.conflicts > 0 {
            score.add(&self.files, trust);
        }
        score
    }
}

impl ReplayedFile {
    pub fn of(replayed: &ReplayedConflict) -> Self {
        let ReplayedConflict { conflict, human, scored } = replayed;
        let answer = |answer: super::decide::TriedAnswer<'_>| {
            let content = answer.content(conflict, scored).ok()?;
            let agreed = agrees(conflict, scored, human, &content);
            let confidence = answer.confidence;
            let otherwise = (!agreed).then(|| otherwise(conflict, human, &content, confidence));
            Some(ReplayedAnswer { confidence, basis: answer.basis.to_owned(), otherwise })
        };
        let answers = answers(scored).into_iter().filter_map(answer).collect();
        Self { path: conflict.path.clone(), answers }
    }

    /// Answer that is applied at a threshold.
    pub fn answer(&self, trust: TrustThreshold) -> Option<&ReplayedAnswer> {
        self.answers.iter().find(|answer| trust.allows(answer.confidence))
    }
}

impl ReplayedAnswer {
    pub fn agreed(&self) -> bool {
        self.otherwise.is_none()
    }
}

fn otherwise(
    conflict: &FileConflict,
    human: &HumanResolution,
    content: &ResolvedContent,
    confidence: f64,
) -> Otherwise {
    let (resolver, text) = match content {
        ResolvedContent::Text(text) => (Resolution::Other, Some(text.as_slice())),
        ResolvedContent::Whole(choice) => {
            let version = version_for(conflict, *choice);
            (*choice, version.and_then(|version| version.bytes.as_deref()))
        }
    };
    let texts = text.zip(human.bytes.as_deref());
    let texts = texts.filter(|(one, other)| is_text(one) && is_text(other) && confidence >= SHOWN);
    let mut hunks = texts.map(|(one, other)| different_lines(one, other)).unwrap_or_default();
    let more = hunks.len().saturating_sub(HUNKS_CAP);
    hunks.truncate(HUNKS_CAP);
    Otherwise { resolver, people: human.choice, hunks, more }
}

fn different_lines(resolver: &[u8], people: &[u8]) -> Vec<DifferentLines> {
    let (one, other) = (lines(resolver), lines(people));
    let mut input = InternedInput::default();
    input.update_before(one.iter().copied());
    input.update_after(other.iter().copied());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_no_heuristic(&input);
    diff.hunks()
        .map(|hunk| DifferentLines {
            line: hunk.after.start as usize + 1,
            resolver: shown(&one[hunk.before.start as usize..hunk.before.end as usize]),
            people: shown(&other[hunk.after.start as usize..hunk.after.end as usize]),
        })
        .collect()
}

/// Lines as text, the first ones if there are many.
fn shown(lines: &[&[u8]]) -> Vec<String> {
    let text = |line: &&[u8]| {
        let text = String::from_utf8_lossy(line);
        text.trim_end_matches(['\r', '\n']).chars().take(CHARACTERS_CAP).collect()
    };
    let mut shown: Vec<String> = lines.iter().take(LINES_CAP).map(text).collect();
    if lines.len() > LINES_CAP {
        shown.push(format!("({} more lines)", lines.len() - LINES_CAP));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_are_named_by_their_place_in_peoples_version() {
        let found = different_lines(b"a\nb\nc\nd\n", b"new\na\nB\nc\nd\n");
        let pair = |line, resolver: &[&str], people: &[&str]| DifferentLines {
            line,
            resolver: resolver.iter().map(ToString::to_string).collect(),
            people: people.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(found, [pair(1, &[], &["new"]), pair(3, &["b"], &["B"])]);
    }

    #[test]
    fn the_first_answer_that_is_sure_enough_is_applied() {
        let answer = |confidence| ReplayedAnswer {
            confidence,
            basis: format!("at {confidence}"),
            otherwise: None,
        };
        let path = TreePath::new("a");
        let file = ReplayedFile { path, answers: vec![answer(0.5), answer(0.97), answer(0.95)] };
        let at = |share| {
            let trust = TrustThreshold::new(share).unwrap();
            file.answer(trust).map(|answer| answer.basis.clone())
        };
        assert_eq!(at(0.9).as_deref(), Some("at 0.97"));
        assert_eq!(at(0.4).as_deref(), Some("at 0.5"));
        assert_eq!(at(0.98), None);
    }
}
