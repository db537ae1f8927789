//! Commits, line counts and renames between two commits.

use std::ffi::OsString;

use jiff::Timestamp;
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::call::{Git, argv_with};
use super::parse::{nul_fields, parse_mode};
use super::{GitError, SealedRepo};

/// A commit with its date, for a list of upcoming changes. Author and date are claims of the commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatedCommit {
    pub sha: Sha,
    /// The first paragraph of its message, on one line.
    pub subject: String,
    pub author: String,
    pub authored_at: Option<Timestamp>,
}

/// Line counts of a path that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileNumbers {
    pub path: Vec<u8>,
    /// Added lines; binary files have none.
    pub insertions: u64,
    pub deletions: u64,
}

/// A path that has another name on the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
    pub mode: u32,
    /// The object after.
    pub id: Sha,
}

const FIELDS: usize = 4;
const FORMAT: &str = "--format=tformat:%H%x00%an%x00%at%x00%s";

impl SealedRepo {
    /// Lists commits reachable from `tip` and not from `exclude`, newest first, at most `limit`.
    pub async fn dated_commits(
        &self,
        tip: &Sha,
        exclude: &Sha,
        limit: usize,
    ) -> Result<Vec<DatedCommit>, GitError> {
        let answer = self.git.query(argv_dated(tip, exclude, limit)).await?;
        answer.parse(parse_dated, "it is not a list of commits")
    }

    /// Lists the files that have another name in `to` than in `from`, as detected by git.
    pub async fn renames(&self, from: &Sha, to: &Sha) -> Result<Vec<Rename>, GitError> {
        let answer = self.git.query(argv_renames(from, to)).await?;
        answer.parse(parse_renames, "it is not a list of renames")
    }
}

impl Git {
    /// Returns the line counts between two commits, by path.
    pub async fn diff_numbers(&self, from: &Sha, to: &Sha) -> Result<Vec<FileNumbers>, GitError> {
        let answer = self.query(argv_numbers(from, to)).await?;
        answer.parse(parse_numbers, "it is not a list of numbers")
    }
}

fn argv_dated(tip: &Sha, exclude: &Sha, limit: usize) -> Vec<OsString> {
    let (count, exclude) = (format!("--max-count={limit}"), format!("^{exclude}"));
    let words = "log -z --no-patch --no-color --topo-order --encoding=UTF-8";
    argv_with(words, [FORMAT, &count, tip.as_str(), &exclude, "--"])
}

fn argv_numbers(from: &Sha, to: &Sha) -> Vec<OsString> {
    let words = "diff-tree -r -z --numstat --no-renames --no-ext-diff --no-textconv \
        --ignore-submodules=none --end-of-options";
    argv_with(words, [from.as_str(), to.as_str(), "--"])
}

/// Builds the arguments. Git's own limit on compared candidates bounds the time.
fn argv_renames(from: &Sha, to: &Sha) -> Vec<OsString> {
    let words = "diff-tree -r -z --find-renames -l1000 --diff-filter=R --no-ext-diff \
        --no-textconv --no-abbrev --end-of-options";
    argv_with(words, [from.as_str(), to.as_str(), "--"])
}

fn parse_dated(bytes: &[u8]) -> Option<Vec<DatedCommit>> {
    let fields: Vec<_> = nul_fields(bytes)?.into_iter().map(String::from_utf8_lossy).collect();
    let (commits, rest) = fields.as_chunks::<FIELDS>();
    rest.is_empty().then_some(())?;
    let commit = |[sha, author, secs, subject]: &[std::borrow::Cow<'_, str>; FIELDS]| {
        Some(DatedCommit {
            sha: Sha::parse(sha).ok()?,
            author: author.clone().into_owned(),
            authored_at: secs.parse().ok().and_then(|secs| Timestamp::from_second(secs).ok()),
            subject: subject.clone().into_owned(),
        })
    };
    commits.iter().map(commit).collect()
}

