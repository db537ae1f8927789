//! Files in which a fork differs from its merge base with upstream, and whether upstream changed them too.
//!
//! Only changes of the fork count: a file that upstream alone changed or deleted is not listed.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{ChangedEntry, EntryStatus, GitError, Rename, SealedRepo};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use crate::path::TreePath;

/// A file that the fork changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnFile {
    /// Path in the fork, or the old path of a deleted file.
    pub path: TreePath,
    /// Old path, if the fork renamed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<TreePath>,
    pub fork: OwnChange,
    /// Change of upstream to the same file.
    pub upstream: TheirChange,
    /// Object in the fork; `None` if the fork deleted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Sha>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OwnChange {
    Added,
    /// Other content or mode.
    Changed,
    Deleted,
    /// Renamed, perhaps with other content.
    Renamed,
}

/// Change of upstream to a file that the fork changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TheirChange {
    Untouched,
    /// The same change as in the fork.
    Same,
    /// A new file of the same name.
    Added,
    /// Other content or mode.
    Changed,
    /// Deleted or renamed.
    Deleted,
}

impl OwnChange {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
        }
    }
}

impl TheirChange {
    /// Words for a list; `None` without a change.
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Untouched => None,
            Self::Same => Some("the same upstream"),
            Self::Added => Some("added upstream too"),
            Self::Changed => Some("changed upstream too"),
            Self::Deleted => Some("deleted upstream"),
        }
    }

    /// Returns whether the two changes may conflict.
    pub fn may_conflict(self) -> bool {
        matches!(self, Self::Added | Self::Changed | Self::Deleted)
    }
}

/// Files that `base` changed since its merge base with `upstream`; `None` without a common ancestor.
pub async fn observe_own_files(
    repo: &SealedRepo,
    base: &Sha,
    upstream: &Sha,
) -> Result<Option<Vec<OwnFile>>, GitError> {
    let Some(parted) = repo.merge_base(base, upstream).await? else { return Ok(None) };
    let ours = repo.changed_entries(&parted, base).await?;
    let renames = repo.renames(&parted, base).await?;
    let theirs = repo.changed_entries(&parted, upstream).await?;
    Ok(Some(own_files(&ours, &renames, &theirs)))
}

/// Joins the changes of both sides. A rename is one file, under its new name.
pub(crate) fn own_files(
    ours: &[ChangedEntry],
    renames: &[Rename],
    theirs: &[ChangedEntry],
) -> Vec<OwnFile> {
    let theirs: BTreeMap<&[u8], &ChangedEntry> =
        theirs.iter().map(|entry| (entry.path.as_slice(), entry)).collect();
    let left: BTreeSet<&[u8]> = renames.iter().map(|rename| rename.from.as_slice()).collect();
    let came: BTreeMap<&[u8], &[u8]> =
        renames.iter().map(|rename| (rename.to.as_slice(), rename.from.as_slice())).collect();
    let mut files: Vec<OwnFile> = Vec::new();
    for entry in ours {
        let path = entry.path.as_slice();
        if entry.status == EntryStatus::Deleted && left.contains(path) {
            continue;
        }
        let was = came.get(path).copied();
        let at_new = theirs.get(path).map(|other| compare(entry, other));
        let at_old = was.and_then(|was| theirs.get(was)).map(|other| at_old_name(other));
        files.push(OwnFile {
            path: TreePath::new(path),
            was: was.map(TreePath::new),
            fork: match entry.status {
                _ if was.is_some() => OwnChange::Renamed,
                EntryStatus::Added => OwnChange::Added,
                EntryStatus::Deleted => OwnChange::Deleted,
                EntryStatus::Modified | EntryStatus::TypeChanged => OwnChange::Changed,
            },
            upstream: at_new.or(at_old).unwrap_or(TheirChange::Untouched),
            object: entry.new.clone(),
        });
    }
    files
}

fn compare(ours: &ChangedEntry, theirs: &ChangedEntry) -> TheirChange {
    if (&ours.new, ours.new_mode) == (&theirs.new, theirs.new_mode) {
        return TheirChange::Same;
    }
    at_old_name(theirs)
}

fn at_old_name(theirs: &ChangedEntry) -> TheirChange {
    match theirs.status {
        EntryStatus::Added => TheirChange::Added,
        EntryStatus::Deleted => TheirChange::Deleted,
        EntryStatus::Modified | EntryStatus::TypeChanged => TheirChange::Changed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sha(fill: char) -> Sha {
        Sha::parse(&fill.to_string().repeat(40)).expect("an id")
    }

    fn entry(status: EntryStatus, path: &str, new: Option<char>) -> ChangedEntry {
        let new_mode = if new.is_some() { 0o100_644 } else { 0 };
        let old = (status != EntryStatus::Added).then(|| sha('0'));
        let path = path.as_bytes().to_vec();
        ChangedEntry { old_mode: 0o100_644, new_mode, old, new: new.map(sha), status, path }
    }

    fn check(
        ours: (EntryStatus, Option<char>),
        theirs: Option<(EntryStatus, Option<char>)>,
        expected: (OwnChange, TheirChange),
    ) {
        let ours = [entry(ours.0, "f", ours.1)];
        let theirs: Vec<_> = theirs.into_iter().map(|it| entry(it.0, "f", it.1)).collect();
        let files = own_files(&ours, &[], &theirs);
        assert_eq!((files[0].fork, files[0].upstream), expected);
    }

    #[test]
    fn every_pair_of_changes_has_a_name() {
        use EntryStatus as S;
        let untouched = TheirChange::Untouched;
        check((S::Added, Some('a')), None, (OwnChange::Added, untouched));
        check((S::Modified, Some('a')), None, (OwnChange::Changed, untouched));
        check((S::TypeChanged, Some('a')), None, (OwnChange::Changed, untouched));
        check((S::Deleted, None), None, (OwnChange::Deleted, untouched));
        let changed = (S::Modified, Some('b'));
        check((S::Modified, Some('a')), Some(changed), (OwnChange::Changed, TheirChange::Changed));
        check((S::Modified, Some('b')), Some(changed), (OwnChange::Changed, TheirChange::Same));
        check((S::Deleted, None), Some(changed), (OwnChange::Deleted, TheirChange::Changed));
        let deleted = (S::Deleted, None);
        check((S::Modified, Some('a')), Some(deleted), (OwnChange::Changed, TheirChange::Deleted));
        check((S::Deleted, None), Some(deleted), (OwnChange::Deleted, TheirChange::Same));
        let added = (S::Added, Some('c'));
        check((S::Added, Some('a')), Some(added), (OwnChange::Added, TheirChange::Added));
    }

    #[test]
    fn what_only_upstream_did_is_not_the_forks() {
        let theirs = [entry(EntryStatus::Deleted, "gone", None)];
        assert_eq!(own_files(&[], &[], &theirs), []);
    }

    #[test]
    fn a_rename_is_one_file_and_its_old_name_counts_for_upstream() {
        let ours =
            [entry(EntryStatus::Deleted, "old", None), entry(EntryStatus::Added, "new", Some('a'))];
        let rename =
            Rename { from: b"old".to_vec(), to: b"new".to_vec(), mode: 0o100_644, id: sha('a') };
        let theirs = [entry(EntryStatus::Modified, "old", Some('b'))];
        let files = own_files(&ours, &[rename], &theirs);
        assert_eq!(files.len(), 1);
        assert_eq!((files[0].fork, files[0].upstream), (OwnChange::Renamed, TheirChange::Changed));
        assert_eq!(files[0].was.as_ref().map(ToString::to_string).as_deref(), Some("old"));
    }
}
