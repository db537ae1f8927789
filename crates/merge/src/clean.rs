//! Merges without conflicts, made in memory on the host, without a work tree.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{
    CommitDraft, GitError, GitIdentity, MergeNote, MergedTree, OldValue, RefName, SealedRepo,
};
use jiff::Timestamp;
use model::id::Sha;
use serde::{Deserialize, Serialize};

use crate::path::TreePath;

/// Options of the merge commit.
#[derive(Clone, Copy, Debug)]
pub struct MergeOptions<'a> {
    pub message: &'a str,
    /// Author and committer.
    pub identity: &'a GitIdentity,
    pub when: Timestamp,
    /// Ref that will point at the commit. It may point there already, but at no other commit.
    pub name: &'a RefName,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeAttempt {
    /// Git merged everything.
    Clean {
        /// The merge commit; its parents are the fork's commit and upstream's.
        commit: Sha,
        tree: Sha,
    },
    /// Git could not merge these paths.
    Conflicts(Vec<Conflict>),
    /// The two have no common ancestor.
    Unrelated,
}

/// A path that git could not merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    pub path: TreePath,
    pub kind: ConflictKind,
    /// Other paths of the same conflict, such as the new names of a file that both sides renamed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<TreePath>,
}

/// Kind of conflict. When several hold, the most specific one, which comes first here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictKind {
    /// A submodule at different commits.
    Submodule,
    /// Both changed a binary file.
    Binary,
    /// Both renamed it, differently.
    RenameRename,
    /// One renamed it, the other deleted it.
    RenameDelete,
    /// A rename onto a path that the other side has too.
    RenameCollision,
    /// It is in a folder that the other side renamed.
    DirectoryRename,
    /// A file on one side, a folder on the other.
    FileDirectory,
    /// Different types, such as a file and a symbolic link.
    Modes,
    /// The fork changed it, upstream deleted it.
    ModifyDelete,
    /// The fork deleted it, upstream changed it.
    DeleteModify,
    /// Both added it, differently.
    AddAdd,
    /// Both changed the same lines.
    Content,
    /// A kind that git reports and this version does not know.
    Other,
}

impl ConflictKind {
    pub const ALL: [Self; 13] = [
        Self::Submodule,
        Self::Binary,
        Self::RenameRename,
        Self::RenameDelete,
        Self::RenameCollision,
        Self::DirectoryRename,
        Self::FileDirectory,
        Self::Modes,
        Self::ModifyDelete,
        Self::DeleteModify,
        Self::AddAdd,
        Self::Content,
        Self::Other,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submodule => "submodule",
            Self::Binary => "binary file",
            Self::RenameRename => "renamed differently",
            Self::RenameDelete => "renamed and deleted",
            Self::RenameCollision => "renamed onto another",
            Self::DirectoryRename => "folder renamed",
            Self::FileDirectory => "file and folder",
            Self::Modes => "different types",
            Self::ModifyDelete => "changed by the fork, deleted upstream",
            Self::DeleteModify => "deleted by the fork, changed upstream",
            Self::AddAdd => "added by both",
            Self::Content => "content",
            Self::Other => "other",
        }
    }
}

/// Merges `upstream` into `base` if there are no conflicts.
pub async fn try_merge(
    repo: &SealedRepo,
    base: &Sha,
    upstream: &Sha,
    options: MergeOptions<'_>,
) -> Result<MergeAttempt, GitError> {
    if repo.merge_base(base, upstream).await?.is_none() {
        return Ok(MergeAttempt::Unrelated);
    }
    let merged = repo.merge_tree(base, upstream).await?;
    if !merged.is_clean {
        return Ok(MergeAttempt::Conflicts(conflicts_of(&merged)));
    }
    let parents = [base.clone(), upstream.clone()];
    let MergeOptions { message, identity, when, name } = options;
    let tree = merged.tree;
    let made = CommitDraft { tree: &tree, parents: &parents, identity, when, message };
    let commit = repo.commit_tree(made).await?;
    // After a crash the same options give the same commit, and the ref may exist already.
    if repo.resolve_commit(name.as_str()).await?.as_ref() != Some(&commit) {
        repo.update_ref(name, &commit, OldValue::Missing).await?;
    }
    Ok(MergeAttempt::Clean { commit, tree })
}

/// Conflicts of a merge, one entry for each, sorted by path.
pub fn conflicts_of(merged: &MergedTree) -> Vec<Conflict> {
    let stages = stages_by_path(merged);
    let mut found: BTreeMap<&[u8], Conflict> = BTreeMap::new();
    let mut covered: BTreeSet<&[u8]> = BTreeSet::new();
    for note in &merged.notes {
        let Some((first, others)) = note.paths.split_first() else { continue };
        let Some(kind) = kind_of(note, stages.get(first.as_slice())) else { continue };
        covered.extend(others.iter().map(Vec::as_slice));
        let also = others.iter().map(|path| TreePath::new(path.as_slice())).collect();
        let conflict = Conflict { path: TreePath::new(first.as_slice()), kind, also };
        match found.get_mut(first.as_slice()) {
            Some(known) if known.kind <= kind => {}
            Some(known) => *known = conflict,
            None => {
                found.insert(first, conflict);
            }
        }
    }
    // A path without a message is still in conflict.
    for (path, sides) in &stages {
        if !found.contains_key(path) && !covered.contains(path) {
            let kind = kind_by_sides(sides).unwrap_or(ConflictKind::Other);
            found.insert(path, Conflict { path: TreePath::new(*path), kind, also: Vec::new() });
        }
    }
    found.into_values().collect()
}

/// Versions of a path that exist, and whether any is a submodule.
#[derive(Default)]
struct Sides {
    has: [bool; 3],
    has_gitlink: bool,
}