/// Parses lines of two numbers and the path, separated by tabs; a binary file has dashes.
fn parse_numbers(bytes: &[u8]) -> Option<Vec<FileNumbers>> {
    let file = |entry: &[u8]| {
        let mut columns = entry.splitn(3, |&byte| byte == b'\t');
        let mut number = || match std::str::from_utf8(columns.next()?).ok()? {
            "-" => Some(0),
            text => text.parse::<u64>().ok(),
        };
        let (insertions, deletions) = (number()?, number()?);
        Some(FileNumbers { path: columns.next()?.to_vec(), insertions, deletions })
    };
    nul_fields(bytes)?.into_iter().map(file).collect()
}

/// Parses entries of the form `:old-mode new-mode old new Rnnn`, NUL, the old path, NUL, the new path, NUL.
pub(super) fn parse_renames(bytes: &[u8]) -> Option<Vec<Rename>> {
    let fields = nul_fields(bytes)?;
    let (entries, rest) = fields.as_chunks::<3>();
    rest.is_empty().then_some(())?;
    let rename = |[header, from, to]: &[&[u8]; 3]| {
        let text = std::str::from_utf8(header).ok()?.strip_prefix(':')?;
        let parts: Vec<&str> = text.split(' ').collect();
        let &[_, mode, _, id, status] = parts.as_slice() else { return None };
        status.starts_with('R').then_some(())?;
        let (mode, id) = (parse_mode(mode)?, Sha::parse(id).ok()?);
        Some(Rename { from: from.to_vec(), to: to.to_vec(), mode, id })
    };
    entries.iter().map(rename).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    #[test]
    fn nothing_outside_git_takes_part_in_the_numbers() {
        let (a, b) = (Sha::parse(A).unwrap(), Sha::parse(B).unwrap());
        let shown = |argv: Vec<OsString>| argv.join(" ".as_ref()).into_string().unwrap();
        insta::assert_snapshot!(shown(argv_numbers(&a, &b)), @"diff-tree -r -z --numstat --no-renames --no-ext-diff --no-textconv --ignore-submodules=none --end-of-options aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb --");
        insta::assert_snapshot!(shown(argv_renames(&a, &b)), @"diff-tree -r -z --find-renames -l1000 --diff-filter=R --no-ext-diff --no-textconv --no-abbrev --end-of-options aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb --");
    }

    #[test]
    fn commits_have_dates_unless_they_are_absurd() {
        let text = format!("{A}\0Ada\x001700000000\0one\0{B}\0\x0099999999999999999\0\0");
        let commits = parse_dated(text.as_bytes()).unwrap();
        assert_eq!(commits[0].authored_at.unwrap().as_second(), 1_700_000_000);
        assert_eq!(commits[1].authored_at, None);
        assert_eq!(parse_dated(b"").unwrap(), []);
        assert!(parse_dated(format!("{A}\0Ada\0").as_bytes()).is_none());
    }

    #[test]
    fn numbers_belong_to_paths_and_binary_files_have_none() {
        let files = parse_numbers(b"-\t-\tbin\x003\t1\ta\tb\nc\0").unwrap();
        let file = |path: &[u8], insertions, deletions| FileNumbers {
            path: path.to_vec(),
            insertions,
            deletions,
        };
        assert_eq!(files, [file(b"bin", 0, 0), file(b"a\tb\nc", 3, 1)]);
        assert_eq!(parse_numbers(b"").unwrap(), []);
        assert!(parse_numbers(b"x\t1\ta\0").is_none());
        assert!(parse_numbers(b"1\t1\0").is_none());
    }

    #[test]
    fn renames_keep_the_bytes_of_both_names() {
        let mut bytes = format!(":100644 100755 {A} {B} R087\0").into_bytes();
        bytes.extend_from_slice(b"a\nb\0c \xff\0");
        let renames = parse_renames(&bytes).unwrap();
        assert_eq!(
            (renames[0].from.as_slice(), renames[0].to.as_slice()),
            (&b"a\nb"[..], &b"c \xff"[..])
        );
        assert_eq!((renames[0].mode, renames[0].id.as_str()), (0o100_755, B));
        assert!(parse_renames(format!(":100644 100755 {A} {B} R087\0a\0").as_bytes()).is_none());
        assert!(parse_renames(format!(":100644 100755 {A} {B} M\0a\0b\0").as_bytes()).is_none());
    }
}
