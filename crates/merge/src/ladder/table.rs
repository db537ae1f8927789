//! The shipped table: what the history of public forks says before a fork has a record of its own.
//!
//! It was made from 2,538 conflicting merges of 34 public forks, of which none has more voice than so many cases.
//! `make bench-merge` says how well it serves, and can make it anew.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::grade::Grade;
use super::habit::{Choice, Shares};
use super::record::{log_odds, logistic};

/// What other forks teach.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What people chose for whole files, by kind of conflict.
    pub files: BTreeMap<String, Shares>,
    /// What people chose for hunks, by which sides have lines.
    pub hunks: BTreeMap<String, Shares>,
    /// How often answers of a grade were right.
    pub grades: BTreeMap<String, f64>,
    /// How promising the merge of a hunk's tokens is: weights for [`TOKEN_SIGNS`] signs.
    pub token: Vec<f64>,
    /// How the confidence of a file follows from that of its hunks: weights for [`HUNK_SIGNS`] signs.
    pub by_hunks: Vec<f64>,
    /// The same for a file that is settled as a whole: weights for [`WHOLE_SIGNS`] signs.
    pub whole: Vec<f64>,
}

/// How many signs a token merge is judged by.
pub const TOKEN_SIGNS: usize = 13;
/// How many signs a file is judged by that is settled hunk by hunk.
pub const HUNK_SIGNS: usize = 8;
/// How many signs a file is judged by that is settled as a whole.
pub const WHOLE_SIGNS: usize = 4;

/// A choice that was never seen for something.
const UNSEEN_FILE: f64 = 0.3;
const UNSEEN_HUNK: f64 = 0.2;
/// A grade that was never seen.
const UNSEEN_GRADE: f64 = 0.5;

/// From the fitted score to the scale of `--trust`. These three were not fitted but set while looking at the replayed
/// forks, so that what is answered at 0.9 agrees with people in about 95 of 100 files, and of merges that are settled
/// whole, *taken together*. A single answer just above the limit agrees less often than the limit says: the scale is no
/// probability.
const STRETCH: f64 = 1.18;
const SHIFT: f64 = 0.4;
/// Where many files are in conflict somebody has to look anyway, and acting saves little: it takes more to act there.
const CROWD: f64 = 0.16;

static SHIPPED: LazyLock<Table> =
    LazyLock::new(|| serde_json::from_str(include_str!("table.json")).unwrap_or_default());

impl Table {
    /// The one that is shipped.
    #[must_use]
    pub fn shipped() -> &'static Self {
        &SHIPPED
    }

    /// A name that changes with its content.
    #[must_use]
    pub fn name(&self) -> String {
        let text = serde_json::to_vec(self).unwrap_or_default();
        model::digest::short_sha256(&text, 6)
    }

    /// How often answers of a grade were right elsewhere.
    #[must_use]
    pub fn prior(&self, grade: &Grade) -> f64 {
        self.grades.get(&grade.name).copied().unwrap_or(UNSEEN_GRADE)
    }

    /// How often people elsewhere chose this for a whole file.
    #[must_use]
    pub fn file_share(&self, kind: &str, choice: Choice) -> f64 {
        share(self.files.get(kind), choice, UNSEEN_FILE)
    }

    /// How often people elsewhere chose this for a hunk.
    #[must_use]
    pub fn hunk_share(&self, sides: &str, choice: Choice) -> f64 {
        share(self.hunks.get(sides), choice, UNSEEN_HUNK)
    }

    /// How promising a token merge is.
    #[must_use]
    pub fn token_promise(&self, signs: &[f64; TOKEN_SIGNS]) -> f64 {
        logistic(weighed(&self.token, signs))
    }

    /// The confidence in a file that is settled hunk by hunk.
    #[must_use]
    pub fn confidence_by_hunks(&self, signs: &[f64; HUNK_SIGNS]) -> f64 {
        stretched(weighed(&self.by_hunks, signs), signs[HUNK_SIGNS - 1])
    }

    /// The confidence in a file that is settled as a whole.
    #[must_use]
    pub fn confidence_of_whole(&self, signs: &[f64; WHOLE_SIGNS]) -> f64 {
        stretched(weighed(&self.whole, signs), signs[WHOLE_SIGNS - 2])
    }
}

fn share(shares: Option<&Shares>, choice: Choice, unseen: f64) -> f64 {
    shares.and_then(|shares| shares.get(&choice)).copied().unwrap_or(unseen)
}

fn weighed(weights: &[f64], signs: &[f64]) -> f64 {
    weights.iter().zip(signs).map(|(weight, sign)| weight * sign).sum()
}

fn stretched(score: f64, conflicts_ln: f64) -> f64 {
    logistic(STRETCH * score + SHIFT - CROWD * conflicts_ln)
}

/// A share as the tables' weights want it.
#[must_use]
pub fn sign_of_share(share: f64) -> f64 {
    log_odds(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::grade::Rung;

    #[test]
    fn the_shipped_table_has_a_weight_for_every_sign() {
        let table = Table::shipped();
        assert_eq!(table.token.len(), TOKEN_SIGNS);
        assert_eq!(table.by_hunks.len(), HUNK_SIGNS);
        assert_eq!(table.whole.len(), WHOLE_SIGNS);
        assert!(table.grades.len() > 50 && !table.files.is_empty() && !table.hunks.is_empty());
        assert!(table.grades.values().all(|share| (0.0..1.0).contains(share)));
    }

    #[test]
    fn what_was_never_seen_is_not_trusted() {
        let grade = Grade::new(Rung::Token, "words", "brand new");
        assert!((Table::shipped().prior(&grade) - UNSEEN_GRADE).abs() < f64::EPSILON);
    }

    #[test]
    fn more_conflicts_ask_for_more() {
        let table = Table { whole: vec![0.0, 1.0, 0.0, 0.0], ..Table::default() };
        let few = table.confidence_of_whole(&[1.0, 2.0, 0.0, 0.0]);
        let many = table.confidence_of_whole(&[1.0, 2.0, 4.0, 0.0]);
        assert!(few > many, "{few} {many}");
    }
}
