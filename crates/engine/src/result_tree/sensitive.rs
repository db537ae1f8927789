//! Files of a result that act by themselves and are neither side's.
//!
//! Content that git merges by itself from the changes of both sides is not counted: both sides already have each half of it.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{ChangedEntry, GitError, SealedRepo};
use model::id::Sha;
use model::sensitive_path::{SensitiveKind, fold_path, sensitive_below, sensitive_path};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::link::LinkAlias;
use super::{MadeEntry, ResultTree, is_file, show_path};
use crate::evidence::Pins;

/// Bytes of a package manifest that are read.
const MANIFEST_BYTES: usize = 1 << 20;

/// Scripts that package managers run when a package is installed, and those of `npm test`, which is the first thing that a
/// reviewer types.
const ACTING_SCRIPTS: [&str; 13] = [
    "preinstall",
    "install",
    "postinstall",
    "preprepare",
    "prepare",
    "postprepare",
    "prepublish",
    "prepack",
    "postpack",
    "dependencies",
    "pretest",
    "test",
    "posttest",
];

/// File that acts by itself and that the result has as neither side has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensitiveChange {
    pub path: String,
    pub kind: SensitiveKind,
}

impl SensitiveChange {
    pub fn message(&self) -> String {
        format!("{} ({})", self.path, self.kind.description())
    }
}

/// Lists the sensitive files that were made, changed or removed here.
pub(crate) async fn find_sensitive(
    repo: &SealedRepo,
    pins: &Pins,
    tree: &ResultTree,
    aliases: &[LinkAlias],
) -> Result<Vec<SensitiveChange>, GitError> {
    let made = tree.made.iter().filter_map(|entry| {
        Some(SensitiveCandidate {
            path: &entry.path,
            made: Some(entry),
            kind: kind_of(&entry.path, aliases)?,
        })
    });
    let removed = tree.removed.iter().filter_map(|path| {
        Some(SensitiveCandidate { path, made: None, kind: kind_of(path, aliases)? })
    });
    let mut candidates: Vec<SensitiveCandidate<'_>> = made.chain(removed).collect();
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    leave_out_merged(repo, pins, &mut candidates).await?;
    let mut changes = Vec::new();
    for candidate in candidates {
        if candidate.acts(repo).await? {
            let path = show_path(candidate.path);
            changes.push(SensitiveChange { path, kind: candidate.kind });
        }
    }
    Ok(changes)
}

/// Lists the sensitive files that the result has otherwise than the base, without those that neither side has.
pub(crate) async fn find_taken(
    repo: &SealedRepo,
    from_base: &[ChangedEntry],
    aliases: &[LinkAlias],
    made: &[SensitiveChange],
) -> Result<Vec<SensitiveChange>, GitError> {
    let made: BTreeSet<&str> = made.iter().map(|change| change.path.as_str()).collect();
    let acting = from_base.iter().filter_map(|entry| Some((entry, kind_of(&entry.path, aliases)?)));
    let acting: Vec<(&ChangedEntry, SensitiveKind)> =
        acting.filter(|(entry, _)| !made.contains(show_path(&entry.path).as_str())).collect();
    let manifests = acting.iter().filter(|(entry, _)| is_manifest(&entry.path));
    let ids: BTreeSet<&Sha> =
        manifests.flat_map(|(entry, _)| [&entry.old, &entry.new]).flatten().collect();
    let ids: Vec<Sha> = ids.into_iter().cloned().collect();
    let scripts: BTreeMap<Sha, Option<BTreeMap<String, Value>>> = match ids.is_empty() {
        true => BTreeMap::new(),
        false => ids.iter().cloned().zip(read_scripts(repo, &ids).await?).collect(),
    };
    let taken = acting
        .into_iter()
        .filter(|(entry, _)| !is_manifest(&entry.path) || changes_scripts(entry, &scripts));
    Ok(taken.map(|(entry, kind)| SensitiveChange { path: show_path(&entry.path), kind }).collect())
}

/// A package manifest acts only by its install and test scripts.
fn is_manifest(path: &[u8]) -> bool {
    fold_path(path).last().is_some_and(|name| name == "package.json")
}

/// Returns whether a package manifest has other install or test scripts than before. One that is gone has none.
fn changes_scripts(
    entry: &ChangedEntry,
    scripts: &BTreeMap<Sha, Option<BTreeMap<String, Value>>>,
) -> bool {
    let read = |id: &Option<Sha>| id.as_ref().and_then(|id| scripts.get(id)).cloned();
    let Some(new) = read(&entry.new) else { return false };
    let old = read(&entry.old).flatten().unwrap_or_default();
    new.is_none_or(|new| new.iter().any(|(name, line)| old.get(name) != Some(line)))
}

struct SensitiveCandidate<'a> {
    path: &'a [u8],
    /// The entry; `None` if the path was removed.
    made: Option<&'a MadeEntry>,
    kind: SensitiveKind,
}

