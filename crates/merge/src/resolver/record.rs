//! Measured precision: the share of answers of a class that people committed in this fork.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::answer_class::AnswerClass;
use super::habit::file_kind;
use super::table::Table;

/// Tallies of a fork: by class, by class in one kind of file, by family of classes, and by method at one path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PrecisionRecord {
    tallies: BTreeMap<String, PrecisionTally>,
}

/// Counts of right answers. Old cases fade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PrecisionTally {
    pub cases: f64,
    /// Cases in which people committed the same.
    pub agreed: f64,
    /// Cases expected to agree by the values of other forks.
    pub expected: f64,
}

/// An answer of a past merge that was right or wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lesson {
    pub answer_class: AnswerClass,
    pub path: String,
    /// True if people committed the same.
    pub agreed: bool,
}

/// Weight of other forks, in cases, beside this fork's own.
const TABLE_WEIGHT: f64 = 8.0;
/// Weight of all files, in cases, beside one kind of file.
const FORK_WEIGHT: f64 = 6.0;
/// Weight of the expectation, in cases, for a family.
const FAMILY_WEIGHT: f64 = 6.0;
/// The same for a method at one path.
const PATH_WEIGHT: f64 = 2.0;
/// Factor by which old cases fade with each new merge that has cases.
const FADING: f64 = 0.985;
/// The same at one path, where cases are fewer.
const PATH_FADING: f64 = 0.8;
/// Most cases that one merge counts for: a merge with a thousand files is one decision of its author.
const MERGE_CAP: f64 = 4.0;
const PATH_CAP: f64 = 3.0;

impl PrecisionRecord {
    /// Estimated precision of an answer at a path.
    pub fn confidence(&self, table: &Table, answer_class: &AnswerClass, path: &str) -> f64 {
        // The table's value, adjusted by how this fork differs from others in the same family.
        let expected =
            self.tally(&family_key(answer_class)).moves(table.prior(answer_class), FAMILY_WEIGHT);
        let here = self.tally(&answer_class.name).mixed(expected, TABLE_WEIGHT);
        let in_kind =
            self.tally(&in_kind(&answer_class.name, file_kind(path))).mixed(here, FORK_WEIGHT);
        // People who resolved this path differently often do so again.
        self.tally(&at_path(answer_class, path)).moves(in_kind, PATH_WEIGHT)
    }

    pub fn learn(&mut self, table: &Table, lessons: &[Lesson]) {
        let mut news: BTreeMap<String, PrecisionTally> = BTreeMap::new();
        for Lesson { answer_class, path, agreed } in lessons {
            let agreed = if *agreed { 1.0 } else { 0.0 };
            let prior = table.prior(answer_class);
            let confidence = self.confidence(table, answer_class, path);
            let entries = [
                (answer_class.name.clone(), prior),
                (in_kind(&answer_class.name, file_kind(path)), prior),
                (family_key(answer_class), prior),
                (at_path(answer_class, path), confidence),
            ];
            for (key, expected) in entries {
                let tally = news.entry(key).or_default();
                tally.cases += 1.0;
                tally.agreed += agreed;
                tally.expected += expected;
            }
        }
        for (key, new) in news {
            let (cap, fading) = if key.starts_with(AT_PATH) {
                (PATH_CAP, PATH_FADING)
            } else {
                (MERGE_CAP, FADING)
            };
            let weight = (cap / new.cases).min(1.0);
            let old = self.tallies.entry(key).or_default();
            old.cases = old.cases * fading + new.cases * weight;
            old.agreed = old.agreed * fading + new.agreed * weight;
            old.expected = old.expected * fading + new.expected * weight;
        }
    }

    /// Precision of a class in all files; the name is one of [`answer_classes`](Self::answer_classes).
    pub fn precision(&self, table: &Table, answer_class: &str) -> f64 {
        let elsewhere = table.answer_classes.get(answer_class).copied().unwrap_or(0.5);
        self.tally(answer_class).mixed(elsewhere, TABLE_WEIGHT)
    }

    /// Tallies of whole classes, for `forklift trust`.
    pub fn answer_classes(&self) -> impl Iterator<Item = (&str, &PrecisionTally)> {
        let is_class = |key: &str| {
            !key.starts_with(FAMILY) && !key.starts_with(AT_PATH) && !key.contains(IN_KIND)
        };
        self.tallies
            .iter()
            .map(|(key, tally)| (key.as_str(), tally))
            .filter(move |(key, _)| is_class(key))
    }

