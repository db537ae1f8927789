//! Collects all answers to a conflict and gives each a confidence. Pure.

use std::collections::{BTreeMap, BTreeSet};

use model::id::Sha;

use super::analysis::{HunkAnalysis, analyze_hunk};
use super::answer_class::{AnswerClass, ResolveStrategy};
use super::conflict::{FileConflict, FileVersion};
use super::decide::ResolvedContent;
use super::habit::{Resolution, scope_keys};
use super::hunk::{Hunk, Side, hunks, join};
use super::knowledge::Knowledge;
use super::memory::Likeness;
use super::record::log_odds;
use super::replay::CONFLICTS_CAP;
use super::standing::{SAME_FILE, basis_of_method, basis_of_whole, stated};
use super::table::{HUNK_FEATURES, TOKEN_FEATURES, Table, WHOLE_FEATURES};
use crate::clean::ConflictKind;
use crate::three::text::{bare, is_blank};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScoredConflict {
    pub whole: Option<WholeFileAnswer>,
    /// Answers for each hunk, in order.
    pub hunks: Vec<ScoredHunk>,
    /// Answer made of the best answer for each hunk, if every hunk has one.
    pub by_hunks: Option<HunkwiseAnswer>,
    /// People's answer to the same three versions.
    pub known: Option<KnownAnswer>,
}

/// People's resolution of the same conflict in another merge, as git rerere would repeat it.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownAnswer {
    pub content: ResolvedContent,
    pub answer_class: AnswerClass,
    pub merge: Sha,
    /// Certain, or less where the same conflict was answered differently before.
    pub confidence: f64,
}

/// One side for the whole file, or its deletion.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeFileAnswer {
    pub choice: Resolution,
    pub answer_class: AnswerClass,
    /// Measured precision of the class in this fork.
    pub precision: f64,
    pub features: [f64; WHOLE_FEATURES],
    pub basis: String,
    /// Confidence by the features alone.
    pub score: f64,
    /// Score, or less where its basis has not held.
    pub confidence: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ScoredHunk {
    /// Answers and measures that do not depend on history.
    pub analysis: HunkAnalysis,
    pub candidates: Vec<CandidateAnswer>,
    /// Index of the best answer.
    pub best: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CandidateAnswer {
    pub answer_class: AnswerClass,
    pub text: Vec<u8>,
    /// Measured precision of the class in this fork.
    pub precision: f64,
    /// Merge that it was learned from.
    pub learned_from: Option<Sha>,
}

/// Confidence in the best answers for all hunks together.
#[derive(Clone, Debug, PartialEq)]
pub struct HunkwiseAnswer {
    pub features: [f64; HUNK_FEATURES],
    pub basis: String,
    /// Confidence by the features alone.
    pub score: f64,
    /// Score, or less where its basis has not held.
    pub confidence: f64,
}

impl ScoredConflict {
    /// Bases of the answers, with their scores.
    pub fn bases(&self) -> impl Iterator<Item = (&str, f64)> {
        let whole = self.whole.as_ref().map(|answer| (answer.basis.as_str(), answer.score));
        let by_hunks = self.by_hunks.as_ref().map(|answer| (answer.basis.as_str(), answer.score));
        let known = self.known.as_ref().map(|_| (SAME_FILE, KNOWN));
        whole.into_iter().chain(by_hunks).chain(known)
    }

    /// Limits the confidence of each answer to the bound of its basis.
    pub fn limit(&mut self, bound: impl Fn(&str) -> f64) {
        if let Some(answer) = &mut self.whole {
            answer.confidence = stated(answer.score.min(bound(&answer.basis)));
        }
        if let Some(answer) = &mut self.by_hunks {
            answer.confidence = stated(answer.score.min(bound(&answer.basis)));
        }
        if let Some(answer) = &mut self.known {
            answer.confidence = stated(KNOWN.min(bound(SAME_FILE)));
        }
    }
}

/// Score of people's own answer to the same three versions.
pub const KNOWN: f64 = 0.99;

/// Scores answers with the shipped table and the fork's history.
#[derive(Clone, Copy, Debug)]
pub struct Scorer<'a> {
    pub table: &'a Table,
    pub knowledge: &'a Knowledge,
    /// Number of conflicts in the merge.
    pub conflict_count: usize,
}