impl SensitiveCandidate<'_> {
    async fn acts(&self, repo: &SealedRepo) -> Result<bool, GitError> {
        let is_manifest = is_manifest(self.path);
        match self.made {
            Some(entry) if is_manifest && entry.is_file() => adds_scripts(repo, entry).await,
            None if is_manifest => Ok(false),
            Some(_) | None => Ok(true),
        }
    }
}

/// A path has its own kind, or that of the name which a link gives it.
fn kind_of(path: &[u8], aliases: &[LinkAlias]) -> Option<SensitiveKind> {
    let aliased = |alias: &LinkAlias| {
        let rest = match alias.end.as_slice() {
            b"" => path,
            end => {
                path.strip_prefix(end).filter(|rest| matches!(rest.first(), None | Some(b'/')))?
            }
        };
        sensitive_path(&[alias.link.as_slice(), b"/", rest].concat())
    };
    sensitive_path(path)
        .or_else(|| sensitive_below(path))
        .or_else(|| aliases.iter().find_map(aliased))
}

/// Drops candidates that are as git's own merge of both sides has them.
async fn leave_out_merged(
    repo: &SealedRepo,
    pins: &Pins,
    candidates: &mut Vec<SensitiveCandidate<'_>>,
) -> Result<(), GitError> {
    let Pins { base, upstream } = pins;
    if base == upstream || repo.merge_base(base, upstream).await?.is_none() {
        return Ok(());
    }
    let merged = repo.merge_tree(base, upstream).await?;
    let conflicts: BTreeSet<&[u8]> =
        merged.stages.iter().map(|stage| stage.path.as_slice()).collect();
    let paths: Vec<&[u8]> = candidates.iter().map(|candidate| candidate.path).collect();
    let entries = repo.entries_at(&merged.tree, &paths).await?;
    candidates.retain(|candidate| {
        let merged = entries.get(candidate.path).map(|entry| (entry.mode, &entry.id));
        let made = candidate.made.map(|entry| (entry.mode, &entry.id));
        conflicts.contains(candidate.path) || merged != made
    });
    Ok(())
}

/// Returns whether a package manifest has an install or test script that neither side has. One that cannot be read may have any.
async fn adds_scripts(repo: &SealedRepo, entry: &MadeEntry) -> Result<bool, GitError> {
    let sides = entry.sides.iter().filter(|side| is_file(side.mode)).map(|side| side.id.clone());
    let ids: Vec<Sha> = std::iter::once(entry.id.clone()).chain(sides).collect();
    let mut scripts = read_scripts(repo, &ids).await?.into_iter();
    let Some(Some(made)) = scripts.next() else { return Ok(true) };
    let known: Vec<BTreeMap<String, Value>> = scripts.flatten().collect();
    let is_known =
        |name: &String, line: &Value| known.iter().any(|side| side.get(name) == Some(line));
    Ok(made.iter().any(|(name, line)| !is_known(name, line)))
}

/// Reads the acting scripts of manifests; `None` for one that cannot be read.
async fn read_scripts(
    repo: &SealedRepo,
    ids: &[Sha],
) -> Result<Vec<Option<BTreeMap<String, Value>>>, GitError> {
    let blobs = repo.read_blobs(ids, MANIFEST_BYTES).await?;
    let scripts = blobs.iter().map(|blob| {
        let blob = blob.as_ref().filter(|blob| blob.size == blob.bytes.len() as u64)?;
        parse_acting_scripts(&blob.bytes)
    });
    Ok(scripts.collect())
}

fn parse_acting_scripts(text: &[u8]) -> Option<BTreeMap<String, Value>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let manifest: Value = serde_json::from_slice(text).ok()?;
    let scripts = manifest.get("scripts").and_then(Value::as_object).cloned().unwrap_or_default();
    Some(scripts.into_iter().filter(|(name, _)| ACTING_SCRIPTS.contains(&name.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scripts_of_installs_and_tests_count() {
        let text =
            br#"{"scripts": {"build": "w", "test": "x", "postinstall": "y", "prepare": "z"}}"#;
        let names: Vec<String> = parse_acting_scripts(text).expect("JSON").into_keys().collect();
        assert_eq!(names, ["postinstall", "prepare", "test"]);
        assert_eq!(parse_acting_scripts(b"\xef\xbb\xbf{}"), Some(BTreeMap::new()));
        assert_eq!(parse_acting_scripts(b"{"), None);
    }

    #[test]
    fn a_path_below_a_linked_folder_has_the_links_kind() {
        let alias = |link: &[u8], end: &[u8]| LinkAlias { link: link.to_vec(), end: end.to_vec() };
        let aliases = [alias(b".vscode", b"editor"), alias(b".github", b"forge")];
        assert_eq!(kind_of(b"editor/tasks.json", &aliases), Some(SensitiveKind::EditorFile));
        assert_eq!(kind_of(b"forge/workflows/a.yml", &aliases), Some(SensitiveKind::Ci));
        assert_eq!(kind_of(b"forge/readme.md", &aliases), None);
        assert_eq!(kind_of(b"editors/tasks.json", &aliases), None);
        assert_eq!(kind_of(b".github", &[]), Some(SensitiveKind::Ci));
    }
}
