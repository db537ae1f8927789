//! The result of an agent with the files that define its check as trusted people have them, so that an agent cannot rewrite
//! its own judge.
//!
//! - `files` which files define a check

mod files;

use std::collections::{BTreeMap, BTreeSet};

use host::git::{
    ChangedEntry, CommitDraft, ConflictStage, GitError, GitIdentity, MergedTree, NewEntry,
    SealedRepo, TreeEdit,
};
use jiff::Timestamp;
use model::id::Sha;

use self::files::{
    CHECK_ROOTS, NamedBy, is_check_file, is_check_script, named_paths, with_trusted_sections,
    without_test_sections,
};
use crate::path::TreePath;
use crate::pattern::PathPatterns;
use crate::resolver::hunk::Side;
use crate::three::text::{is_text, lines};
use crate::three::{Change, Touching, three_way};

/// Bytes of a file that are read.
const FILE_CAP: usize = 4 << 20;

/// Steps from the line of the check to a script: the line names a script that calls another.
const DEPTH: usize = 3;

const EXECUTABLE: u32 = 0o100_755;
const REGULAR: u32 = 0o100_644;

/// Facts by which the files of a check are replaced.
#[derive(Debug, Clone, Copy)]
pub struct TrustedFacts<'a> {
    /// The trusted tree. Where two sides of it conflict, each side's lines are tried.
    pub merged: &'a MergedTree,
    /// Line of the check.
    pub line: &'a str,
    /// Patterns of files that a person released: the agent's version of them stays.
    pub allowed: &'a PathPatterns,
    /// Author and time of the commits that are made.
    pub identity: &'a GitIdentity,
    pub when: Timestamp,
    pub message: &'a str,
}

/// Files that define a check, as trusted people have them, in place of the agent's.
#[derive(Debug, Clone, Default)]
pub struct TrustedCheck {
    pub files: Vec<TreePath>,
    /// Files that a person allowed, so that the agent's version of them stays.
    pub allowed: Vec<TreePath>,
    /// The result with these files: with our lines where both sides changed the same ones, then with theirs. None if all
    /// files that the agent changed are allowed.
    pub commits: Vec<Sha>,
}

/// Finds the files that define the check and that the agent changed against the trusted tree. `None` if there are none, or if
/// the agent resolved their conflicts by taking one side's lines.
pub async fn find_trusted_check(
    repo: &SealedRepo,
    tip: &Sha,
    facts: TrustedFacts<'_>,
) -> Result<Option<TrustedCheck>, GitError> {
    let merged = facts.merged;
    let changed = repo.changed_entries(&merged.tree, tip).await?;
    let scripts = check_scripts(repo, &merged.tree, facts.line).await?;
    let is_defining =
        |entry: &&ChangedEntry| is_check_file(&entry.path) || scripts.contains(&entry.path);
    let files: Vec<&ChangedEntry> = changed.iter().filter(is_defining).collect();
    if files.is_empty() {
        return Ok(None);
    }
    let trees = repo.trees_of(std::slice::from_ref(tip)).await?;
    let Some(tree) = trees.into_iter().flatten().next() else { return Ok(None) };
    let blobs = read_versions(repo, &files, &merged.stages).await?;
    let mut trusted = TrustedCheck::default();
    for side in [Side::Ours, Side::Theirs] {
        let edits = files.iter().filter_map(|entry| edit(entry, merged, side, &blobs));
        let (kept, edits): (Vec<TreeEdit>, Vec<TreeEdit>) =
            edits.partition(|edit| facts.allowed.matches(&edit.path));
        if kept.is_empty() && edits.is_empty() {
            return Ok(None);
        }
        add_paths(&mut trusted.allowed, &kept);
        if edits.is_empty() {
            (trusted.files, trusted.commits) = (Vec::new(), Vec::new());
            break;
        }
        add_paths(&mut trusted.files, &edits);
        let made = repo.edit_tree(&tree, &edits).await?;
        let draft = CommitDraft {
            tree: &made,
            parents: std::slice::from_ref(tip),
            identity: facts.identity,
            when: facts.when,
            message: facts.message,
        };
        let commit = repo.commit_tree(draft).await?;
        if !trusted.commits.contains(&commit) {
            trusted.commits.push(commit);
        }
    }
    Ok(Some(trusted))
}

async fn read_versions(
    repo: &SealedRepo,
    files: &[&ChangedEntry],
    stages: &[ConflictStage],
) -> Result<BTreeMap<Sha, Vec<u8>>, GitError> {
    let paths: BTreeSet<&[u8]> = files.iter().map(|entry| entry.path.as_slice()).collect();
    let staged = stages.iter().filter(|stage| paths.contains(stage.path.as_slice()));
    let ids: BTreeSet<&Sha> = files
        .iter()
        .flat_map(|entry| [&entry.old, &entry.new])
        .flatten()
        .chain(staged.map(|stage| &stage.id))
        .collect();
    let ids: Vec<Sha> = ids.into_iter().cloned().collect();
    let blobs = repo.read_blobs(&ids, FILE_CAP).await?;
    Ok(ids.into_iter().zip(blobs).filter_map(|(id, blob)| Some((id, blob?.bytes))).collect())
}

