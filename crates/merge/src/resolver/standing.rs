//! Standing of each reason for an answer in one fork, counted by merges: people decide about a merge, not about each of its
//! files, so errors come in flocks.
//!
//! Every answer has a [basis](basis_of_whole): the kind of conflict and the side taken, or the method of the weakest hunk. A
//! basis has held in a merge if all of its answers were right there. An answer is never surer than its basis; one that takes
//! many files of a merge at once needs a basis that has held in several merges of this fork, the latest one among them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::conflict::FileConflict;
use super::habit::Resolution;
use super::scorer::ScoredConflict;
use super::table::Table;
use crate::clean::ConflictKind;

/// Weight of other forks, in merges.
const TABLE_WEIGHT: f64 = 4.0;
/// Most that the record of other forks can say about this one.
const TABLE_CAP: f64 = 0.9;
/// Weight of a merge in the same folder beside one anywhere.
const FOLDER_WEIGHT: f64 = 2.0;
/// Weight of a surprise in the same folder beside a merge in which it held there.
const SURPRISE_WEIGHT: f64 = 2.0;
/// Factor by which old merges fade with each new one.
const FADING: f64 = 0.95;
/// The same for surprises in a folder.
const SURPRISE_FADING: f64 = 0.855;
/// Most answers of a merge on one basis that are not a flock.
const FLOCK: usize = 2;
/// Merges in which the basis of a flock must have held.
const FLOCK_MERGES: f64 = 4.0;
/// Score from which an answer counts.
pub const COUNTED: f64 = 0.8;
/// Most confidence of a flock whose basis is not established.
const FLOCK_CAP: f64 = 0.5;

/// Factor by which doubts are raised, so that nine of ten forks keep what is stated. It was chosen on the forks of the bench,
/// each judged by a table made without it; no fork was set apart for this choice.
const DOUBT: f64 = 1.4;

/// Confidence that is stated for an expected share of right answers.
pub fn stated(share: f64) -> f64 {
    (1.0 - DOUBT * (1.0 - share)).max(0.0)
}

/// Standings of the bases in one fork: in all of it, and by folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standings {
    bases: BTreeMap<String, Standing>,
    folders: BTreeMap<String, Standing>,
}

/// Merges in which a basis held or failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Merges in which it held. Old ones fade.
    pub held: f64,
    pub failed: f64,
    /// True if it held in the latest merge.
    pub is_steady: bool,
}

/// An answer that was right or wrong, by its basis.
pub struct BasisCase<'a> {
    pub basis: &'a str,
    pub path: String,
    pub agreed: bool,
}

