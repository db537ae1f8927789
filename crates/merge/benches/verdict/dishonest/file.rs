//! Files of a merge that a dishonest variant can touch: those that a side changed and that the result has.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{ChangedEntry, GitError, SealedRepo};
use merge::contract::ContractEnds;
use merge::three::text::is_text;
use model::id::Sha;

use super::random::Random;

/// Most paths of each kind that are read.
const PATHS_CAP: usize = 40;
const FILE_BYTES: usize = 256 << 10;

/// A merge and some of its files.
pub(crate) struct HumanMerge {
    pub(crate) ends: ContractEnds,
    /// Tree of the result.
    pub(crate) tree: Sha,
    pub(crate) files: Vec<MergeFile>,
}

/// Text file of the result, with the other versions of the same path.
pub(crate) struct MergeFile {
    pub(crate) path: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) id: Sha,
    /// True if git could not merge the path.
    pub(crate) in_conflict: bool,
    pub(crate) base: Option<Vec<u8>>,
    pub(crate) fork: Option<Vec<u8>>,
    pub(crate) upstream: Option<Vec<u8>>,
    pub(crate) result: Vec<u8>,
}

impl MergeFile {
    /// Name as text; a name that is no text has no extension that matters.
    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }
}

/// Reads a sample of the merge's files: conflicts first, then tests, then the others of both sides.
pub(crate) async fn observe_merge(
    repo: &SealedRepo,
    ends: &ContractEnds,
    random: &mut Random,
) -> Result<HumanMerge, GitError> {
    let ContractEnds { merge_base, base, upstream, tip } = ends;
    let fork_changes = by_path(repo.changed_entries(merge_base, base).await?);
    let upstream_changes = by_path(repo.changed_entries(merge_base, upstream).await?);
    let merged = repo.merge_tree(base, upstream).await?;
    let conflicts: BTreeSet<Vec<u8>> = merged.stages.into_iter().map(|stage| stage.path).collect();
    let paths = sample(&fork_changes, &upstream_changes, &conflicts, random);
    let asked: Vec<&[u8]> = paths.iter().map(Vec::as_slice).collect();
    let now = repo.entries_at(tip, &asked).await?;
    let mut wanted = BTreeSet::new();
    let mut found = Vec::new();
    for path in &paths {
        let Some(entry) = now.get(path).filter(|entry| entry.mode & 0o170_000 == 0o100_000) else {
            continue;
        };
        let (ours, theirs) = (fork_changes.get(path), upstream_changes.get(path));
        let old = ours.or(theirs).and_then(|change| change.old.clone());
        let side = |change: Option<&ChangedEntry>| match change {
            Some(change) => change.new.clone(),
            None => old.clone(),
        };
        let ids = [old.clone(), side(ours), side(theirs), Some(entry.id.clone())];
        wanted.extend(ids.iter().flatten().cloned());
        found.push((path.clone(), entry.mode, ids));
    }
    let wanted: Vec<Sha> = wanted.into_iter().collect();
    let blobs = repo.read_blobs(&wanted, FILE_BYTES).await?;
    let fits = |size: u64| size <= FILE_BYTES as u64;
    let texts: BTreeMap<&Sha, Vec<u8>> = wanted
        .iter()
        .zip(blobs)
        .filter_map(|(id, blob)| blob.map(|blob| (id, blob)))
        .filter(|(_, blob)| fits(blob.size) && is_text(&blob.bytes))
        .map(|(id, blob)| (id, blob.bytes))
        .collect();
    let files = found.into_iter().filter_map(|(path, mode, ids)| {
        let text = |at: usize| match &ids[at] {
            None => Some(None),
            Some(id) => texts.get(id).map(|text| Some(text.clone())),
        };
        Some(MergeFile {
            in_conflict: conflicts.contains(&path),
            base: text(0)?,
            fork: text(1)?,
            upstream: text(2)?,
            result: text(3)??,
            id: ids[3].clone()?,
            path,
            mode,
        })
    });
    let files = files.collect();
    let tree = repo.trees_of(std::slice::from_ref(tip)).await?.pop().flatten();
    let tree = tree.unwrap_or_else(|| tip.clone());
    Ok(HumanMerge { ends: ends.clone(), tree, files })
}

type ByPath = BTreeMap<Vec<u8>, ChangedEntry>;

fn by_path(entries: Vec<ChangedEntry>) -> ByPath {
    entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect()
}

fn sample(
    fork: &ByPath,
    upstream: &ByPath,
    conflicts: &BTreeSet<Vec<u8>>,
    random: &mut Random,
) -> Vec<Vec<u8>> {
    let is_test = |path: &Vec<u8>| {
        let name = String::from_utf8_lossy(path).to_lowercase();
        name.contains("test") || name.contains("spec")
    };
    let tests = fork.keys().chain(upstream.keys()).filter(|path| is_test(path));
    let groups: [Vec<&Vec<u8>>; 4] = [
        conflicts.iter().collect(),
        tests.collect(),
        upstream.keys().collect(),
        fork.keys().collect(),
    ];
    let mut chosen = Vec::new();
    for mut group in groups {
        random.shuffle(&mut group);
        chosen.extend(group.into_iter().take(PATHS_CAP).cloned());
    }
    let mut seen = BTreeSet::new();
    chosen.retain(|path| seen.insert(path.clone()));
    random.shuffle(&mut chosen);
    chosen
}
