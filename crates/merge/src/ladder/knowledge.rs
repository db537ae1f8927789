//! What a fork's past teaches: habits, memory and the record of the rungs. It grows merge by merge.

use std::collections::BTreeMap;

use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::dispute::Dispute;
use super::habit::{Choice, Habits, places_of};
use super::hunk::hunks;
use super::memory::Memory;
use super::nearby::{Earlier, Nearby};
use super::people::People;
use super::record::{Lesson, Record};
use super::table::Table;
use super::weigh::{Weighed, choice_of, hunk_places, kind_of};
use crate::three::text::bare;

/// What is known about a fork.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Knowledge {
    /// What its people do with whole files.
    pub files: Habits,
    /// What they do with hunks.
    pub hunks: Habits,
    /// What they did with hunks that may come again.
    pub memory: Memory,
    /// What was done where, for people and agents to read.
    pub nearby: Nearby,
    /// How the rungs did.
    pub record: Record,
    /// How many merges it comes from.
    pub merges: usize,
}

/// A dispute that people settled, and what the ladder had to say before it knew.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// The dispute.
    pub dispute: Dispute,
    /// What people did.
    pub people: People,
    /// What would have been said.
    pub weighed: Weighed,
}

impl Knowledge {
    /// Learns from a merge, after all of it was weighed: no file of a merge may help another one.
    pub fn learn(&mut self, table: &Table, merge: &Sha, settled: &[Settled]) {
        let mut lessons = Vec::new();
        for one in settled {
            self.learn_habits(one, merge);
            lessons.extend(lessons_of(one));
        }
        self.record.learn(table, &lessons);
        self.merges += 1;
    }

    fn learn_habits(&mut self, settled: &Settled, merge: &Sha) {
        let Settled { dispute, people, weighed } = settled;
        let path = dispute.path.to_string();
        self.nearby.learn(&Earlier {
            merge: merge.clone(),
            path: dispute.path.clone(),
            choice: people.choice,
            hunks: chosen(settled),
        });
        if weighed.whole.is_none() {
            return;
        }
        self.files.learn(places_of(&kind_of(dispute), &path), people.choice);
        for ((hunk, weighed), answer) in
            hunks(&dispute.pieces).zip(&weighed.hunks).zip(&people.hunks)
        {
            let Some(answer) = answer else { continue };
            let choice = choice_of(hunk, &weighed.plain, answer);
            self.hunks.learn(hunk_places(hunk, &path), choice);
            if !has_markers(answer) {
                self.memory.learn(hunk, &path, answer, choice, merge);
            }
        }
    }
}

/// What people chose for the hunks of a file, counted.
fn chosen(settled: &Settled) -> BTreeMap<Choice, usize> {
    let Settled { dispute, people, weighed } = settled;
    let mut counts = BTreeMap::new();
    for ((hunk, weighed), answer) in hunks(&dispute.pieces).zip(&weighed.hunks).zip(&people.hunks) {
        if let Some(answer) = answer {
            *counts.entry(choice_of(hunk, &weighed.plain, answer)).or_default() += 1;
        }
    }
    counts
}

/// What is left in a file when somebody forgot to decide.
fn has_markers(text: &[u8]) -> bool {
    super::gate::markers(text) > 0
}

/// Every answer that was given is right or wrong.
fn lessons_of(settled: &Settled) -> Vec<Lesson> {
    let Settled { dispute, people, weighed } = settled;
    let path = dispute.path.to_string();
    let lesson = |grade: &super::grade::Grade, agreed| Lesson {
        grade: grade.clone(),
        path: path.clone(),
        agreed,
    };
    let mut lessons = Vec::new();
    if let Some(whole) = &weighed.whole {
        lessons.push(lesson(&whole.grade, people.agree_with_choice(dispute, whole.choice)));
    }
    for (hunk, answer) in weighed.hunks.iter().zip(&people.hunks) {
        let answer = answer.as_deref().map(bare);
        for candidate in &hunk.candidates {
            let agreed = answer.as_ref().is_some_and(|answer| *answer == bare(&candidate.text));
            lessons.push(lesson(&candidate.grade, agreed));
        }
    }
    lessons
}

impl People {
    /// Whether a choice for the whole file comes to the same.
    #[must_use]
    pub fn agree_with_choice(&self, dispute: &Dispute, choice: Choice) -> bool {
        if self.choice == choice {
            return true;
        }
        let side = match choice {
            Choice::Ours => &dispute.ours,
            Choice::Theirs => &dispute.theirs,
            _ => return false,
        };
        let bytes = side.as_ref().and_then(|side| side.bytes.as_deref());
        match (bytes, self.bytes.as_deref()) {
            (Some(side), Some(people)) => bare(side) == bare(people),
            _ => false,
        }
    }
}
