//! Changes between two commits: as a list for rules, and as a patch for reading.

use std::ffi::OsString;

use model::id::Sha;

use super::GitError;
use super::blob::Capped;
use super::call::{Git, GitCall, GitOutput, args};

/// One path whose content or kind differs. A rename is a removal and an addition, so that no old name
/// is hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedEntry {
    /// The mode before, such as `0o100644`; zero if the path did not exist.
    pub old_mode: u32,
    /// The mode after; zero if the path does not exist. `0o120000` is a link, `0o160000` a submodule.
    pub new_mode: u32,
    /// The object before.
    pub old: Option<Sha>,
    /// The object after.
    pub new: Option<Sha>,
    pub status: EntryStatus,
    /// Path from the root of the tree, in raw bytes.
    pub path: Vec<u8>,
}

/// Kind of change to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryStatus {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// Its content or its mode changed.
    Modified,
    /// It became another type, such as a link.
    TypeChanged,
}

impl Git {
    pub(super) async fn changed_entries(
        &self,
        from: &Sha,
        to: &Sha,
    ) -> Result<Vec<ChangedEntry>, GitError> {
        let answer = self.ask(GitCall::new(argv_entries(from, to))).await?.success()?;
        read_entries(&answer)
    }

    pub(super) async fn diff(&self, from: &Sha, to: &Sha, cap: usize) -> Result<Capped, GitError> {
        let call = GitCall::new(argv_patch(from, to)).cut_after(cap);
        let answer = self.ask(call).await?.success()?;
        Ok(Capped { bytes: answer.stdout, truncated: answer.truncated })
    }
}

/// Builds the arguments. Submodules must be listed whatever `.gitmodules` says about ignoring them.
fn argv_entries(from: &Sha, to: &Sha) -> Vec<OsString> {
    let mut argv = args(["diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff"]);
    argv.extend(args(["--no-textconv", "--ignore-submodules=none", "--no-abbrev"]));
    argv.extend(args(["--end-of-options", from.as_str(), to.as_str(), "--"]));
    argv
}

fn argv_patch(from: &Sha, to: &Sha) -> Vec<OsString> {
    let mut argv = args(["diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff"]);
    argv.extend(args(["--no-textconv", "--ignore-submodules=all", "--no-color"]));
    argv.extend(args(["--end-of-options", from.as_str(), to.as_str(), "--"]));
    argv
}

fn read_entries(answer: &GitOutput) -> Result<Vec<ChangedEntry>, GitError> {
    parse_entries(&answer.stdout).map_err(|problem| answer.unreadable(problem))
}

/// Parses entries of the form `:old-mode new-mode old new status`, NUL, path, NUL.
fn parse_entries(bytes: &[u8]) -> Result<Vec<ChangedEntry>, String> {
    let Some(body) = bytes.strip_suffix(b"\0") else {
        return if bytes.is_empty() { Ok(Vec::new()) } else { Err("it ends too early".to_owned()) };
    };
    let mut fields = body.split(|&byte| byte == 0);
    let mut entries = Vec::new();
    while let Some(header) = fields.next() {
        let shown = || format!("strange entry {:?}", String::from_utf8_lossy(header));
        let path = fields.next().filter(|path| !path.is_empty()).ok_or_else(shown)?;
        entries.push(parse_entry(header, path).ok_or_else(shown)?);
    }
    Ok(entries)
}

fn parse_entry(header: &[u8], path: &[u8]) -> Option<ChangedEntry> {
    let text = std::str::from_utf8(header).ok()?.strip_prefix(':')?;
    let parts: Vec<&str> = text.split(' ').collect();
    let &[old_mode, new_mode, old, new, status] = parts.as_slice() else { return None };
    let mode = |text| u32::from_str_radix(text, 8).ok();
    Some(ChangedEntry {
        old_mode: mode(old_mode)?,
        new_mode: mode(new_mode)?,
        old: parse_side(old)?,
        new: parse_side(new)?,
        status: parse_status(status)?,
        path: path.to_vec(),
    })
}

/// Parses an id; an id of zeros means no object.
fn parse_side(text: &str) -> Option<Option<Sha>> {
    let sha = Sha::parse(text).ok()?;
    let is_nothing = text.bytes().all(|byte| byte == b'0');
    Some(Some(sha).filter(|_| !is_nothing))
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