    fn tally(&self, key: &str) -> PrecisionTally {
        self.tallies.get(key).copied().unwrap_or_default()
    }
}

const FAMILY: &str = "family ";
const AT_PATH: &str = "at ";
const IN_KIND: &str = " in *";

fn in_kind(answer_class: &str, file_kind: &str) -> String {
    format!("{answer_class}{IN_KIND}{file_kind}")
}

fn family_key(answer_class: &AnswerClass) -> String {
    format!("{FAMILY}{}", answer_class.family)
}

fn at_path(answer_class: &AnswerClass, path: &str) -> String {
    format!("{AT_PATH}{path} {}", answer_class.method)
}

impl PrecisionTally {
    /// `belief`, moved by how much more or less often than expected the answers agreed.
    fn moves(self, belief: f64, weight: f64) -> f64 {
        if self.cases == 0.0 {
            return belief;
        }
        let expected = self.expected / self.cases;
        let found = self.mixed(expected, weight);
        logistic(log_odds(belief) + log_odds(found) - log_odds(expected))
    }

    /// Share of agreement, with `belief` counted as `weight` cases.
    fn mixed(self, belief: f64, weight: f64) -> f64 {
        (self.agreed + weight * belief) / (self.cases + weight)
    }
}

/// Log-odds of a share, clamped so that a single case can still move it.
pub(super) fn log_odds(share: f64) -> f64 {
    let share = share.clamp(0.005, 0.995);
    (share / (1.0 - share)).ln()
}

pub(super) fn logistic(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolver::answer_class::ResolveStrategy;

    fn answer_class(detail: &str) -> AnswerClass {
        AnswerClass::new(ResolveStrategy::Token, "words", detail)
    }

    fn lesson(detail: &str, agreed: bool) -> Lesson {
        Lesson { answer_class: answer_class(detail), path: "src/a.rs".to_owned(), agreed }
    }

    fn table() -> Table {
        let answer_classes = [("small", 0.7), ("large", 0.5)];
        let named = answer_classes.map(|(detail, share)| (answer_class(detail).name, share));
        Table { answer_classes: named.into_iter().collect(), ..Table::default() }
    }

    #[test]
    fn trust_starts_with_the_table_and_is_earned_or_lost() {
        let table = table();
        let at = |record: &PrecisionRecord| {
            record.confidence(&table, &answer_class("small"), "src/b.rs")
        };
        let mut record = PrecisionRecord::default();
        assert!((at(&record) - 0.7).abs() < 1e-9);
        for _ in 0..20 {
            record.learn(&table, &[lesson("small", true)]);
        }
        assert!(at(&record) > 0.93, "{}", at(&record));
        for _ in 0..20 {
            record.learn(&table, &[lesson("small", false)]);
        }
        assert!(at(&record) < 0.55, "{}", at(&record));
    }

    #[test]
    fn a_family_that_does_well_lends_trust_to_its_other_grades() {
        let table = table();
        let mut record = PrecisionRecord::default();
        let before = record.confidence(&table, &answer_class("large"), "src/b.rs");
        for _ in 0..20 {
            record.learn(&table, &[lesson("small", true)]);
        }
        assert!(record.confidence(&table, &answer_class("large"), "src/b.rs") > before + 0.1);
    }

    #[test]
    fn what_did_not_hold_at_a_path_is_doubted_there() {
        let table = table();
        let mut record = PrecisionRecord::default();
        let at = |path: &str, agreed| Lesson { path: path.to_owned(), ..lesson("small", agreed) };
        for _ in 0..10 {
            record.learn(&table, &[at("a.rs", false), at("b.rs", true), at("c.rs", true)]);
        }
        let precision = |path| record.confidence(&table, &answer_class("small"), path);
        assert!(
            precision("a.rs") < precision("d.rs") - 0.2,
            "{} {}",
            precision("a.rs"),
            precision("d.rs")
        );
        assert!(precision("b.rs") > precision("d.rs"));
    }

    #[test]
    fn a_merge_with_a_thousand_files_is_one_decision() {
        let table = table();
        let mut record = PrecisionRecord::default();
        record.learn(&table, &vec![lesson("small", false); 1000]);
        let (_, tally) = record.answer_classes().next().unwrap();
        assert!((tally.cases - MERGE_CAP).abs() < 1e-9);
        assert_eq!(record.answer_classes().count(), 1);
    }
}