impl Scorer<'_> {
    /// Number of conflicts, capped at the most that merges behind the table had. Beyond that the fitted line would be
    /// extrapolated, and upstream controls the number.
    fn counted_conflicts(&self) -> usize {
        self.conflict_count.min(CONFLICTS_CAP)
    }

    pub fn score(&self, conflict: &FileConflict) -> ScoredConflict {
        if !is_resolvable(conflict) {
            return ScoredConflict::default();
        }
        let path = conflict.path.to_string();
        let found: Vec<&Hunk> = hunks(&conflict.pieces).collect();
        let hunks: Vec<ScoredHunk> =
            found.iter().map(|hunk| self.score_hunk(hunk, &path, found.len())).collect();
        let by_hunks = self.together(&hunks);
        let known = self.known(conflict, &found);
        ScoredConflict { whole: self.whole(conflict, &path), hunks, by_hunks, known }
    }

    /// People's answer to the same three versions, if it is still at hand.
    fn known(&self, conflict: &FileConflict, hunks: &[&Hunk]) -> Option<KnownAnswer> {
        let memory = &self.knowledge.memory;
        let file = memory.file(conflict)?;
        let content = match file.choice {
            Resolution::Ours | Resolution::Theirs | Resolution::Absent => {
                ResolvedContent::Whole(file.choice)
            }
            _ if hunks.is_empty() => return None,
            _ => {
                let texts: Option<Vec<&[u8]>> =
                    hunks.iter().map(|hunk| Some(memory.text(hunk)?.text.as_slice())).collect();
                ResolvedContent::Text(join(&conflict.pieces, texts?))
            }
        };
        let answer_class = AnswerClass::new(ResolveStrategy::Memory, "same-file", "again");
        let merge = file.merge.clone();
        Some(KnownAnswer { content, answer_class, merge, confidence: KNOWN })
    }

    fn whole(&self, conflict: &FileConflict, path: &str) -> Option<WholeFileAnswer> {
        let kind = kind_of(conflict);
        let scopes = scope_keys(&kind, path);
        let likely = |choice| {
            let anywhere = self.table.file_share(&kind, choice);
            (self.knowledge.files.likelihood(&scopes, choice, anywhere), choice)
        };
        let (likelihood, choice) = first_best(choices_for(conflict).into_iter().map(likely))?;
        let is_text = conflict.kind == ConflictKind::Content;
        let detail = format!("{kind} {}", level(likelihood));
        let answer_class =
            AnswerClass::new(ResolveStrategy::Policy, "file", detail).of_family(&kind);
        let precision = self.knowledge.record.confidence(self.table, &answer_class, path);
        let features = [1.0, log_odds(precision), ln(self.counted_conflicts()), flag(is_text)];
        let score = self.table.confidence_of_whole(&features);
        let basis = basis_of_whole(conflict.kind, choice);
        Some(WholeFileAnswer {
            choice,
            answer_class,
            precision,
            features,
            basis,
            score,
            confidence: score,
        })
    }

    fn score_hunk(&self, hunk: &Hunk, path: &str, count: usize) -> ScoredHunk {
        let analysis = analyze_hunk(hunk);
        let mut answers = Vec::new();
        self.add_memory_answers(hunk, &analysis, path, &mut answers);
        let remembered = answers.len();
        self.add_plain_answers(&analysis, count, &mut answers);
        self.add_habit_answer(hunk, path, &mut answers);
        if self.knowledge.memory.was_rewritten(hunk, path) {
            for (answer_class, ..) in &mut answers[remembered..] {
                answer_class.name.push_str(" doubted");
            }
        }
        let candidate = |(answer_class, text, learned_from): Answer| {
            let precision = self.knowledge.record.confidence(self.table, &answer_class, path);
            CandidateAnswer { answer_class, text, precision, learned_from }
        };
        let candidates: Vec<CandidateAnswer> = answers.into_iter().map(candidate).collect();
        let best = first_best(candidates.iter().enumerate().map(|(at, one)| (one.precision, at)));
        ScoredHunk { analysis, best: best.map(|(_, at)| at), candidates }
    }

    fn add_memory_answers(
        &self,
        hunk: &Hunk,
        analysis: &HunkAnalysis,
        path: &str,
        answers: &mut Vec<Answer>,
    ) {
        let memory = &self.knowledge.memory;
        if let Some(known) = memory.text(hunk) {
            let answer_class =
                AnswerClass::new(ResolveStrategy::Memory, "same-hunk", known.times.min(2));
            answers.push((answer_class, known.text.clone(), Some(known.merge.clone())));
        }
        for likeness in Likeness::ALL {
            let Some(known) = memory.choice(hunk, path, likeness) else { continue };
            let Some(text) = text_for(known.choice, hunk, analysis) else { continue };
            let what = match known.choice {
                Resolution::Ours => "ours",
                Resolution::Theirs => "theirs",
                Resolution::OursTheirs | Resolution::TheirsOurs => "both",
                _ => "words",
            };
            let detail = format!("{what} {}", known.times.min(3));
            let mut answer_class =
                AnswerClass::new(ResolveStrategy::Memory, likeness.name(), detail);
            answer_class.family = format!("like {what}");
            answers.push((answer_class, text, Some(known.merge.clone())));
        }
    }

    fn add_plain_answers(&self, analysis: &HunkAnalysis, count: usize, answers: &mut Vec<Answer>) {
        if let Some(text) = &analysis.spaces {
            let answer_class = AnswerClass::new(ResolveStrategy::Same, "whitespace", "only");
            answers.push((answer_class, text.clone(), None));
        }
        if let Some(contained) = &analysis.contained {
            let of = match contained.of {
                Side::Ours => "ours",
                Side::Theirs => "theirs",
            };
            let size = if analysis.shape.lines <= 2 { "short" } else { "long" };
            let also = if analysis.apart.is_some() { "apart" } else { "mingled" };
            let answer_class =
                AnswerClass::new(ResolveStrategy::Same, "contained", format!("{of} {size} {also}"));
            answers.push((answer_class, contained.text.clone(), None));
        }
        if let Some(text) = analysis.apart.as_ref().or(analysis.touching.as_ref()) {
            let features = token_features(analysis, count, self.counted_conflicts());
            let promise = self.table.token_promise(&features);
            let answer_class =
                AnswerClass::new(ResolveStrategy::Token, "words", promise_level(promise));
            answers.push((answer_class, text.clone(), None));
        }
        if let Some(both) = &analysis.both {
            let alike = if analysis.shape.alike <= 0.25 { "unlike" } else { "alike" };
            for (order, text) in
                [("ours-first", &both.ours_first), ("theirs-first", &both.theirs_first)]
            {
                let detail = format!("{} {order} {alike}", both.unit);
                let answer_class =
                    AnswerClass::new(ResolveStrategy::Token, "both", detail).of_family(order);
                answers.push((answer_class, text.clone(), None));
            }
        }
    }

    fn add_habit_answer(&self, hunk: &Hunk, path: &str, answers: &mut Vec<Answer>) {
        let sides = sides_of(hunk);
        let scopes = scope_keys(sides, path);
        let likely = |choice| {
            let anywhere = self.table.hunk_share(sides, choice);
            (self.knowledge.hunks.likelihood(&scopes, choice, anywhere), choice)
        };
        let both_insert = sides == INSERTIONS;
        let choices: &[Resolution] = if both_insert {
            &[Resolution::Ours, Resolution::Theirs, Resolution::OursTheirs, Resolution::TheirsOurs]
        } else {
            &[Resolution::Ours, Resolution::Theirs]
        };
        let Some((likelihood, choice)) = first_best(choices.iter().copied().map(likely)) else {
            return;
        };
        let what = match choice {
            _ if sides == ALL_SIDES => "changed",
            _ if !both_insert => "deleted",
            Resolution::Ours => "ours",
            Resolution::Theirs => "theirs",
            Resolution::OursTheirs => "ours-theirs",
            _ => "theirs-ours",
        };
        let Some(text) = text_for(choice, hunk, &HunkAnalysis::default()) else { return };
        let detail = format!("{what} {}", level(likelihood));
        let answer_class = AnswerClass::new(ResolveStrategy::Policy, "hunk", detail);
        answers.push((answer_class, text, None));
    }

    /// Confidence in the best answers together. The weakest one and opposing answers count most.
    fn together(&self, hunks: &[ScoredHunk]) -> Option<HunkwiseAnswer> {
        let (mut weakest, mut product, mut method) = (1.0_f64, 1.0_f64, "");
        let (mut opposition, mut support) = (0.0_f64, usize::MAX);
        for hunk in hunks {
            let best = hunk.candidates.get(hunk.best?)?;
            let voices = voices(&hunk.candidates);
            let chosen = bare(&best.text);
            let others = voices.iter().filter(|(text, _)| **text != chosen);
            opposition = others.map(|(_, voice)| voice.precision).fold(opposition, f64::max);
            support = support.min(voices.get(&chosen).map_or(0, |voice| voice.methods.len()));
            if best.precision < weakest {
                (weakest, method) = (best.precision, best.answer_class.method);
            }
            product *= best.precision;
        }
        if hunks.is_empty() {
            return None;
        }
        let features = [
            1.0,
            log_odds(weakest),
            log_odds(product),
            flag(support >= 2),
            flag(support >= 3),
            opposition,
            ln(hunks.len()),
            ln(self.counted_conflicts()),
        ];
        let score = self.table.confidence_by_hunks(&features);
        let basis = basis_of_method(method);
        Some(HunkwiseAnswer { features, basis, score, confidence: score })
    }
}