fn stages_by_path(merged: &MergedTree) -> BTreeMap<&[u8], Sides> {
    let mut found: BTreeMap<&[u8], Sides> = BTreeMap::new();
    for stage in &merged.stages {
        let sides = found.entry(&stage.path).or_default();
        sides.has_gitlink |= stage.mode == 0o160_000;
        if let Some(has) = sides.has.get_mut(usize::from(stage.stage) - 1) {
            *has = true;
        }
    }
    found
}

/// Kind of conflict for one of git's fixed messages; `None` for a message about something else.
fn kind_of(note: &MergeNote, sides: Option<&Sides>) -> Option<ConflictKind> {
    let by_sides = || sides.and_then(kind_by_sides);
    // Two of git's messages lack the space.
    let words = note.kind.strip_prefix("CONFLICT")?.trim_start();
    Some(match words {
        "(contents)" => by_sides().unwrap_or(ConflictKind::Content),
        "(binary)" => ConflictKind::Binary,
        "(file/directory)" => ConflictKind::FileDirectory,
        "(distinct modes)" => ConflictKind::Modes,
        "(modify/delete)" => by_sides().unwrap_or(ConflictKind::ModifyDelete),
        "(rename/rename)" => ConflictKind::RenameRename,
        "(rename/delete)" => ConflictKind::RenameDelete,
        "(rename involved in collision)" => ConflictKind::RenameCollision,
        _ if words.starts_with("(submodule") => ConflictKind::Submodule,
        _ if words.contains("directory rename") || words.contains("dir rename") => {
            ConflictKind::DirectoryRename
        }
        _ => ConflictKind::Other,
    })
}

fn kind_by_sides(sides: &Sides) -> Option<ConflictKind> {
    match sides.has {
        _ if sides.has_gitlink => Some(ConflictKind::Submodule),
        [true, true, true] => Some(ConflictKind::Content),
        [false, true, true] => Some(ConflictKind::AddAdd),
        [true, true, false] => Some(ConflictKind::ModifyDelete),
        [true, false, true] => Some(ConflictKind::DeleteModify),
        [false, _, _] | [true, false, false] => None,
    }
}

#[cfg(test)]
mod tests {
    use host::git::ConflictStage;

    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn merged(stages: &[(u8, &str)], notes: &[(&[&str], &str)]) -> MergedTree {
        let id = Sha::parse(A).unwrap();
        let stage = |&(stage, path): &(u8, &str)| ConflictStage {
            mode: if path == "sub" { 0o160_000 } else { 0o100_644 },
            id: id.clone(),
            stage,
            path: path.into(),
        };
        let note = |&(paths, kind): &(&[&str], &str)| MergeNote {
            paths: paths.iter().map(|&path| path.into()).collect(),
            kind: kind.to_owned(),
            text: String::new(),
        };
        MergedTree {
            tree: id.clone(),
            is_clean: false,
            stages: stages.iter().map(stage).collect(),
            notes: notes.iter().map(note).collect(),
        }
    }

    #[track_caller]
    fn check(stages: &[(u8, &str)], notes: &[(&[&str], &str)], expected: &[(&str, ConflictKind)]) {
        let found = conflicts_of(&merged(stages, notes));
        let found: Vec<_> = found.iter().map(|one| (one.path.to_string(), one.kind)).collect();
        let expected: Vec<_> =
            expected.iter().map(|&(path, kind)| (path.to_owned(), kind)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_stages_tell_what_the_words_do_not() {
        let contents: &[(&[&str], &str)] = &[(&["f"], "CONFLICT (contents)")];
        check(&[(1, "f"), (2, "f"), (3, "f")], contents, &[("f", ConflictKind::Content)]);
        check(&[(2, "f"), (3, "f")], contents, &[("f", ConflictKind::AddAdd)]);
        let deleted: &[(&[&str], &str)] = &[(&["f"], "CONFLICT (modify/delete)")];
        check(&[(1, "f"), (2, "f")], deleted, &[("f", ConflictKind::ModifyDelete)]);
        check(&[(1, "f"), (3, "f")], deleted, &[("f", ConflictKind::DeleteModify)]);
    }

    #[test]
    fn the_reason_that_says_most_is_given() {
        let notes: &[(&[&str], &str)] = &[
            (&["bin"], "CONFLICT (contents)"),
            (&["bin"], "CONFLICT (binary)"),
            (&["bin"], "Auto-merging"),
            (&["sub"], "CONFLICT (submodule not initialized)"),
            (&["sub"], "CONFLICT (contents)"),
        ];
        let expected = [("bin", ConflictKind::Binary), ("sub", ConflictKind::Submodule)];
        check(&[(1, "bin"), (2, "bin"), (3, "bin"), (2, "sub"), (3, "sub")], notes, &expected);
    }

    #[test]
    fn a_conflict_of_several_paths_is_one_conflict() {
        let stages = [(1, "old"), (2, "here"), (3, "there")];
        let notes: &[(&[&str], &str)] = &[(&["old", "here", "there"], "CONFLICT (rename/rename)")];
        check(&stages, notes, &[("old", ConflictKind::RenameRename)]);
        assert_eq!(conflicts_of(&merged(&stages, notes))[0].also.len(), 2);
    }

    #[test]
    fn no_path_is_left_out_for_want_of_known_words() {
        let notes: &[(&[&str], &str)] = &[(&["x"], "CONFLICT (brand new)")];
        let expected = [("x", ConflictKind::Other), ("y", ConflictKind::Content)];
        check(&[(1, "y"), (2, "y"), (3, "y")], notes, &expected);
        let notes: &[(&[&str], &str)] = &[(&["d"], "CONFLICT(directory rename unclear split)")];
        check(&[], notes, &[("d", ConflictKind::DirectoryRename)]);
    }
}
