//! The shipped table: values measured on public forks, used until a fork has enough merges of its own.
//!
//! It was made from 3,300 conflicting merges of 53 public forks, with a limit on the cases that one fork counts for.
//! `make bench-merge` measures it, and can make it again.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::answer_class::AnswerClass;
use super::habit::{Resolution, Shares};
use super::record::logistic;

/// Values measured on public forks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Shares of resolutions of whole files, by kind of conflict.
    pub files: BTreeMap<String, Shares>,
    /// Shares of resolutions of hunks, by the versions that have lines.
    pub hunks: BTreeMap<String, Shares>,
    /// Precision of each answer class. The key in the file is part of [`name`](Self::name) and stays as it was.
    #[serde(rename = "grades")]
    pub answer_classes: BTreeMap<String, f64>,
    /// Mean share, over forks, of merges in which the answers on a basis were right.
    #[serde(default)]
    pub bases: BTreeMap<String, f64>,
    /// Weights of the [`TOKEN_FEATURES`] features of a token merge.
    pub token: Vec<f64>,
    /// Weights of the [`HUNK_FEATURES`] features of a file that is resolved hunk by hunk.
    pub by_hunks: Vec<f64>,
    /// Weights of the [`WHOLE_FEATURES`] features of a file that is resolved as a whole.
    pub whole: Vec<f64>,
}

/// Number of features of a token merge.
pub const TOKEN_FEATURES: usize = 13;
/// Number of features of a file that is resolved hunk by hunk.
pub const HUNK_FEATURES: usize = 8;
/// Number of features of a file that is resolved as a whole.
pub const WHOLE_FEATURES: usize = 4;

/// Share of a resolution that the table does not have.
const UNSEEN_FILE: f64 = 0.3;
const UNSEEN_HUNK: f64 = 0.2;
/// Share of merges in which a basis held that the table does not have.
const UNSEEN_BASIS: f64 = 0.7;
/// Precision of a class that the table does not have.
const UNSEEN_CLASS: f64 = 0.5;

/// Calibration from the fitted score to the scale of `--trust`. The three constants were not fitted but set by hand on replayed
/// forks *taken together*: a single answer just above the limit agrees less often than the limit says, and a single fork may
/// differ. The standing of its basis in this fork limits the score.
const STRETCH: f64 = 1.18;
const SHIFT: f64 = 0.4;
/// With many files in conflict a person looks at the merge anyway, so an answer needs a higher score.
const CONFLICT_COUNT_WEIGHT: f64 = 0.16;

static SHIPPED: LazyLock<Table> =
    LazyLock::new(|| serde_json::from_str(include_str!("table.json")).unwrap_or_default());

impl Table {
    pub fn shipped() -> &'static Self {
        &SHIPPED
    }

    pub fn name(&self) -> String {
        let text = serde_json::to_vec(self).unwrap_or_default();
        model::digest::short_sha256(&text, 6)
    }

    /// Precision of a class in other forks.
    pub fn prior(&self, answer_class: &AnswerClass) -> f64 {
        self.answer_classes.get(&answer_class.name).copied().unwrap_or(UNSEEN_CLASS)
    }

    /// Share of merges in which a basis held, in the mean of other forks.
    pub fn basis(&self, basis: &str) -> f64 {
        self.bases.get(basis).copied().unwrap_or(UNSEEN_BASIS)
    }

    /// Share of a resolution of whole files in other forks.
    pub fn file_share(&self, kind: &str, choice: Resolution) -> f64 {
        share(self.files.get(kind), choice, UNSEEN_FILE)
    }

    /// Share of a resolution of hunks in other forks.
    pub fn hunk_share(&self, sides: &str, choice: Resolution) -> f64 {
        share(self.hunks.get(sides), choice, UNSEEN_HUNK)
    }

    /// Estimated precision of a token merge.
    pub fn token_promise(&self, features: &[f64; TOKEN_FEATURES]) -> f64 {
        logistic(weighted_sum(&self.token, features))
    }

    /// Confidence of a file that is resolved hunk by hunk.
    pub fn confidence_by_hunks(&self, features: &[f64; HUNK_FEATURES]) -> f64 {
        calibrated(weighted_sum(&self.by_hunks, features), features[HUNK_FEATURES - 1])
    }

    /// Confidence of a file that is resolved as a whole.
    pub fn confidence_of_whole(&self, features: &[f64; WHOLE_FEATURES]) -> f64 {
        calibrated(weighted_sum(&self.whole, features), features[WHOLE_FEATURES - 2])
    }
}

fn share(shares: Option<&Shares>, choice: Resolution, unseen: f64) -> f64 {
    shares.and_then(|shares| shares.get(&choice)).copied().unwrap_or(unseen)
}

fn weighted_sum(weights: &[f64], features: &[f64]) -> f64 {
    weights.iter().zip(features).map(|(weight, feature)| weight * feature).sum()
}

fn calibrated(score: f64, conflicts_ln: f64) -> f64 {
    logistic(STRETCH * score + SHIFT - CONFLICT_COUNT_WEIGHT * conflicts_ln)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolver::answer_class::ResolveStrategy;

    #[test]
    fn the_shipped_table_has_a_weight_for_every_sign() {
        let table = Table::shipped();
        assert_eq!(table.token.len(), TOKEN_FEATURES);
        assert_eq!(table.by_hunks.len(), HUNK_FEATURES);
        assert_eq!(table.whole.len(), WHOLE_FEATURES);
        assert!(
            table.answer_classes.len() > 50 && !table.files.is_empty() && !table.hunks.is_empty()
        );
        assert!(table.answer_classes.values().all(|share| (0.0..1.0).contains(share)));
    }

    #[test]
    fn what_was_never_seen_is_not_trusted() {
        let answer_class = AnswerClass::new(ResolveStrategy::Token, "words", "brand new");
        assert!((Table::shipped().prior(&answer_class) - UNSEEN_CLASS).abs() < f64::EPSILON);
    }

    #[test]
    fn more_conflicts_ask_for_more() {
        let table = Table { whole: vec![0.0, 1.0, 0.0, 0.0], ..Table::default() };
        let few = table.confidence_of_whole(&[1.0, 2.0, 0.0, 0.0]);
        let many = table.confidence_of_whole(&[1.0, 2.0, 4.0, 0.0]);
        assert!(few > many, "{few} {many}");
    }
}
