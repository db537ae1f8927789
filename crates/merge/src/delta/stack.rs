//! A stack of commits on upstream's commit, one for each change of the fork: together they make the fork's tree.
//!
//! Every step has the lines of its change and of those before it, so each applies to the one before, and the last is the fork.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{CommitParts, GitError, GitIdentity, NewEntry, SealedRepo, TreeEdit, TreeEntry};
use jiff::Timestamp;
use model::id::Sha;

use super::change::LineAssignment;
use super::compose::compose;
use super::{Delta, DeltaFile};
use crate::entry::{is_file, read_small};
use crate::path::TreePath;

/// Largest file that is split by its lines, in bytes.
const FILE_BYTES: usize = 4 << 20;

/// A change as a commit on those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackedChange {
    /// Its number in the assignment.
    pub change: usize,
    pub commit: Sha,
}

/// The changes of a fork as commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Upstream's commit below the first.
    pub base: Sha,
    pub changes: Vec<StackedChange>,
    /// The tree of the last commit.
    pub tree: Sha,
    /// Submodules that the fork added, moved or removed: a commit has them, a patch does not.
    pub submodules: Vec<(TreePath, Option<TreeEntry>)>,
}

/// Author and message of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepText {
    /// As in a commit: name, address, seconds and zone.
    pub author: String,
    pub message: String,
}

/// Makes the stack. The same delta and texts always give the same commits. `watch` gets the numbers of changes that are done and
/// of all.
pub async fn make_stack(
    repo: &SealedRepo,
    (delta, assignment): (&Delta, &LineAssignment),
    (committer, when): (&GitIdentity, Timestamp),
    texts: &[StepText],
    mut watch: impl FnMut(usize, usize),
) -> Result<Stack, GitError> {
    let files: BTreeSet<usize> = (0..delta.files.len()).collect();
    let splitter = Splitter::read(repo, delta, assignment, &files).await?;
    let mut tree = repo.commit_parts(&delta.parted).await?.tree;
    let mut below = delta.parted.clone();
    let mut changes = Vec::new();
    let by_change = files_by_change(delta, assignment);
    for (number, files) in &by_change {
        watch(changes.len(), by_change.len());
        let edits: Vec<TreeEdit> =
            files.iter().flat_map(|&file| splitter.edits(file, *number)).collect();
        let next = repo.edit_tree(&tree, &edits).await?;
        if next == tree {
            continue;
        }
        let StepText { author, message } = &texts[*number];
        let parts = CommitParts {
            tree: next.clone(),
            parents: vec![below],
            author: author.clone().into_bytes(),
            encoding: None,
            message: message.clone().into_bytes(),
        };
        below = repo.write_commit(&parts, committer, when).await?;
        changes.push(StackedChange { change: *number, commit: below.clone() });
        tree = next;
    }
    let submodules = delta.files.iter().filter(|file| is_submodule(file));
    let submodules = submodules.map(|file| (file.path.clone(), file.old.clone())).collect();
    Ok(Stack { base: delta.parted.clone(), changes, tree, submodules })
}

const MODE_SUBMODULE: u32 = 0o160_000;

fn is_submodule(file: &DeltaFile) -> bool {
    [&file.old, &file.new].into_iter().flatten().any(|entry| entry.mode == MODE_SUBMODULE)
}

/// The files that each change has a part in: lines, or the file as a whole.
pub(super) fn files_by_change(
    delta: &Delta,
    assignment: &LineAssignment,
) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut by_change: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (number, file) in delta.files.iter().enumerate() {
        for origin in file.origins().into_keys().chain([file.whole]) {
            if let Some(change) = assignment.change_of(number, origin) {
                by_change.entry(change).or_default().insert(number);
            }
        }
    }
    by_change
}

/// Parts that versions between upstream's and the fork's are made of.
pub(super) struct Splitter<'a> {
    delta: &'a Delta,
    assignment: &'a LineAssignment,
    texts: BTreeMap<Sha, Vec<u8>>,
}

impl<'a> Splitter<'a> {
    pub(super) async fn read(
        repo: &SealedRepo,
        delta: &'a Delta,
        assignment: &'a LineAssignment,
        files: &BTreeSet<usize>,
    ) -> Result<Self, GitError> {
        let files = files.iter().map(|&number| &delta.files[number]);
        let files = files.filter(|file| !file.hunks().is_empty());
        let ids: BTreeSet<&Sha> = files
            .flat_map(|file| [&file.old, &file.new])
            .flatten()
            .filter(|entry| is_file(entry))
            .map(|entry| &entry.id)
            .collect();
        let texts = read_small(repo, ids, FILE_BYTES).await?;
        Ok(Self { delta, assignment, texts })
    }

    /// The entries of a file after the step of a change.
    fn edits(&self, number: usize, step: usize) -> Vec<TreeEdit> {
        self.edits_with(number, |change| change <= step)
    }

    /// The entries of a file with some of the changes.
    pub(super) fn edits_with(
        &self,
        number: usize,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Vec<TreeEdit> {
        let file = &self.delta.files[number];
        let is_in = |origin| self.assignment.change_of(number, origin).is_none_or(&is_wanted);
        let whole = is_in(file.whole);
        let has_lines = file.origins().into_keys().any(is_in);
        let path = match &file.was {
            Some(was) if !whole => was,
            Some(_) | None => &file.path,
        };
        let entry = match (&file.old, &file.new) {
            (_, None) if whole => NewEntry::Nothing,
            (None, Some(_)) if !whole && !has_lines => NewEntry::Nothing,
            (old, new) => {
                let mode = if whole {
                    new.as_ref().or(old.as_ref())
                } else {
                    old.as_ref().or(new.as_ref())
                };
                match (self.content(file, is_in), mode) {
                    (_, None) => NewEntry::Nothing,
                    (Some(bytes), Some(entry)) => NewEntry::Content { mode: entry.mode, bytes },
                    (None, Some(entry)) => {
                        NewEntry::Object { mode: entry.mode, id: entry.id.clone() }
                    }
                }
            }
        };
        let mut edits = vec![TreeEdit { path: path.as_bytes().to_vec(), entry }];
        if let Some(was) = &file.was {
            let left = if whole { was } else { &file.path };
            edits.push(TreeEdit { path: left.as_bytes().to_vec(), entry: NewEntry::Nothing });
        }
        edits
    }

    /// The text of a file with the wanted lines; `None` for a file that is not split.
    fn content(
        &self,
        file: &DeltaFile,
        is_in: impl Fn(super::LineOrigin) -> bool,
    ) -> Option<Vec<u8>> {
        let empty = Vec::new();
        let text = |entry: &Option<TreeEntry>| match entry {
            Some(entry) => self.texts.get(&entry.id).cloned(),
            None => Some(empty.clone()),
        };
        (!file.hunks().is_empty()).then_some(())?;
        let (before, after) = (text(&file.old)?, text(&file.new)?);
        Some(compose(file.hunks(), &before, &after, is_in))
    }
}