type Answer = (AnswerClass, Vec<u8>, Option<Sha>);

/// Candidates with the same text.
#[derive(Default)]
struct Voice {
    precision: f64,
    methods: BTreeSet<&'static str>,
}

fn voices(candidates: &[CandidateAnswer]) -> BTreeMap<Vec<u8>, Voice> {
    let mut voices: BTreeMap<Vec<u8>, Voice> = BTreeMap::new();
    for candidate in candidates {
        let voice = voices.entry(bare(&candidate.text)).or_default();
        voice.precision = voice.precision.max(candidate.precision);
        if candidate.precision > 0.5 {
            voice.methods.insert(candidate.answer_class.method);
        }
    }
    voices
}

/// Returns whether the resolver handles a conflict: regular files at one path only. Links, submodules and renames to two
/// names need a person or an agent.
pub(super) fn is_resolvable(conflict: &FileConflict) -> bool {
    conflict.versions().all(FileVersion::is_file)
        && match conflict.kind {
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

/// Kind of conflict and the versions that exist.
pub fn kind_of(conflict: &FileConflict) -> String {
    let has = [(&conflict.base, 'b'), (&conflict.ours, 'o'), (&conflict.theirs, 't')];
    let sides: String =
        has.into_iter().filter(|(side, _)| side.is_some()).map(|(_, letter)| letter).collect();
    format!("{}-{sides}", conflict.kind.as_str().replace([' ', ','], "-"))
}

fn choices_for(conflict: &FileConflict) -> Vec<Resolution> {
    let can_go = !matches!(conflict.kind, ConflictKind::Content | ConflictKind::AddAdd);
    let offered = [
        (Resolution::Ours, conflict.ours.is_some()),
        (Resolution::Theirs, conflict.theirs.is_some()),
        (Resolution::Absent, can_go),
    ];
    offered.into_iter().filter(|(_, is_offered)| *is_offered).map(|(choice, _)| choice).collect()
}

/// Text that a resolution gives for a hunk.
fn text_for(choice: Resolution, hunk: &Hunk, analysis: &HunkAnalysis) -> Option<Vec<u8>> {
    let both = analysis.both.as_ref();
    match choice {
        Resolution::Ours => Some(hunk.ours.clone()),
        Resolution::Theirs => Some(hunk.theirs.clone()),
        Resolution::OursTheirs => Some([hunk.ours.as_slice(), &hunk.theirs].concat()),
        Resolution::TheirsOurs => Some([hunk.theirs.as_slice(), &hunk.ours].concat()),
        Resolution::Apart => analysis.apart.clone(),
        Resolution::Touching => analysis.touching.clone(),
        Resolution::BothOurs => both.map(|both| both.ours_first.clone()),
        Resolution::BothTheirs => both.map(|both| both.theirs_first.clone()),
        Resolution::Absent | Resolution::Base | Resolution::Other => None,
    }
}

/// Resolution that gives the text people committed.
pub fn choice_of(hunk: &Hunk, analysis: &HunkAnalysis, answer: &[u8]) -> Resolution {
    let answer = bare(answer);
    if answer == bare(&hunk.base) && !is_blank(&hunk.base) {
        return Resolution::Base;
    }
    let choices = [
        Resolution::Ours,
        Resolution::Theirs,
        Resolution::OursTheirs,
        Resolution::TheirsOurs,
        Resolution::Apart,
        Resolution::Touching,
        Resolution::BothOurs,
        Resolution::BothTheirs,
    ];
    let is_it = |choice: &Resolution| {
        text_for(*choice, hunk, analysis).is_some_and(|text| bare(&text) == answer)
    };
    choices.into_iter().find(is_it).unwrap_or(Resolution::Other)
}

const ALL_SIDES: &str = "obt";
const INSERTIONS: &str = "ot";

/// Versions that have more than whitespace.
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

pub fn token_features(
    analysis: &HunkAnalysis,
    hunks: usize,
    conflict_count: usize,
) -> [f64; TOKEN_FEATURES] {
    let shape = &analysis.shape;
    [
        1.0,
        flag(analysis.apart.is_none()),
        ln(1 + shape.lines) - 1.5,
        ln(1 + shape.changed_ours) - 1.5,
        ln(1 + shape.changed_theirs) - 1.5,
        flag(shape.alike == 0.0),
        flag(shape.alike >= 1.0),
        flag(shape.alike > 0.25 && shape.alike < 1.0),
        flag(analysis.contained.is_some()),
        flag(shape.parts_by_lines),
        flag(shape.is_level),
        ln(1 + hunks) - 0.7,
        ln(1 + conflict_count) - 1.0,
    ]
}

fn flag(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn ln(count: usize) -> f64 {
    (count.max(1) as f64).ln()
}

fn first_best<T>(found: impl Iterator<Item = (f64, T)>) -> Option<(f64, T)> {
    found.reduce(|best, next| if next.0 > best.0 { next } else { best })
}

/// Level of a likelihood, coarse enough to collect cases.
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
    use crate::path::TreePath;

    fn confidence(conflict_count: usize) -> f64 {
        let id = Sha::parse(&"a".repeat(40)).unwrap();
        let version = Some(FileVersion { mode: 0o100_644, id, bytes: None });
        let [base, ours, theirs] = [version.clone(), version.clone(), version];
        let (path, kind) = (TreePath::new(*b"a"), ConflictKind::Content);
        let conflict = FileConflict { path, kind, base, ours, theirs, pieces: Vec::new() };
        let (table, knowledge) = (Table::shipped(), &Knowledge::default());
        let scored = Scorer { table, knowledge, conflict_count }.score(&conflict);
        scored.whole.unwrap().confidence
    }

    #[test]
    fn a_merge_larger_than_any_that_was_learned_from_makes_nobody_surer() {
        let largest = confidence(CONFLICTS_CAP);
        assert!(largest < 0.5, "{largest}");
        for conflict_count in [CONFLICTS_CAP + 1, 10_000, 100_000_000] {
            assert!(
                (confidence(conflict_count) - largest).abs() < f64::EPSILON,
                "{conflict_count}"
            );
        }
    }
}
