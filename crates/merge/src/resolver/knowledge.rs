//! Values learned from a fork's merges: habits, known hunks and the precision of each answer class.

use std::collections::BTreeMap;

use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::conflict::FileConflict;
use super::habit::{Habits, Resolution, scope_keys};
use super::human::HumanResolution;
use super::hunk::hunks;
use super::memory::HunkMemory;
use super::nearby::{EarlierResolution, Nearby};
use super::record::{Lesson, PrecisionRecord};
use super::scorer::{ScoredConflict, choice_of, hunk_scope_keys, kind_of};
use super::table::Table;
use crate::three::text::bare;

/// Values learned from a fork's merges.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Knowledge {
    /// How people resolved whole files.
    pub files: Habits,
    /// How people resolved hunks.
    pub hunks: Habits,
    /// Resolutions of single hunks, in case the same or a similar hunk conflicts again.
    pub memory: HunkMemory,
    /// Latest resolutions by path and folder, for the briefs.
    pub nearby: Nearby,
    /// Measured precision of each answer class.
    pub record: PrecisionRecord,
    /// Number of merges learned from.
    pub merges: usize,
}

/// A past conflict: how people resolved it, and the resolver's answers from before it learned that.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayedConflict {
    pub conflict: FileConflict,
    /// How people resolved it.
    pub human: HumanResolution,
    /// The resolver's answers.
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
        self.merges += 1;
    }

    fn learn_habits(&mut self, replayed: &ReplayedConflict, merge: &Sha) {
        let ReplayedConflict { conflict, human, scored } = replayed;
        let path = conflict.path.to_string();
        self.nearby.learn(&EarlierResolution {
            merge: merge.clone(),
            path: conflict.path.clone(),
            choice: human.choice,
            hunks: chosen(replayed),
        });
        if scored.whole.is_none() {
            return;
        }
        self.files.learn(scope_keys(&kind_of(conflict), &path), human.choice);
        for ((hunk, scored), answer) in hunks(&conflict.pieces).zip(&scored.hunks).zip(&human.hunks)
        {
            let Some(answer) = answer else { continue };
            let choice = choice_of(hunk, &scored.analysis, answer);
            self.hunks.learn(hunk_scope_keys(hunk, &path), choice);
            if !has_markers(answer) {
                self.memory.learn(hunk, &path, answer, choice, merge);
            }
        }
    }
}

/// Counts how people resolved the hunks of a file.
fn chosen(replayed: &ReplayedConflict) -> BTreeMap<Resolution, usize> {
    let ReplayedConflict { conflict, human, scored } = replayed;
    let mut counts = BTreeMap::new();
    for ((hunk, scored), answer) in hunks(&conflict.pieces).zip(&scored.hunks).zip(&human.hunks) {
        if let Some(answer) = answer {
            *counts.entry(choice_of(hunk, &scored.analysis, answer)).or_default() += 1;
        }
    }
    counts
}

/// Whether conflict markers were committed by mistake.
fn has_markers(text: &[u8]) -> bool {
    super::gate::markers(text) > 0
}

/// One lesson for each answer: right or wrong.
fn lessons_of(replayed: &ReplayedConflict) -> Vec<Lesson> {
    let ReplayedConflict { conflict, human, scored } = replayed;
    let path = conflict.path.to_string();
    let lesson = |answer_class: &super::answer_class::AnswerClass, agreed| Lesson {
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

impl HumanResolution {
    /// Whether this resolution of the whole file gives the same content, ignoring whitespace.
    #[must_use]
    pub fn agree_with_choice(&self, conflict: &FileConflict, choice: Resolution) -> bool {
        if self.choice == choice {
            return true;
        }
        let side = match choice {
            Resolution::Ours => &conflict.ours,
            Resolution::Theirs => &conflict.theirs,
            _ => return false,
        };
        let bytes = side.as_ref().and_then(|side| side.bytes.as_deref());
        match (bytes, self.bytes.as_deref()) {
            (Some(side), Some(human)) => bare(side) == bare(human),
            _ => false,
        }
    }
}
