//! The result of an agent with the files that define its check as trusted people have them, so that an agent cannot rewrite
//! its own judge.
//!
//! - `files` which files define a check
//! - `mention` which files the texts of a check name

mod files;
mod mention;

use std::collections::{BTreeMap, BTreeSet};

use host::git::{
    ChangedEntry, CommitDraft, ConflictStage, GitError, GitIdentity, MergedTree, NewEntry,
    SealedRepo, TreeEdit,
};
use jiff::Timestamp;
use model::id::Sha;

pub use self::files::is_check_file;
use self::files::{CHECK_ROOTS, NamedBy, file_name, with_trusted_sections, without_test_sections};
use self::mention::{MOST_GLOBS, MentioningText, Mentions, Part, is_glob};
use crate::path::TreePath;
use crate::pattern::PathPatterns;
use crate::resolver::hunk::Side;
use crate::three::text::{is_text, lines};
use crate::three::{Change, Touching, three_way};

/// Bytes of a file that are read.
const FILE_CAP: usize = 4 << 20;

/// Bytes of a script that are read for names.
const TEXT_CAP: usize = 256 << 10;

/// Steps from the line of the check to a script: the line names a script that calls another.
const DEPTH: usize = 5;

/// Most files of one name that are read for more names. More of them is a common name, such as `index.js`.
const MOST_ALIKE: usize = 40;

/// Most texts that are read for names.
const MOST_TEXTS: usize = 1_000;

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
    /// Files that the agent changed against the trusted tree, outside of conflicts, and that files of the check name. They may
    /// be a part of the check or what it is about, so the agent's version stays.
    pub named: Vec<TreePath>,
}

/// Finds the files that define the check and that the agent changed against the trusted tree, and those that the check's
/// files name. `None` if there are none, or if the agent resolved their conflicts by taking one side's lines.
pub async fn find_trusted_check(
    repo: &SealedRepo,
    tip: &Sha,
    facts: TrustedFacts<'_>,
) -> Result<Option<TrustedCheck>, GitError> {
    let merged = facts.merged;
    let changed = repo.changed_entries(&merged.tree, tip).await?;
    if changed.is_empty() {
        return Ok(None);
    }
    let mentions = find_mentions(repo, &merged.tree, facts.line).await?;
    let part_of = |entry: &ChangedEntry| {
        let is_executable = entry.old_mode == EXECUTABLE || entry.new_mode == EXECUTABLE;
        mentions.part_of(&entry.path, is_executable)
    };
    let parts: Vec<_> = changed.iter().map(|entry| (entry, part_of(entry))).collect();
    let is_conflict = |path: &[u8]| merged.stages.iter().any(|stage| stage.path == path);
    let named = parts.iter().filter(|(entry, part)| {
        *part == Some(Part::Named)
            && !is_conflict(&entry.path)
            && !facts.allowed.matches(&entry.path)
    });
    let named = named.map(|(entry, _)| TreePath::new(entry.path.as_slice())).collect();
    let defines = |it: &(&ChangedEntry, Option<Part>)| it.1 == Some(Part::Defines);
    let files = parts.iter().copied().filter(defines).map(|(entry, _)| entry).collect();
    let trusted = TrustedCheck { named, ..replace_files(repo, tip, files, facts).await? };
    let is_empty =
        trusted.files.is_empty() && trusted.allowed.is_empty() && trusted.named.is_empty();
    Ok((!is_empty).then_some(trusted))
}

