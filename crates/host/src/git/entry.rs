//! Lookup of many paths of a tree at once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use model::id::Sha;

use super::call::argv_with;
use super::parse::{filled_fields, header_and_path, parse_mode};
use super::{GitError, SealedRepo};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its mode, such as `0o100644`.
    pub mode: u32,
    pub id: Sha,
}

/// Limit on the bytes of paths in one command line.
const QUESTION_BYTES: usize = 64 << 10;

impl SealedRepo {
    /// Returns the entries of a commit or a tree at these paths; missing ones are left out.
    pub async fn entries_at(
        &self,
        tree: &Sha,
        paths: &[&[u8]],
    ) -> Result<BTreeMap<Vec<u8>, TreeEntry>, GitError> {
        let mut found = BTreeMap::new();
        for some in in_questions(paths) {
            let answer = self.git.query(argv_entries(tree, some)).await?;
            // For a directory git returns the entry itself, never its content.
            found.extend(answer.parse(parse_entries, "it is not a list of entries")?);
        }
        Ok(found)
    }

    /// Lists the files, links and submodules of a whole tree.
    pub async fn list_entries(&self, tree: &Sha) -> Result<Vec<(Vec<u8>, TreeEntry)>, GitError> {
        let answer = self.git.query(argv_with(LIST, [tree.as_str()])).await?;
        answer.parse(parse_entries, "it is not a list of entries")
    }
}

const LIST: &str = "ls-tree -r -z --full-tree --end-of-options";

fn argv_entries(tree: &Sha, paths: &[&[u8]]) -> Vec<OsString> {
    let tree = [OsStr::new(tree.as_str()), OsStr::new("--")];
    let paths = paths.iter().map(|path| OsStr::from_bytes(path));
    argv_with("ls-tree -z --full-tree", tree.into_iter().chain(paths))
}

/// Splits the paths into groups that fit a command line.
fn in_questions<'a, 'b>(paths: &'a [&'b [u8]]) -> impl Iterator<Item = &'a [&'b [u8]]> {
    let mut rest = paths;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fitting = rest.iter().take_while(|path| {
            bytes += path.len() + 1;
            bytes <= QUESTION_BYTES
        });
        // A path that alone is too long is still passed; git reports the error.
        let count = fitting.count().max(1).min(rest.len());
        let (now, later) = rest.split_at(count);
        rest = later;
        (!now.is_empty()).then_some(now)
    })
}

/// Parses entries of the form `mode type id`, tab, path, NUL.
fn parse_entries(bytes: &[u8]) -> Option<Vec<(Vec<u8>, TreeEntry)>> {
    let entry = |entry| {
        let (header, path) = header_and_path(entry)?;
        let &[mode, _, id] = header.as_slice() else { return None };
        Some((path.to_vec(), TreeEntry { mode: parse_mode(mode)?, id: Sha::parse(id).ok()? }))
    };
    filled_fields(bytes).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    #[test]
    fn entries_keep_the_bytes_of_their_paths() {
        let mut bytes = format!("100644 blob {A}\ta\n\tb").into_bytes();
        bytes.extend_from_slice(b"\xff\0");
        bytes.extend_from_slice(format!("160000 commit {A}\tsub\0").as_bytes());
        let found = parse_entries(&bytes).unwrap();
        assert_eq!(found[0].0, b"a\n\tb\xff");
        assert_eq!((found[1].1.mode, found[1].1.id.as_str()), (0o160_000, A));
        assert!(parse_entries(b"what\0").is_none());
        assert_eq!(parse_entries(b"").unwrap(), []);
    }

    #[test]
    fn many_paths_are_asked_for_in_several_questions() {
        let long = vec![b'x'; QUESTION_BYTES / 2];
        let paths: Vec<&[u8]> = vec![&long, b"a", &long, b"b"];
        let counts: Vec<usize> = in_questions(&paths).map(<[_]>::len).collect();
        assert_eq!(counts, [2, 2]);
        assert_eq!(in_questions(&[]).count(), 0);
        let longer = vec![b'x'; QUESTION_BYTES * 2];
        assert_eq!(in_questions(&[&longer, b"a"]).map(<[_]>::len).collect::<Vec<_>>(), [1, 1]);
    }
}
