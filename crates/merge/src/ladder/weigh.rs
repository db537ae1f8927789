//! All answers to a dispute, each with the confidence that it has earned. Pure.

use std::collections::{BTreeMap, BTreeSet};

use model::id::Sha;

use super::dispute::Dispute;
use super::grade::{Grade, Rung};
use super::habit::{Choice, Places, places_of};
use super::hunk::{Hunk, hunks};
use super::knowledge::Knowledge;
use super::memory::Likeness;
use super::plain::{Plain, Whose, look};
use super::replay::CONFLICTS_CAP;
use super::table::{HUNK_SIGNS, TOKEN_SIGNS, Table, WHOLE_SIGNS, sign_of_share};
use crate::clean::ConflictKind;
use crate::three::text::{bare, is_blank};

/// What the ladder has to say about a dispute.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weighed {
    /// The answer for the file as a whole.
    pub whole: Option<Whole>,
    /// The hunks, in order.
    pub hunks: Vec<WeighedHunk>,
    /// The answer hunk by hunk, if there is one for each.
    pub by_hunks: Option<ByHunks>,
}

/// One side for the whole file, or none.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    /// What to take.
    pub choice: Choice,
    /// The grade of that.
    pub grade: Grade,
    /// What the grade is worth here.
    pub worth: f64,
    /// What the confidence was made from.
    pub signs: [f64; WHOLE_SIGNS],
    /// The confidence.
    pub confidence: f64,
}

/// A hunk and its answers.
#[derive(Clone, Debug, PartialEq)]
pub struct WeighedHunk {
    /// What can be said about it without knowing the fork.
    pub plain: Plain,
    /// The answers.
    pub candidates: Vec<Candidate>,
    /// The one to be preferred, an index into the answers.
    pub best: Option<usize>,
}

/// An answer to a hunk.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its grade.
    pub grade: Grade,
    /// The text.
    pub text: Vec<u8>,
    /// What the grade is worth here.
    pub worth: f64,
    /// The merge that it was learned from.
    pub learned_from: Option<Sha>,
}

/// The best answers to all hunks, taken together.
#[derive(Clone, Debug, PartialEq)]
pub struct ByHunks {
    /// What the confidence was made from.
    pub signs: [f64; HUNK_SIGNS],
    /// The confidence.
    pub confidence: f64,
}

/// Where the past and the shipped table are found.
#[derive(Clone, Copy, Debug)]
pub struct Scales<'a> {
    /// What other forks teach.
    pub table: &'a Table,
    /// What this fork's past teaches.
    pub knowledge: &'a Knowledge,
    /// How many conflicts the merge has.
    pub conflicts: usize,
}

impl Scales<'_> {
    /// How many conflicts count. The table was made from merges that had at most so many; what it would say about larger
    /// ones is no experience but a line drawn on, and it is upstream who decides how many there are.
    fn crowd(&self) -> usize {
        self.conflicts.min(CONFLICTS_CAP)
    }
}

