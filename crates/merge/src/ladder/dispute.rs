//! Conflicts as data: what could not be merged, with all that the three sides have to say about it.

use std::collections::BTreeMap;

use host::git::{ConflictStage, GitError, MergedTree, SealedRepo};
use model::id::Sha;

use super::hunk::{Piece, cut};
use crate::clean::{ConflictKind, conflicts_of};
use crate::path::TreePath;
use crate::three::text::is_text;

/// A path that could not be merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispute {
    /// The path.
    pub path: TreePath,
    /// Why.
    pub kind: ConflictKind,
    /// What the common ancestor has there.
    pub base: Option<Version>,
    /// What the fork has there.
    pub ours: Option<Version>,
    /// What upstream has there.
    pub theirs: Option<Version>,
    /// The pieces of a text that both sides have; empty for everything else.
    pub pieces: Vec<Piece>,
}

/// One side's version of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its mode, such as `0o100644`.
    pub mode: u32,
    /// Its object.
    pub id: Sha,
    /// Its content, unless it is no file or larger than we read.
    pub bytes: Option<Vec<u8>>,
}

/// The largest file that is looked into.
pub const FILE_CAP: usize = 3 << 20;
/// A file with more pieces is a whole that nobody would settle hunk by hunk.
const PIECES_CAP: usize = 4001;
/// So much is held at a time.
const BATCH_BYTES: u64 = 96 << 20;
/// And so many paths.
const BATCH_COUNT: usize = 2000;

/// The conflicts of a merge, with nothing read yet.
#[must_use]
pub fn list_disputes(merged: &MergedTree) -> Vec<Dispute> {
    let mut kinds: BTreeMap<Vec<u8>, ConflictKind> = BTreeMap::new();
    for conflict in conflicts_of(merged) {
        for path in [&conflict.path].into_iter().chain(&conflict.also) {
            let kind = kinds.entry(path.as_bytes().to_vec()).or_insert(conflict.kind);
            *kind = (*kind).min(conflict.kind);
        }
    }
    let mut found: BTreeMap<&[u8], Dispute> = BTreeMap::new();
    for stage in &merged.stages {
        let kind = kinds.get(&stage.path).copied().unwrap_or(ConflictKind::Other);
        let dispute = found.entry(&stage.path).or_insert_with(|| Dispute {
            path: TreePath::new(stage.path.as_slice()),
            kind,
            base: None,
            ours: None,
            theirs: None,
            pieces: Vec::new(),
        });
        place(dispute, stage);
    }
    found.into_values().collect()
}

fn place(dispute: &mut Dispute, stage: &ConflictStage) {
    let version = Some(Version { mode: stage.mode, id: stage.id.clone(), bytes: None });
    match stage.stage {
        1 => dispute.base = version,
        2 => dispute.ours = version,
        _ => dispute.theirs = version,
    }
}

/// Reads the contents of as many disputes as can be held at once, and says how many those were: at least one.
pub async fn read_contents(repo: &SealedRepo, disputes: &mut [Dispute]) -> Result<usize, GitError> {
    let most = disputes.len().min(BATCH_COUNT);
    let disputes = &mut disputes[..most];
    let wanted: Vec<(usize, Sha)> = disputes
        .iter()
        .enumerate()
        .flat_map(|(at, dispute)| dispute.files().map(move |version| (at, version.id.clone())))
        .collect();
    let ids: Vec<Sha> = wanted.iter().map(|(_, id)| id.clone()).collect();
    let sizes = repo.blob_sizes(&ids).await?;
    let (count, ids) = affordable(disputes.len(), wanted, &sizes);
    let blobs = repo.read_blobs(&ids, FILE_CAP).await?;
    let read = ids.into_iter().zip(blobs).filter_map(|(id, blob)| Some((id, blob?.bytes)));
    let contents: BTreeMap<Sha, Vec<u8>> = read.collect();
    for dispute in &mut disputes[..count] {
        dispute.fill(&contents);
    }
    Ok(count)
}

/// How many disputes fit, and the objects to read for them.
fn affordable(
    disputes: usize,
    wanted: Vec<(usize, Sha)>,
    sizes: &[Option<u64>],
) -> (usize, Vec<Sha>) {
    let (mut bytes, mut count) = (0, disputes);
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

impl Dispute {
    /// The versions that are files.
    fn files(&self) -> impl Iterator<Item = &Version> {
        [&self.base, &self.ours, &self.theirs].into_iter().flatten().filter(|one| one.is_file())
    }

    fn fill(&mut self, contents: &BTreeMap<Sha, Vec<u8>>) {
        for version in [&mut self.base, &mut self.ours, &mut self.theirs].into_iter().flatten() {
            if version.is_file() {
                version.bytes = contents.get(&version.id).cloned();
            }
        }
        self.pieces = match self.texts() {
            Some([base, ours, theirs]) => {
                let pieces = cut(base, ours, theirs);
                if pieces.len() > PIECES_CAP { Vec::new() } else { pieces }
            }
            None => Vec::new(),
        };
    }

    /// The three texts, if both sides have one; a base that is missing is empty.
    #[must_use]
    pub fn texts(&self) -> Option<[&[u8]; 3]> {
        let mut versions = [&self.base, &self.ours, &self.theirs].into_iter().flatten();
        let is_text = |version: &Version| version.bytes.as_deref().is_some_and(is_text);
        versions.all(is_text).then_some(())?;
        let base = self.base.as_ref().and_then(|one| one.bytes.as_deref()).unwrap_or_default();
        let ours = self.ours.as_ref()?.bytes.as_deref()?;
        let theirs = self.theirs.as_ref()?.bytes.as_deref()?;
        Some([base, ours, theirs])
    }
}

impl Version {
    /// Whether it is a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }
}
