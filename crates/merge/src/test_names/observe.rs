//! Reads the tests of the files that a merge could have changed, with a constant number of git calls for some hundred files.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{GitError, SealedRepo, TreeEntry};
use model::id::Sha;
use test_parser::{ParsedTests, Tests, is_source, parse_tests};

use super::compare::missing_tests;
use super::{TestAccount, TestsByPath};
use crate::entry::{ChangeLists, GoneFolders, MergeChanges, is_file, new_entry, old_entry};
use crate::path::TreePath;

/// Files whose contents are in memory at once.
const CHUNK: usize = 200;

/// Bytes of a file that are read. The parser refuses files before that.
const FILE_CAP: usize = 2 << 20;

/// A path with its entry in each tree: merge base, fork, upstream, result.
struct Entries {
    path: Vec<u8>,
    trees: [Option<TreeEntry>; 4],
}

/// Accounts for the tests of both sides. Files that are merged by taking the only side that changed them are not read.
pub async fn observe(changes: &MergeChanges<'_>) -> Result<TestAccount, GitError> {
    let (lists, gone) = tokio::try_join!(changes.lists(), changes.gone_folders())?;
    let mut open = open_files(lists);
    open.retain(|entries| !entries.stays_away_with_folder(gone));
    let mut trees: [TestsByPath; 4] = Default::default();
    let mut unread = Vec::new();
    for chunk in open.chunks(CHUNK) {
        let contents = read_contents(changes.repo, chunk).await?;
        for entries in chunk {
            match parse_versions(entries, &contents) {
                Some(versions) => {
                    for (tree, tests) in trees.iter_mut().zip(versions) {
                        tree.insert(TreePath::new(entries.path.as_slice()), tests);
                    }
                }
                None => unread.push(TreePath::new(entries.path.as_slice())),
            }
        }
    }
    let [base, ours, theirs, result] = &trees;
    Ok(TestAccount { unread, ..missing_tests(base, ours, theirs, result) })
}

fn open_files(lists: &ChangeLists) -> Vec<Entries> {
    let ChangeLists { fork, upstream: theirs, result } = lists;
    let paths: BTreeSet<&Vec<u8>> = fork.keys().chain(theirs.keys()).chain(result.keys()).collect();
    let entries = paths.into_iter().filter(|path| is_source(path)).map(|path| {
        let changed = [fork.get(path), theirs.get(path), result.get(path)];
        let ancestor = changed.iter().flatten().next().and_then(|change| old_entry(change));
        let [ours, upstream, tip] = changed;
        let ours = ours.map_or_else(|| ancestor.clone(), new_entry);
        let upstream = upstream.map_or_else(|| ancestor.clone(), new_entry);
        let tip = tip.map_or_else(|| ours.clone(), new_entry);
        Entries { path: path.clone(), trees: [ancestor, ours, upstream, tip] }
    });
    entries.filter(|entries| !entries.is_trivial()).collect()
}

impl Entries {
    /// True if the result is the version of the only side that changed the file, or of both, or if the fork took the file
    /// away and it stays away. Tests that upstream adds to such a file are none that the fork wants.
    fn is_trivial(&self) -> bool {
        let [base, ours, theirs, result] = &self.trees;
        (ours == base && result == theirs)
            || (theirs == base && result == ours)
            || (ours == theirs && result == ours)
            || (base.is_some() && ours.is_none() && result.is_none())
    }

    /// True if upstream adds the file to a folder that the fork took away, and it stays away with it.
    fn stays_away_with_folder(&self, gone: &GoneFolders) -> bool {
        let [_, ours, _, result] = &self.trees;
        ours.is_none() && result.is_none() && gone.of(&self.path).is_some()
    }

    fn files(&self) -> impl Iterator<Item = &Sha> {
        let files = self.trees.iter().flatten().filter(|entry| is_file(entry));
        files.map(|entry| &entry.id)
    }
}

async fn read_contents(
    repo: &SealedRepo,
    chunk: &[Entries],
) -> Result<BTreeMap<Sha, Vec<u8>>, GitError> {
    let ids: BTreeSet<&Sha> = chunk.iter().flat_map(Entries::files).collect();
    let ids: Vec<Sha> = ids.into_iter().cloned().collect();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let blobs = repo.read_blobs(&ids, FILE_CAP).await?;
    Ok(ids.into_iter().zip(blobs).filter_map(|(id, blob)| Some((id, blob?.bytes))).collect())
}

/// The tests of all versions; `None` if those of a side cannot be read. A result that cannot be read while its sides can has
/// none: otherwise a file could be made unreadable to hide that its tests are gone.
fn parse_versions(entries: &Entries, contents: &BTreeMap<Sha, Vec<u8>>) -> Option<[Tests; 4]> {
    let parse = |entry: &Option<TreeEntry>| {
        let content = entry.as_ref().and_then(|entry| contents.get(&entry.id));
        match content.map(|bytes| parse_tests(&entries.path, bytes)) {
            Some(ParsedTests::Tests(tests)) => Some(tests),
            Some(ParsedTests::Unreadable) => None,
            Some(ParsedTests::NotSource) | None => Some(Tests::new()),
        }
    };
    let [base, ours, theirs, result] = &entries.trees;
    Some([parse(base)?, parse(ours)?, parse(theirs)?, parse(result).unwrap_or_default()])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions of a file in merge base, fork, upstream and result; `-` is no file.
    fn is_read(versions: [&str; 4]) -> bool {
        let entry = |version: &str| {
            let digit = version.chars().next().filter(|digit| *digit != '-')?;
            let id = Sha::parse(&digit.to_string().repeat(40)).unwrap();
            Some(TreeEntry { mode: 0o100_644, id })
        };
        !Entries { path: b"a.rs".to_vec(), trees: versions.map(entry) }.is_trivial()
    }

    #[test]
    fn only_files_in_which_a_merge_could_lose_a_test_are_read() {
        assert!(is_read(["a", "b", "c", "d"]));
        assert!(!is_read(["a", "b", "a", "b"]) && !is_read(["a", "a", "c", "c"]));
        assert!(is_read(["a", "b", "a", "c"]) && is_read(["a", "a", "c", "a"]));
    }

    #[test]
    fn a_file_that_the_fork_took_away_may_stay_away() {
        assert!(!is_read(["a", "-", "c", "-"]));
        assert!(
            is_read(["a", "b", "-", "-"]),
            "upstream's deletion does not take the fork's tests"
        );
        assert!(is_read(["-", "-", "c", "-"]), "upstream's new file is not the fork's to take");
    }
}
