//! Conflicts of a merge with the three versions of each file.

use std::collections::BTreeMap;

use host::git::{ConflictStage, GitError, MergedTree, SealedRepo};
use model::id::Sha;

use super::hunk::{FilePiece, cut};
use crate::clean::{ConflictKind, conflicts_of};
use crate::path::TreePath;
use crate::three::text::is_text;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileConflict {
    pub path: TreePath,
    pub kind: ConflictKind,
    pub base: Option<FileVersion>,
    pub ours: Option<FileVersion>,
    pub theirs: Option<FileVersion>,
    /// Pieces of a text that both sides have; empty for anything else.
    pub pieces: Vec<FilePiece>,
}

/// Version of a path in one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// Its mode, such as `0o100644`.
    pub mode: u32,
    pub id: Sha,
    /// Content; `None` if it is not a regular file or larger than [`FILE_CAP`].
    pub bytes: Option<Vec<u8>>,
}

/// Largest file that is read.
pub const FILE_CAP: usize = 3 << 20;
/// A file with more pieces is not resolved hunk by hunk.
const PIECES_CAP: usize = 4001;
/// Most bytes in memory at a time.
const BATCH_BYTES: u64 = 96 << 20;
/// Most paths in a batch.
const BATCH_COUNT: usize = 2000;

/// Lists the conflicts of a merge without their contents.
pub fn list_conflicts(merged: &MergedTree) -> Vec<FileConflict> {
    let mut kinds: BTreeMap<Vec<u8>, ConflictKind> = BTreeMap::new();
    for conflict in conflicts_of(merged) {
        for path in [&conflict.path].into_iter().chain(&conflict.also) {
            let kind = kinds.entry(path.as_bytes().to_vec()).or_insert(conflict.kind);
            *kind = (*kind).min(conflict.kind);
        }
    }
    let mut found: BTreeMap<&[u8], FileConflict> = BTreeMap::new();
    for stage in &merged.stages {
        let kind = kinds.get(&stage.path).copied().unwrap_or(ConflictKind::Other);
        let conflict = found.entry(&stage.path).or_insert_with(|| FileConflict {
            path: TreePath::new(stage.path.as_slice()),
            kind,
            base: None,
            ours: None,
            theirs: None,
            pieces: Vec::new(),
        });
        place(conflict, stage);
    }
    found.into_values().collect()
}

fn place(conflict: &mut FileConflict, stage: &ConflictStage) {
    let version = Some(FileVersion { mode: stage.mode, id: stage.id.clone(), bytes: None });
    match stage.stage {
        1 => conflict.base = version,
        2 => conflict.ours = version,
        _ => conflict.theirs = version,
    }
}

/// Reads the contents of as many conflicts as fit in one batch. Returns their number, which is at least one.
pub async fn read_contents(
    repo: &SealedRepo,
    conflicts: &mut [FileConflict],
) -> Result<usize, GitError> {
    let most = conflicts.len().min(BATCH_COUNT);
    let conflicts = &mut conflicts[..most];
    let wanted: Vec<(usize, Sha)> = conflicts
        .iter()
        .enumerate()
        .flat_map(|(at, conflict)| {
            let files = conflict.versions().filter(|version| version.is_file());
            files.map(move |version| (at, version.id.clone()))
        })
        .collect();
    let ids: Vec<Sha> = wanted.iter().map(|(_, id)| id.clone()).collect();
    let sizes = repo.blob_sizes(&ids).await?;
    let (count, ids) = affordable(conflicts.len(), wanted, &sizes);
    let blobs = repo.read_blobs(&ids, FILE_CAP).await?;
    let read = ids.into_iter().zip(blobs).filter_map(|(id, blob)| Some((id, blob?.bytes)));
    let contents: BTreeMap<Sha, Vec<u8>> = read.collect();
    for conflict in &mut conflicts[..count] {
        conflict.fill(&contents);
    }
    Ok(count)
}

/// Number of conflicts that fit, and the objects to read for them.
fn affordable(
    conflicts: usize,
    wanted: Vec<(usize, Sha)>,
    sizes: &[Option<u64>],
) -> (usize, Vec<Sha>) {
    let (mut bytes, mut count) = (0, conflicts);
    let mut small = Vec::new();
    for ((at, id), size) in wanted.into_iter().zip(sizes) {
        let Some(size) = size.filter(|&size| size <= FILE_CAP as u64) else { continue };
        bytes += size;
        if bytes > BATCH_BYTES && at > 0 {
            count = at;
            break;
        }
        small.push((at, id));
    }
    let ids = small.into_iter().filter(|(at, _)| *at < count).map(|(_, id)| id);
    (count, ids.collect())
}

impl FileConflict {
    /// Versions that exist: the common ancestor's, the fork's and upstream's.
    pub fn versions(&self) -> impl Iterator<Item = &FileVersion> {
        [&self.base, &self.ours, &self.theirs].into_iter().flatten()
    }

    fn versions_mut(&mut self) -> impl Iterator<Item = &mut FileVersion> {
        [&mut self.base, &mut self.ours, &mut self.theirs].into_iter().flatten()
    }

    fn fill(&mut self, contents: &BTreeMap<Sha, Vec<u8>>) {
        for version in self.versions_mut().filter(|version| version.is_file()) {
            version.bytes = contents.get(&version.id).cloned();
        }
        self.cut();
    }

    /// Cuts the texts into pieces.
    pub fn cut(&mut self) {
        let pieces = self.texts().map(|[base, ours, theirs]| cut(base, ours, theirs));
        self.pieces = pieces.filter(|pieces| pieces.len() <= PIECES_CAP).unwrap_or_default();
    }

    /// Frees the contents, so that a merge with many conflicts stays within the batch limit.
    pub(super) fn forget(&mut self) {
        self.pieces = Vec::new();
        self.versions_mut().for_each(|version| version.bytes = None);
    }

    /// The three texts, if both sides have one. A missing base is empty.
    pub fn texts(&self) -> Option<[&[u8]; 3]> {
        let is_text = |version: &FileVersion| version.bytes.as_deref().is_some_and(is_text);
        self.versions().all(is_text).then_some(())?;
        let base = bytes_of(&self.base).unwrap_or_default();
        Some([base, bytes_of(&self.ours)?, bytes_of(&self.theirs)?])
    }
}

/// Content of a side, if it was read.
pub(super) fn bytes_of(side: &Option<FileVersion>) -> Option<&[u8]> {
    side.as_ref()?.bytes.as_deref()
}

impl FileVersion {
    /// Returns whether the mode is that of a regular file.
    pub fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }
}
