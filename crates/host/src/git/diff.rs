//! Changes between two commits: as a list for rules, and as a patch for reading.

use std::ffi::OsString;
use std::path::PathBuf;

use model::id::Sha;

use super::call::{Git, GitCall, argv, argv_with};
use super::parse::{nul_fields, parse_mode, some_object};
use super::{Capped, GitError, SealedRepo};

/// One path whose content or kind differs. A rename is a removal and an addition, so that no old name
/// is hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedEntry {
    /// The mode before, such as `0o100644`; zero if the path did not exist.
    pub old_mode: u32,
    /// The mode after; zero if the path does not exist. `0o120000` is a link, `0o160000` a submodule.
    pub new_mode: u32,
    pub old: Option<Sha>,
    pub new: Option<Sha>,
    pub status: EntryStatus,
    /// Path from the root of the tree, in raw bytes.
    pub path: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryStatus {
    Added,
    Deleted,
    /// Its content or its mode changed.
    Modified,
    /// It became another type, such as a link.
    TypeChanged,
}

impl SealedRepo {
    /// Lists every path that differs between two commits, sorted by its bytes.
    pub async fn changed_entries(
        &self,
        from: &Sha,
        to: &Sha,
    ) -> Result<Vec<ChangedEntry>, GitError> {
        let answer = self.git.query(argv_entries(from, to)).await?;
        parse_entries(&answer.stdout).map_err(|problem| answer.unreadable(problem))
    }
}

impl Git {
    /// Returns the first `cap` bytes of the patch from one commit to another. Submodules are not in it;
    /// [`changed_entries`](SealedRepo::changed_entries) has them.
    pub async fn diff(&self, from: &Sha, to: &Sha, cap: usize) -> Result<Capped, GitError> {
        self.query(GitCall::new(argv_patch(from, to)).cut_after(cap)).await.map(Capped::from)
    }
}

impl SealedRepo {
    /// Returns the whole patch from one commit to another, with binary files, as `git apply` takes it.
    pub async fn whole_patch(&self, from: &Sha, to: &Sha) -> Result<Vec<u8>, GitError> {
        let words = "diff-tree -r -p --binary --full-index --no-renames --no-ext-diff --no-textconv \
            --ignore-submodules=all --no-color --end-of-options";
        let call = GitCall::new(argv_with(words, [from.as_str(), to.as_str(), "--"]));
        Ok(self.git.query(call).await?.stdout)
    }
}

impl SealedRepo {
    /// Applies files of patches to a tree, one after the other, in an index of its own, and returns the tree that comes of it.
    pub async fn apply_patches(&self, tree: &Sha, patches: &[PathBuf]) -> Result<Sha, GitError> {
        let mut git = self.git.clone();
        let index = self.path().join("apply.index");
        git.set_env("GIT_INDEX_FILE", &index);
        git.run(argv_with("read-tree", [tree.as_str()])).await?;
        for some in patches.chunks(PATCHES_AT_ONCE) {
            git.run(argv_with("apply --cached --whitespace=nowarn --", some)).await?;
        }
        git.query(argv("write-tree")).await?.parse_id()
    }
}

/// Files of patches on one command line.
const PATCHES_AT_ONCE: usize = 200;

/// Builds the arguments. Submodules must be listed whatever `.gitmodules` says about ignoring them.
fn argv_entries(from: &Sha, to: &Sha) -> Vec<OsString> {
    let words = "diff-tree -r -z --no-renames --no-ext-diff --no-textconv \
        --ignore-submodules=none --no-abbrev --end-of-options";
    argv_with(words, [from.as_str(), to.as_str(), "--"])
}

fn argv_patch(from: &Sha, to: &Sha) -> Vec<OsString> {
    let words = "diff-tree -r -p --no-renames --no-ext-diff --no-textconv \
        --ignore-submodules=all --no-color --end-of-options";
    argv_with(words, [from.as_str(), to.as_str(), "--"])
}