impl Scales<'_> {
    /// Weighs all answers to a dispute.
    #[must_use]
    pub fn weigh(&self, dispute: &Dispute) -> Weighed {
        if !is_settled_here(dispute) {
            return Weighed::default();
        }
        let path = dispute.path.to_string();
        let found: Vec<&Hunk> = hunks(&dispute.pieces).collect();
        let hunks: Vec<WeighedHunk> =
            found.iter().map(|hunk| self.weigh_hunk(hunk, &path, found.len())).collect();
        let by_hunks = self.together(&hunks);
        Weighed { whole: self.whole(dispute, &path), hunks, by_hunks }
    }

    fn whole(&self, dispute: &Dispute, path: &str) -> Option<Whole> {
        let kind = kind_of(dispute);
        let places = places_of(&kind, path);
        let likely = |choice| {
            let anywhere = self.table.file_share(&kind, choice);
            (self.knowledge.files.likelihood(&places, choice, anywhere), choice)
        };
        let (likelihood, choice) = first_best(choices_for(dispute).into_iter().map(likely))?;
        let is_text = dispute.kind == ConflictKind::Content;
        let grade = Grade::new(Rung::Policy, "file", format!("{kind} {}", level(likelihood)))
            .of_family(&kind);
        let worth = self.knowledge.record.confidence(self.table, &grade, path);
        let signs = [1.0, sign_of_share(worth), ln(self.crowd()), flag(is_text)];
        let confidence = self.table.confidence_of_whole(&signs);
        Some(Whole { choice, grade, worth, signs, confidence })
    }

    fn weigh_hunk(&self, hunk: &Hunk, path: &str, count: usize) -> WeighedHunk {
        let plain = look(hunk);
        let mut answers = Vec::new();
        self.remember(hunk, &plain, path, &mut answers);
        let remembered = answers.len();
        self.look_plainly(&plain, count, &mut answers);
        self.follow_habit(hunk, path, &mut answers);
        if self.knowledge.memory.speaks_of_more(hunk, path) {
            let unlearned = &mut answers[remembered..];
            unlearned.iter_mut().for_each(|(grade, ..)| grade.name.push_str(" doubted"));
        }
        let candidate = |(grade, text, learned_from): Answer| {
            let worth = self.knowledge.record.confidence(self.table, &grade, path);
            Candidate { grade, text, worth, learned_from }
        };
        let candidates: Vec<Candidate> = answers.into_iter().map(candidate).collect();
        let best = first_best(candidates.iter().enumerate().map(|(at, one)| (one.worth, at)));
        WeighedHunk { plain, best: best.map(|(_, at)| at), candidates }
    }

    fn remember(&self, hunk: &Hunk, plain: &Plain, path: &str, answers: &mut Vec<Answer>) {
        let memory = &self.knowledge.memory;
        if let Some(known) = memory.text(hunk) {
            let grade = Grade::new(Rung::Memory, "same-hunk", known.times.min(2));
            answers.push((grade, known.text.clone(), Some(known.merge.clone())));
        }
        for likeness in Likeness::ALL {
            let Some(known) = memory.choice(hunk, path, likeness) else { continue };
            let Some(text) = text_for(known.choice, hunk, plain) else { continue };
            let what = match known.choice {
                Choice::Ours => "ours",
                Choice::Theirs => "theirs",
                Choice::OursTheirs | Choice::TheirsOurs => "both",
                _ => "words",
            };
            let detail = format!("{what} {}", known.times.min(3));
            let mut grade = Grade::new(Rung::Memory, likeness.name(), detail);
            grade.family = format!("like {what}");
            answers.push((grade, text, Some(known.merge.clone())));
        }
    }

    fn look_plainly(&self, plain: &Plain, count: usize, answers: &mut Vec<Answer>) {
        if let Some(text) = &plain.spaces {
            answers.push((Grade::new(Rung::Same, "whitespace", "only"), text.clone(), None));
        }
        if let Some(contained) = &plain.contained {
            let of = match contained.of {
                Whose::Ours => "ours",
                Whose::Theirs => "theirs",
            };
            let size = if plain.shape.lines <= 2 { "short" } else { "long" };
            let also = if plain.apart.is_some() { "apart" } else { "mingled" };
            let grade = Grade::new(Rung::Same, "contained", format!("{of} {size} {also}"));
            answers.push((grade, contained.text.clone(), None));
        }
        if let Some(text) = plain.apart.as_ref().or(plain.touching.as_ref()) {
            let promise = self.table.token_promise(&token_signs(plain, count, self.crowd()));
            let grade = Grade::new(Rung::Token, "words", promise_level(promise));
            answers.push((grade, text.clone(), None));
        }
        if let Some(both) = &plain.both {
            let alike = if plain.shape.alike <= 0.25 { "unlike" } else { "alike" };
            for (order, text) in
                [("ours-first", &both.ours_first), ("theirs-first", &both.theirs_first)]
            {
                let detail = format!("{} {order} {alike}", both.unit);
                let grade = Grade::new(Rung::Token, "both", detail).of_family(order);
                answers.push((grade, text.clone(), None));
            }
        }
    }

    fn follow_habit(&self, hunk: &Hunk, path: &str, answers: &mut Vec<Answer>) {
        let sides = sides_of(hunk);
        let places = hunk_places(hunk, path);
        let likely = |choice| {
            let anywhere = self.table.hunk_share(sides, choice);
            (self.knowledge.hunks.likelihood(&places, choice, anywhere), choice)
        };
        let both_insert = sides == INSERTIONS;
        let choices: &[Choice] = if both_insert {
            &[Choice::Ours, Choice::Theirs, Choice::OursTheirs, Choice::TheirsOurs]
        } else {
            &[Choice::Ours, Choice::Theirs]
        };
        let Some((likelihood, choice)) = first_best(choices.iter().copied().map(likely)) else {
            return;
        };
        let what = match choice {
            _ if !both_insert => {
                if sides == ALL_SIDES {
                    "changed"
                } else {
                    "deleted"
                }
            }
            Choice::Ours => "ours",
            Choice::Theirs => "theirs",
            Choice::OursTheirs => "ours-theirs",
            _ => "theirs-ours",
        };
        let Some(text) = text_for(choice, hunk, &Plain::default()) else { return };
        let grade = Grade::new(Rung::Policy, "hunk", format!("{what} {}", level(likelihood)));
        answers.push((grade, text, None));
    }

    /// The confidence in all best answers together: the weakest counts most, and whether others say something else.
    fn together(&self, hunks: &[WeighedHunk]) -> Option<ByHunks> {
        let (mut weakest, mut product) = (1.0_f64, 1.0_f64);
        let (mut opposition, mut support) = (0.0_f64, usize::MAX);
        for hunk in hunks {
            let best = hunk.candidates.get(hunk.best?)?;
            let voices = voices(&hunk.candidates);
            let chosen = bare(&best.text);
            let others = voices.iter().filter(|(text, _)| **text != chosen);
            opposition = others.map(|(_, voice)| voice.worth).fold(opposition, f64::max);
            support = support.min(voices.get(&chosen).map_or(0, |voice| voice.ways.len()));
            weakest = weakest.min(best.worth);
            product *= best.worth;
        }
        if hunks.is_empty() {
            return None;
        }
        let signs = [
            1.0,
            sign_of_share(weakest),
            sign_of_share(product),
            flag(support >= 2),
            flag(support >= 3),
            opposition,
            ln(hunks.len()),
            ln(self.crowd()),
        ];
        Some(ByHunks { signs, confidence: self.table.confidence_by_hunks(&signs) })
    }
}