impl Standings {
    /// Limits the confidence of the answers of one merge to that of their bases. Conflicts of the merge that are not among
    /// these count as if they had the same basis.
    pub fn limit(
        &self,
        table: &Table,
        conflicts: &mut [(&FileConflict, &mut ScoredConflict)],
        others: usize,
    ) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (_, scored) in &*conflicts {
            for (basis, score) in scored.bases() {
                if score >= COUNTED {
                    *counts.entry(basis.to_owned()).or_default() += 1;
                }
            }
        }
        for (conflict, scored) in conflicts {
            let path = conflict.path.to_string();
            scored.limit(|basis| {
                let count = counts.get(basis).copied().unwrap_or_default() + others;
                self.bound(table, basis, &path, count)
            });
        }
    }

    /// Most confidence of an answer on this basis at a path, in a merge with so many answers on it.
    pub fn bound(&self, table: &Table, basis: &str, path: &str, count: usize) -> f64 {
        let here = self.bases.get(basis).copied().unwrap_or_default();
        let folder = self.folders.get(&folder_key(basis, path)).copied().unwrap_or_default();
        let held = here.held + FOLDER_WEIGHT * folder.held;
        let failed = here.failed + FOLDER_WEIGHT * SURPRISE_WEIGHT * folder.failed;
        let elsewhere = table.basis(basis).min(TABLE_CAP);
        let bound = (held + TABLE_WEIGHT * elsewhere) / (held + failed + TABLE_WEIGHT);
        let is_established = here.is_steady && here.held >= FLOCK_MERGES;
        if count > FLOCK && !is_established { bound.min(FLOCK_CAP) } else { bound }
    }

    /// Learns from the counted answers of one merge.
    pub fn learn(&mut self, cases: &[BasisCase<'_>]) {
        let mut bases: BTreeMap<String, Vec<bool>> = BTreeMap::new();
        let mut folders: BTreeMap<String, Vec<bool>> = BTreeMap::new();
        for BasisCase { basis, path, agreed } in cases {
            bases.entry((*basis).to_owned()).or_default().push(*agreed);
            folders.entry(folder_key(basis, path)).or_default().push(*agreed);
        }
        for (basis, agreed) in bases {
            let share = share(&agreed);
            let old = self.bases.entry(basis).or_default();
            old.held = old.held * FADING + share;
            old.failed = old.failed * FADING + 1.0 - share;
            old.is_steady = agreed.iter().all(|agreed| *agreed);
        }
        for (key, agreed) in folders {
            let is_steady = agreed.iter().all(|agreed| *agreed);
            let old = self.folders.entry(key).or_default();
            old.held = old.held * FADING + f64::from(u8::from(is_steady));
            old.failed = old.failed * SURPRISE_FADING + f64::from(u8::from(!is_steady));
            old.is_steady = is_steady;
        }
    }

    /// Standings of the bases in all of the fork.
    pub fn bases(&self) -> impl Iterator<Item = (&str, &Standing)> {
        self.bases.iter().map(|(basis, standing)| (basis.as_str(), standing))
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of files are far below 2^52")]
fn share(agreed: &[bool]) -> f64 {
    agreed.iter().filter(|agreed| **agreed).count() as f64 / agreed.len().max(1) as f64
}

fn folder_key(basis: &str, path: &str) -> String {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{basis} in {folder}/")
}

/// Basis of people's own answer to the same three versions of a file, as on a sibling branch. It is not certain: people also
/// make a merge again because they did not like the first one.
pub const SAME_FILE: &str = "same-file";

/// Basis of an answer for a whole file: the kind of conflict and the side taken.
pub fn basis_of_whole(kind: ConflictKind, choice: Resolution) -> String {
    let kind = match kind {
        ConflictKind::DeleteModify => "deleted-by-fork",
        ConflictKind::ModifyDelete => "deleted-upstream",
        ConflictKind::Binary => "binary",
        ConflictKind::Content => "whole-file",
        _ => "other",
    };
    let side = match choice {
        Resolution::Ours => "ours",
        Resolution::Theirs => "theirs",
        _ => "absent",
    };
    format!("{kind} {side}")
}

/// Basis of a file that is resolved hunk by hunk: the method of its weakest answer.
pub fn basis_of_method(method: &str) -> String {
    let name = match method {
        "but-for-numbers" | "same-patch" | "same-ours" | "same-theirs" => "similar-hunk",
        other => other,
    };
    format!("hunks {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASIS: &str = "deleted-by-fork absent";

    fn table(share: f64) -> Table {
        Table { bases: BTreeMap::from([(BASIS.to_owned(), share)]), ..Table::default() }
    }

    fn merge(standings: &mut Standings, files: usize, agreed: bool) {
        let case = |at| BasisCase { basis: BASIS, path: format!("a/{at}"), agreed };
        standings.learn(&(0..files).map(case).collect::<Vec<_>>());
    }

    #[test]
    fn a_basis_starts_below_the_usual_threshold_and_earns_its_way() {
        let (table, mut standings) = (table(0.97), Standings::default());
        let bound = |standings: &Standings| standings.bound(&table, BASIS, "b/x", 1);
        assert!(bound(&standings) <= TABLE_CAP);
        for _ in 0..6 {
            merge(&mut standings, 1, true);
        }
        assert!(bound(&standings) > 0.94, "{}", bound(&standings));
        merge(&mut standings, 1, false);
        assert!(bound(&standings) < 0.9, "{}", bound(&standings));
    }

    #[test]
    fn a_merge_of_a_hundred_files_counts_once() {
        let table = table(0.8);
        let bound = |files| {
            let mut standings = Standings::default();
            merge(&mut standings, files, true);
            standings.bound(&table, BASIS, "b/x", 1)
        };
        assert!((bound(1) - bound(100)).abs() < 1e-9);
    }

    #[test]
    fn a_flock_needs_several_merges_and_none_of_them_a_surprise() {
        let (table, mut standings) = (table(0.97), Standings::default());
        let flock = |standings: &Standings| standings.bound(&table, BASIS, "b/x", 95);
        assert!(flock(&standings) <= FLOCK_CAP);
        for _ in 0..6 {
            merge(&mut standings, 3, true);
        }
        assert!(flock(&standings) > 0.9, "{}", flock(&standings));
        merge(&mut standings, 95, false);
        assert!(flock(&standings) <= FLOCK_CAP);
    }

    #[test]
    fn a_surprise_counts_most_in_its_folder() {
        let (table, mut standings) = (table(0.97), Standings::default());
        for _ in 0..6 {
            merge(&mut standings, 1, true);
        }
        merge(&mut standings, 1, false);
        let bound = |path| standings.bound(&table, BASIS, path, 1);
        assert!(bound("a/x") < bound("b/x"));
    }
}
