//! Values learned from a fork's merges: habits, known hunks and the precision of each answer class.

use std::collections::BTreeMap;

use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::answer_class::AnswerClass;
use super::conflict::FileConflict;
use super::decide::{agrees, best_texts};
use super::gate::markers;
use super::habit::{Habits, Resolution, scope_keys};
use super::human::HumanResolution;
use super::hunk::{Hunk, hunks};
use super::memory::HunkMemory;
use super::nearby::{EarlierResolution, Nearby};
use super::record::{Lesson, PrecisionRecord};
use super::scorer::{KNOWN, ScoredConflict, choice_of, kind_of, sides_of};
use super::standing::{BasisCase, COUNTED, SAME_FILE, Standings};
use super::table::Table;
use crate::three::text::bare;

/// Values learned from a fork's merges.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Knowledge {
    /// People's resolutions of whole files.
    pub files: Habits,
    /// People's resolutions of hunks.
    pub hunks: Habits,
    /// Resolutions of single hunks, in case the same or a similar hunk conflicts again.
    pub memory: HunkMemory,
    /// Latest resolutions by path and folder, for the briefs.
    pub nearby: Nearby,
    /// Measured precision of each answer class.
    pub record: PrecisionRecord,
    /// Merges in which each basis of answers held.
    #[serde(default)]
    pub standings: Standings,
    /// Number of merges learned from.
    pub merges: usize,
}

/// A past conflict: people's resolution, and the resolver's answers from before it learned that.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayedConflict {
    pub conflict: FileConflict,
    pub human: HumanResolution,
    pub scored: ScoredConflict,
}

impl Knowledge {
    /// Learns from a merge after all of its conflicts were scored, so that no file helps to answer another one of the same merge.
    pub fn learn(&mut self, table: &Table, merge: &Sha, replayed: &[ReplayedConflict]) {
        let mut lessons = Vec::new();
        for one in replayed {
            self.learn_habits(one, merge);
            lessons.extend(lessons_of(one));
        }
        self.record.learn(table, &lessons);
        let cases: Vec<BasisCase<'_>> = replayed.iter().flat_map(basis_cases).collect();
        self.standings.learn(&cases);
        self.merges += 1;
    }

    fn learn_habits(&mut self, replayed: &ReplayedConflict, merge: &Sha) {
        let ReplayedConflict { conflict, human, scored } = replayed;
        let path = conflict.path.to_string();
        let resolved = hunks(&conflict.pieces).zip(&scored.hunks).zip(&human.hunks);
        let resolved: Vec<(&Hunk, &[u8], Resolution)> = resolved
            .filter_map(|((hunk, scored), answer)| {
                let answer = answer.as_deref()?;
                Some((hunk, answer, choice_of(hunk, &scored.analysis, answer)))
            })
            .collect();
        let mut counts = BTreeMap::new();
        for (.., choice) in &resolved {
            *counts.entry(*choice).or_default() += 1;
        }
        self.nearby.learn(&EarlierResolution {
            merge: merge.clone(),
            path: conflict.path.clone(),
            choice: human.choice,
            hunks: counts,
        });
        if scored.whole.is_none() {
            return;
        }
        let is_clean = human.bytes.as_ref().is_none_or(|bytes| markers(bytes) == 0);
        if is_clean {
            self.memory.learn_file(conflict, human.choice, merge);
        }
        self.files.learn(scope_keys(&kind_of(conflict), &path), human.choice);
        for (hunk, answer, choice) in resolved {
            self.hunks.learn(scope_keys(sides_of(hunk), &path), choice);
            // Conflict markers were committed by mistake.
            if markers(answer) == 0 {
                self.memory.learn(hunk, &path, answer, choice, merge);
            }
        }
    }
}

/// Answers of a past conflict that count for their bases.
pub fn basis_cases(replayed: &ReplayedConflict) -> impl Iterator<Item = BasisCase<'_>> {
    let ReplayedConflict { conflict, human, scored } = replayed;
    let whole = scored.whole.as_ref().map(|answer| {
        (answer.score, answer.basis.as_str(), human.agree_with_choice(conflict, answer.choice))
    });
    let by_hunks = scored.by_hunks.as_ref().map(|answer| {
        let texts: Vec<&[u8]> = best_texts(scored).collect();
        (answer.score, answer.basis.as_str(), human.agree_with_hunks(conflict, &texts))
    });
    let known = scored
        .known
        .as_ref()
        .map(|answer| (KNOWN, SAME_FILE, agrees(conflict, scored, human, &answer.content)));
    let counted =
        whole.into_iter().chain(by_hunks).chain(known).filter(|(score, ..)| *score >= COUNTED);
    counted.map(|(_, basis, agreed)| BasisCase { basis, path: conflict.path.to_string(), agreed })
}

/// One lesson for each answer: right or wrong.
fn lessons_of(replayed: &ReplayedConflict) -> Vec<Lesson> {
    let ReplayedConflict { conflict, human, scored } = replayed;
    let path = conflict.path.to_string();
    let lesson = |answer_class: &AnswerClass, agreed| Lesson {
        answer_class: answer_class.clone(),
        path: path.clone(),
        agreed,
    };
    let mut lessons = Vec::new();
    if let Some(whole) = &scored.whole {
        lessons.push(lesson(&whole.answer_class, human.agree_with_choice(conflict, whole.choice)));
    }
    for (hunk, answer) in scored.hunks.iter().zip(&human.hunks) {
        let answer = answer.as_deref().map(bare);
        for candidate in &hunk.candidates {
            let agreed = answer.as_ref().is_some_and(|answer| *answer == bare(&candidate.text));
            lessons.push(lesson(&candidate.answer_class, agreed));
        }
    }
    lessons
}
