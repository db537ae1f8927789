//! Earlier resolutions at the same path, or else in the same folder, for the briefs of open conflicts.

use std::collections::BTreeMap;

use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::habit::Resolution;
use crate::path::TreePath;

/// Resolution of a file in an earlier merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierResolution {
    pub merge: Sha,
    pub path: TreePath,
    /// Resolution of the whole file.
    pub choice: Resolution,
    /// Resolutions of its hunks, counted; empty where they could not be determined.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hunks: BTreeMap<Resolution, usize>,
}

/// Latest resolutions by path and by folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nearby {
    paths: BTreeMap<String, Vec<EarlierResolution>>,
    folders: BTreeMap<String, Vec<EarlierResolution>>,
}

/// Resolutions kept for each key. A merge may have a hundred thousand conflicts, so a lookup must not search.
const KEPT: usize = 3;

impl Nearby {
    /// Adds a resolution. Merges must be added oldest first.
    pub fn learn(&mut self, earlier: &EarlierResolution) {
        let path = earlier.path.to_string();
        let folder = folder_of(&path).to_owned();
        let kept = [self.paths.entry(path).or_default(), self.folders.entry(folder).or_default()];
        for kept in kept {
            kept.insert(0, earlier.clone());
            kept.truncate(KEPT);
        }
    }

    /// Resolutions at a path, newest first; without any, those in its folder.
    pub fn near(&self, path: &str) -> &[EarlierResolution] {
        let here = self.paths.get(path).or_else(|| self.folders.get(folder_of(path)));
        here.map_or(&[], Vec::as_slice)
    }
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(turn: usize) -> Sha {
        Sha::parse(&format!("{turn:040x}")).unwrap()
    }

    fn near(path: &str) -> Vec<Sha> {
        let mut nearby = Nearby::default();
        let merged = ["src/a.rs", "src/a.rs", "src/a.rs", "src/a.rs", "src/b.rs", "src/deep/c.rs"];
        for (turn, path) in merged.into_iter().chain(["top"]).enumerate() {
            nearby.learn(&EarlierResolution {
                merge: merge(turn),
                path: TreePath::new(path.as_bytes()),
                choice: Resolution::Ours,
                hunks: BTreeMap::new(),
            });
        }
        nearby.near(path).iter().map(|earlier| earlier.merge.clone()).collect()
    }

    #[test]
    fn the_newest_at_the_path_itself_come_first_and_alone() {
        assert_eq!(near("src/a.rs"), [3, 2, 1].map(merge));
    }

    #[test]
    fn a_path_without_a_past_is_told_about_its_folder_and_not_about_what_is_below() {
        assert_eq!(near("src/new.rs"), [4, 3, 2].map(merge));
        assert_eq!(near("new"), [merge(6)]);
        assert!(near("elsewhere/new").is_empty());
    }
}