/// Scripts that the line of the check names, directly or through other files of the check.
async fn check_scripts(
    repo: &SealedRepo,
    tree: &Sha,
    line: &str,
) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let mut found: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut named: BTreeSet<String> = named_paths(line);
    named.extend(CHECK_ROOTS.map(str::to_owned));
    for step in 0..DEPTH {
        let by = if step == 0 { NamedBy::Line } else { NamedBy::File };
        let fresh: Vec<String> =
            named.into_iter().filter(|path| seen.insert(path.clone())).collect();
        let asked: Vec<&[u8]> = fresh.iter().map(String::as_bytes).collect();
        if asked.is_empty() {
            break;
        }
        let entries = repo.entries_at(tree, &asked).await?;
        let is_script = |path: &[u8], mode: u32| {
            let is_file = mode == EXECUTABLE || mode == REGULAR;
            let script = |path| is_check_script(path, mode == EXECUTABLE, by);
            is_file && (is_check_file(path) || std::str::from_utf8(path).is_ok_and(script))
        };
        let scripts: Vec<_> =
            entries.into_iter().filter(|(path, entry)| is_script(path, entry.mode)).collect();
        let ids: Vec<Sha> = scripts.iter().map(|(_, entry)| entry.id.clone()).collect();
        found.extend(scripts.into_iter().map(|(path, _)| path));
        let texts = repo.read_blobs(&ids, FILE_CAP).await?;
        let names = texts
            .into_iter()
            .flatten()
            .flat_map(|blob| named_paths(&String::from_utf8_lossy(&blob.bytes)));
        named = names.collect();
    }
    Ok(found)
}

/// The change that makes a file of the result the trusted one; `None` if it is that already.
fn edit(
    entry: &ChangedEntry,
    merged: &MergedTree,
    side: Side,
    blobs: &BTreeMap<Sha, Vec<u8>>,
) -> Option<TreeEdit> {
    let (mode, trusted) = trusted_content(entry, merged, side, blobs);
    let result = entry.new.as_ref().and_then(|id| blobs.get(id));
    let new = match (trusted, result) {
        (None, None) => return None,
        (None, Some(result)) => match without_test_sections(&entry.path, result) {
            Some(bytes) if bytes == *result => return None,
            Some(bytes) => NewEntry::Content { mode: entry.new_mode, bytes },
            None => NewEntry::Nothing,
        },
        (Some(trusted), None) => NewEntry::Content { mode, bytes: trusted },
        (Some(trusted), Some(result)) => {
            let spliced = with_trusted_sections(&entry.path, result, &trusted);
            let bytes = spliced.unwrap_or(trusted);
            if bytes == *result && mode == entry.new_mode {
                return None;
            }
            NewEntry::Content { mode, bytes }
        }
    };
    Some(TreeEdit { path: entry.path.clone(), entry: new })
}

/// Mode and content of a file as git merges it. Where both sides changed the same lines, those of `side` stand.
fn trusted_content(
    entry: &ChangedEntry,
    merged: &MergedTree,
    side: Side,
    blobs: &BTreeMap<Sha, Vec<u8>>,
) -> (u32, Option<Vec<u8>>) {
    let stage = |number: u8| {
        let at = |it: &&ConflictStage| it.stage == number && it.path == entry.path;
        merged.stages.iter().find(at)
    };
    let content = |stage: Option<&ConflictStage>| stage.and_then(|it| blobs.get(&it.id)).cloned();
    let (base, ours, theirs) = (stage(1), stage(2), stage(3));
    if base.or(ours).or(theirs).is_none() {
        return (entry.old_mode, entry.old.as_ref().and_then(|id| blobs.get(id)).cloned());
    }
    let chosen = if side == Side::Ours { ours } else { theirs };
    let mode = chosen.map_or(REGULAR, |it| it.mode);
    match (content(base), content(ours), content(theirs)) {
        (base, Some(ours), Some(theirs)) if is_text(&ours) && is_text(&theirs) => {
            (mode, Some(merge_lines(&base.unwrap_or_default(), &ours, &theirs, side)))
        }
        _ => (mode, content(chosen)),
    }
}

/// Adds the paths of edits to a sorted list.
fn add_paths(paths: &mut Vec<TreePath>, edits: &[TreeEdit]) {
    paths.extend(edits.iter().map(|edit| TreePath::new(edit.path.as_slice())));
    paths.sort();
    paths.dedup();
}

fn merge_lines(base: &[u8], ours: &[u8], theirs: &[u8], side: Side) -> Vec<u8> {
    let (base, ours, theirs) = (lines(base), lines(ours), lines(theirs));
    let part = |region: &crate::three::Region| match (region.change, side) {
        (Change::Theirs, _) | (Change::Conflict, Side::Theirs) => {
            theirs[region.theirs.clone()].concat()
        }
        _ => ours[region.ours.clone()].concat(),
    };
    three_way(&base, &ours, &theirs, Touching::Joins).iter().flat_map(part).collect()
}