/// Parses entries of the form `:old-mode new-mode old new status`, NUL, path, NUL.
fn parse_entries(bytes: &[u8]) -> Result<Vec<ChangedEntry>, String> {
    let mut fields = nul_fields(bytes).ok_or("it ends too early")?.into_iter();
    let mut entries = Vec::new();
    while let Some(header) = fields.next() {
        let shown = || format!("strange entry {:?}", String::from_utf8_lossy(header));
        let path = fields.next().filter(|path| !path.is_empty()).ok_or_else(shown)?;
        entries.push(parse_entry(header, path).ok_or_else(shown)?);
    }
    Ok(entries)
}

pub(super) fn parse_entry(header: &[u8], path: &[u8]) -> Option<ChangedEntry> {
    let text = std::str::from_utf8(header).ok()?.strip_prefix(':')?;
    let parts: Vec<&str> = text.split(' ').collect();
    let &[old_mode, new_mode, old, new, status] = parts.as_slice() else { return None };
    Some(ChangedEntry {
        old_mode: parse_mode(old_mode)?,
        new_mode: parse_mode(new_mode)?,
        old: some_object(Sha::parse(old).ok()?),
        new: some_object(Sha::parse(new).ok()?),
        status: parse_status(status)?,
        path: path.to_vec(),
    })
}

fn parse_status(text: &str) -> Option<EntryStatus> {
    match text {
        "A" => Some(EntryStatus::Added),
        "D" => Some(EntryStatus::Deleted),
        "M" => Some(EntryStatus::Modified),
        "T" => Some(EntryStatus::TypeChanged),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    const NONE: &str = "0000000000000000000000000000000000000000";

    fn shown(argv: &[OsString]) -> String {
        argv.join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn nothing_outside_git_takes_part_in_a_diff() {
        let (a, b) = (Sha::parse(A).unwrap(), Sha::parse(B).unwrap());
        insta::assert_snapshot!(shown(&argv_entries(&a, &b)), @"diff-tree -r -z --no-renames --no-ext-diff --no-textconv --ignore-submodules=none --no-abbrev --end-of-options aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb --");
        insta::assert_snapshot!(shown(&argv_patch(&a, &b)), @"diff-tree -r -p --no-renames --no-ext-diff --no-textconv --ignore-submodules=all --no-color --end-of-options aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb --");
    }

    #[test]
    fn entries_keep_their_bytes() {
        let mut bytes = format!(":000000 120000 {NONE} {A} A\0").into_bytes();
        bytes.extend_from_slice(b"a\nb \xff\0");
        bytes.extend_from_slice(format!(":100644 000000 {B} {NONE} D\0old name\0").as_bytes());
        let entries = parse_entries(&bytes).unwrap();
        assert_eq!(entries[0].path, b"a\nb \xff");
        assert_eq!((entries[0].old_mode, entries[0].new_mode), (0, 0o120_000));
        assert_eq!(entries[0].old, None);
        assert_eq!(entries[1].status, EntryStatus::Deleted);
        assert_eq!(entries[1].old.as_ref().unwrap().as_str(), B);
    }

    #[test]
    fn a_path_that_looks_like_a_header_is_a_path() {
        let header = format!(":100644 100755 {A} {B} M");
        let entries = parse_entries(format!("{header}\0{header}\0").as_bytes()).unwrap();
        assert_eq!((entries.len(), entries[0].path.as_slice()), (1, header.as_bytes()));
    }

    #[test]
    fn half_an_answer_is_no_answer() {
        assert_eq!(parse_entries(b"").unwrap(), []);
        for text in [":100644", ":100644 100755 x y M\0p\0", &format!(":100644 100755 {A} {B} M\0")]
        {
            assert!(parse_entries(text.as_bytes()).is_err(), "{text}");
        }
        let renamed = format!(":100644 100644 {A} {B} R100\0a\0");
        assert!(parse_entries(renamed.as_bytes()).is_err());
    }
}