/// Makes the commits with the trusted version of these files.
async fn replace_files(
    repo: &SealedRepo,
    tip: &Sha,
    files: Vec<&ChangedEntry>,
    facts: TrustedFacts<'_>,
) -> Result<TrustedCheck, GitError> {
    let merged = facts.merged;
    let mut trusted = TrustedCheck::default();
    if files.is_empty() {
        return Ok(trusted);
    }
    let trees = repo.trees_of(std::slice::from_ref(tip)).await?;
    let Some(tree) = trees.into_iter().flatten().next() else { return Ok(trusted) };
    let blobs = read_versions(repo, &files, &merged.stages).await?;
    for side in [Side::Ours, Side::Theirs] {
        let edits = files.iter().filter_map(|entry| edit(entry, merged, side, &blobs));
        let (kept, edits): (Vec<TreeEdit>, Vec<TreeEdit>) =
            edits.partition(|edit| facts.allowed.matches(&edit.path));
        if kept.is_empty() && edits.is_empty() {
            return Ok(TrustedCheck::default());
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
    Ok(trusted)
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

/// Names in the line of the check, in the files that define it, and in the scripts that those name.
async fn find_mentions(repo: &SealedRepo, tree: &Sha, line: &str) -> Result<Mentions, GitError> {
    let paths = repo.list_paths(tree).await?;
    let index = PathIndex::new(&paths);
    let mut mentions = Mentions::default();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let (mut asked, mut globs): (BTreeSet<String>, usize) = (BTreeSet::new(), 0);
    let mut names = mentions.add(MentioningText { text: line, by: NamedBy::Line, path: None });
    names.extend(CHECK_ROOTS.map(str::to_owned));
    for _ in 0..DEPTH {
        names.retain(|name| asked.insert(name.clone()));
        // Each pattern is compared with every path.
        names.retain(|name| {
            globs += usize::from(is_glob(name));
            !is_glob(name) || globs <= MOST_GLOBS
        });
        let found: BTreeSet<&str> = names.iter().flat_map(|name| index.find(name)).collect();
        let fresh = found.into_iter().filter(|path| seen.len() < MOST_TEXTS && seen.insert(path));
        let fresh: Vec<&[u8]> = fresh.map(str::as_bytes).collect();
        if fresh.is_empty() {
            break;
        }
        let is_defining = |path: &[u8], mode: u32| {
            (mode == EXECUTABLE || mode == REGULAR)
                && mentions.part_of(path, mode == EXECUTABLE) == Some(Part::Defines)
        };
        let entries = repo.entries_at(tree, &fresh).await?;
        let scripts: Vec<_> =
            entries.into_iter().filter(|(path, entry)| is_defining(path, entry.mode)).collect();
        let ids: Vec<Sha> = scripts.iter().map(|(_, entry)| entry.id.clone()).collect();
        let texts = repo.read_blobs(&ids, TEXT_CAP).await?;
        names = Vec::new();
        for ((path, _), blob) in scripts.iter().zip(texts) {
            let Some(blob) = blob else { continue };
            let (text, path) =
                (String::from_utf8_lossy(&blob.bytes), String::from_utf8_lossy(path));
            let text = MentioningText { text: &text, by: NamedBy::File, path: Some(&path) };
            names.extend(mentions.add(text));
        }
    }
    Ok(mentions)
}

/// Paths of a tree, by the last part of their names.
struct PathIndex<'a> {
    by_name: BTreeMap<&'a str, Vec<&'a str>>,
    all: BTreeSet<&'a str>,
}

impl<'a> PathIndex<'a> {
    fn new(paths: &'a [Vec<u8>]) -> Self {
        let all: BTreeSet<&str> =
            paths.iter().filter_map(|it| std::str::from_utf8(it).ok()).collect();
        let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for path in &all {
            by_name.entry(file_name(path)).or_default().push(path);
        }
        Self { by_name, all }
    }

    /// Files that a name may mean: of that path, of a path that ends with it, or, if it is a folder, the build files in it.
    fn find(&self, name: &str) -> Vec<&'a str> {
        if is_glob(name) {
            let pattern = PathPatterns::new([format!("**/{name}")]);
            let found = self.all.iter().filter(|path| pattern.matches(path.as_bytes()));
            return found.take(MOST_ALIKE).copied().collect();
        }
        let alike = self.by_name.get(file_name(name)).map(Vec::as_slice).unwrap_or_default();
        let is_meant = |path: &&&str| {
            path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        let mut found: Vec<&str> = alike.iter().filter(is_meant).copied().collect();
        if found.len() > MOST_ALIKE {
            found.retain(|path| *path == name);
        }
        let roots = CHECK_ROOTS.iter().map(|root| format!("{name}/{root}"));
        found.extend(roots.filter_map(|root| self.all.get(root.as_str()).copied()));
        found
    }
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