type Answer = (Grade, Vec<u8>, Option<Sha>);

/// Those who give the same answer.
#[derive(Default)]
struct Voice {
    worth: f64,
    ways: BTreeSet<&'static str>,
}

fn voices(candidates: &[Candidate]) -> BTreeMap<Vec<u8>, Voice> {
    let mut voices: BTreeMap<Vec<u8>, Voice> = BTreeMap::new();
    for candidate in candidates {
        let voice = voices.entry(bare(&candidate.text)).or_default();
        voice.worth = voice.worth.max(candidate.worth);
        if candidate.worth > 0.5 {
            voice.ways.insert(candidate.grade.way);
        }
    }
    voices
}

/// Only what lies at its own path in the merged tree, and is a file on all sides, is settled here. Links, other
/// repositories and renames that went two ways are for somebody who can look around.
pub(super) fn is_settled_here(dispute: &Dispute) -> bool {
    let versions = [&dispute.base, &dispute.ours, &dispute.theirs];
    let all_files = versions.into_iter().flatten().all(super::dispute::Version::is_file);
    all_files
        && match dispute.kind {
            ConflictKind::Content
            | ConflictKind::AddAdd
            | ConflictKind::Binary
            | ConflictKind::ModifyDelete
            | ConflictKind::DeleteModify
            | ConflictKind::RenameDelete => true,
            ConflictKind::Submodule
            | ConflictKind::RenameRename
            | ConflictKind::RenameCollision
            | ConflictKind::DirectoryRename
            | ConflictKind::FileDirectory
            | ConflictKind::Modes
            | ConflictKind::Other => false,
        }
}

/// The kind of conflict and the sides that have the file.
#[must_use]
pub fn kind_of(dispute: &Dispute) -> String {
    let has = [(&dispute.base, 'b'), (&dispute.ours, 'o'), (&dispute.theirs, 't')];
    let sides: String =
        has.into_iter().filter(|(side, _)| side.is_some()).map(|(_, letter)| letter).collect();
    format!("{}-{sides}", dispute.kind.as_str().replace([' ', ','], "-"))
}

fn choices_for(dispute: &Dispute) -> Vec<Choice> {
    let can_go = !matches!(dispute.kind, ConflictKind::Content | ConflictKind::AddAdd);
    let offered = [
        (Choice::Ours, dispute.ours.is_some()),
        (Choice::Theirs, dispute.theirs.is_some()),
        (Choice::Absent, can_go),
    ];
    offered.into_iter().filter(|(_, is_offered)| *is_offered).map(|(choice, _)| choice).collect()
}

/// The text that a choice means for a hunk.
fn text_for(choice: Choice, hunk: &Hunk, plain: &Plain) -> Option<Vec<u8>> {
    let both = plain.both.as_ref();
    match choice {
        Choice::Ours => Some(hunk.ours.clone()),
        Choice::Theirs => Some(hunk.theirs.clone()),
        Choice::OursTheirs => Some([hunk.ours.as_slice(), &hunk.theirs].concat()),
        Choice::TheirsOurs => Some([hunk.theirs.as_slice(), &hunk.ours].concat()),
        Choice::Apart => plain.apart.clone(),
        Choice::Touching => plain.touching.clone(),
        Choice::BothOurs => both.map(|both| both.ours_first.clone()),
        Choice::BothTheirs => both.map(|both| both.theirs_first.clone()),
        Choice::Absent | Choice::Base | Choice::Other => None,
    }
}

/// What people chose, given what they wrote.
#[must_use]
pub fn choice_of(hunk: &Hunk, plain: &Plain, answer: &[u8]) -> Choice {
    let answer = bare(answer);
    if answer == bare(&hunk.base) && !is_blank(&hunk.base) {
        return Choice::Base;
    }
    let choices = [
        Choice::Ours,
        Choice::Theirs,
        Choice::OursTheirs,
        Choice::TheirsOurs,
        Choice::Apart,
        Choice::Touching,
        Choice::BothOurs,
        Choice::BothTheirs,
    ];
    let is_it =
        |choice: &Choice| text_for(*choice, hunk, plain).is_some_and(|text| bare(&text) == answer);
    choices.into_iter().find(is_it).unwrap_or(Choice::Other)
}

const ALL_SIDES: &str = "obt";
const INSERTIONS: &str = "ot";

/// Which sides have anything but whitespace.
#[must_use]
pub fn sides_of(hunk: &Hunk) -> &'static str {
    let has = |side: &[u8]| !is_blank(side);
    match (has(&hunk.ours), has(&hunk.base), has(&hunk.theirs)) {
        (true, true, true) => ALL_SIDES,
        (true, false, true) => INSERTIONS,
        (false, true, true) => "bt",
        (true, true, false) => "ob",
        (true, false, false) => "o",
        (false, false, true) => "t",
        (false, true, false) => "b",
        (false, false, false) => "",
    }
}

/// Where the habit for a hunk is looked up.
#[must_use]
pub fn hunk_places(hunk: &Hunk, path: &str) -> Places {
    places_of(sides_of(hunk), path)
}

/// What a token merge is judged by.
#[must_use]
pub fn token_signs(plain: &Plain, hunks: usize, conflicts: usize) -> [f64; TOKEN_SIGNS] {
    let shape = &plain.shape;
    [
        1.0,
        flag(plain.apart.is_none()),
        ln(1 + shape.lines) - 1.5,
        ln(1 + shape.changed_ours) - 1.5,
        ln(1 + shape.changed_theirs) - 1.5,
        flag(shape.alike == 0.0),
        flag(shape.alike >= 1.0),
        flag(shape.alike > 0.25 && shape.alike < 1.0),
        flag(plain.contained.is_some()),
        flag(shape.parts_by_lines),
        flag(shape.is_level),
        ln(1 + hunks) - 0.7,
        ln(1 + conflicts) - 1.0,
    ]
}

fn flag(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn ln(count: usize) -> f64 {
    (count.max(1) as f64).ln()
}

/// The first of those that nothing beats.
fn first_best<T>(found: impl Iterator<Item = (f64, T)>) -> Option<(f64, T)> {
    found.reduce(|best, next| if next.0 > best.0 { next } else { best })
}

/// A likelihood, coarse enough to have a record.
fn level(likelihood: f64) -> &'static str {
    const LEVELS: [(f64, &str); 7] = [
        (0.5, "<50"),
        (0.7, "<70"),
        (0.8, "<80"),
        (0.87, "<87"),
        (0.92, "<92"),
        (0.95, "<95"),
        (0.97, "<97"),
    ];
    LEVELS.iter().find(|(limit, _)| likelihood < *limit).map_or("97+", |(_, name)| name)
}

fn promise_level(promise: f64) -> &'static str {
    const LEVELS: [(f64, &str); 5] =
        [(0.3, "<30"), (0.5, "<50"), (0.65, "<65"), (0.75, "<75"), (0.85, "<85")];
    LEVELS.iter().find(|(limit, _)| promise < *limit).map_or("85+", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::dispute::Version;
    use crate::path::TreePath;

    fn confidence(conflicts: usize) -> f64 {
        let id = Sha::parse(&"a".repeat(40)).unwrap();
        let version = Some(Version { mode: 0o100_644, id, bytes: None });
        let [base, ours, theirs] = [version.clone(), version.clone(), version];
        let (path, kind) = (TreePath::new(*b"a"), ConflictKind::Content);
        let dispute = Dispute { path, kind, base, ours, theirs, pieces: Vec::new() };
        let (table, knowledge) = (Table::shipped(), &Knowledge::default());
        let weighed = Scales { table, knowledge, conflicts }.weigh(&dispute);
        weighed.whole.unwrap().confidence
    }

    #[test]
    fn a_merge_larger_than_any_that_was_learned_from_makes_nobody_surer() {
        let largest = confidence(CONFLICTS_CAP);
        assert!(largest < 0.5, "{largest}");
        for conflicts in [CONFLICTS_CAP + 1, 10_000, 100_000_000] {
            assert!((confidence(conflicts) - largest).abs() < f64::EPSILON, "{conflicts}");
        }
    }
}
