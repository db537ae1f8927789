//! Overlaps between workstreams: by touched files and by expected paths.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use serde::Serialize;

use super::touched::parse_touched;

#[derive(Debug, Clone)]
pub(crate) struct WorkstreamPaths<'a> {
    pub(crate) id: &'a str,
    pub(crate) touched: &'a [u8],
    pub(crate) expected: &'a [String],
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Overlap {
    pub(crate) workstream: String,
    pub(crate) actual: Vec<String>,
    /// Expected paths of this workstream, with the other's files below them.
    pub(crate) predicted: BTreeMap<String, Vec<String>>,
    /// Expected paths of the other workstream, with this one's files below them.
    pub(crate) reverse: BTreeMap<String, Vec<String>>,
    /// Pairs of expected paths of which one contains the other.
    pub(crate) expected: Vec<(String, String)>,
}

impl Overlap {
    fn is_empty(&self) -> bool {
        self.actual.is_empty()
            && self.predicted.is_empty()
            && self.reverse.is_empty()
            && self.expected.is_empty()
    }
}

pub(crate) fn find_overlaps(
    target: &WorkstreamPaths<'_>,
    others: &[WorkstreamPaths<'_>],
) -> Vec<Overlap> {
    let mine = sorted(target.touched);
    let mut found: Vec<Overlap> = others
        .iter()
        .filter(|other| other.id != target.id)
        .map(|other| compare(target, &mine, other))
        .filter(|overlap| !overlap.is_empty())
        .collect();
    found.sort_by(|one, other| one.workstream.cmp(&other.workstream));
    found
}

fn compare(target: &WorkstreamPaths<'_>, mine: &[&[u8]], other: &WorkstreamPaths<'_>) -> Overlap {
    let theirs = sorted(other.touched);
    Overlap {
        workstream: other.id.to_owned(),
        actual: common(mine, &theirs),
        predicted: below(target.expected, &theirs),
        reverse: below(other.expected, mine),
        expected: target
            .expected
            .iter()
            .flat_map(|one| other.expected.iter().map(move |two| (one, two)))
            .filter(|(one, two)| contains(one, two.as_bytes()) || contains(two, one.as_bytes()))
            .map(|(one, two)| (one.clone(), two.clone()))
            .collect(),
    }
}

/// The names of a list sorted by bytes. The file is written sorted, but people may edit it.
fn sorted(touched: &[u8]) -> Vec<&[u8]> {
    let mut names: Vec<&[u8]> = parse_touched(touched).collect();
    if !names.is_sorted() {
        names.sort_unstable();
    }
    names
}

/// Intersection of two sorted lists. Compares only the range in which both have names.
fn common(mine: &[&[u8]], theirs: &[&[u8]]) -> Vec<String> {
    let (Some(first), Some(last)) = (mine.first(), mine.last()) else { return Vec::new() };
    let from = theirs.partition_point(|name| name < first);
    let to = theirs.partition_point(|name| name <= last);
    let stretch = theirs.get(from..to).unwrap_or_default();
    let shared = stretch.iter().filter(|name| mine.binary_search(name).is_ok());
    shared.map(|name| shown(name)).collect()
}

fn below(expected: &[String], files: &[&[u8]]) -> BTreeMap<String, Vec<String>> {
    let matching = |prefix: &String| -> Vec<String> {
        within(prefix, files)
            .iter()
            .filter(|file| contains(prefix, file))
            .map(|file| shown(file))
            .collect()
    };
    let all = expected.iter().map(|prefix| (prefix.clone(), matching(prefix)));
    all.filter(|(_, files)| !files.is_empty()).collect()
}

/// The contiguous names of a sorted list that begin with `prefix`.
fn within<'a, 'b>(prefix: &str, files: &'a [&'b [u8]]) -> &'a [&'b [u8]] {
    let prefix = prefix.trim_end_matches('/').as_bytes();
    let from = files.partition_point(|file| *file < prefix);
    let rest = files.get(from..).unwrap_or_default();
    let to = rest.partition_point(|file| file.starts_with(prefix));
    rest.get(..to).unwrap_or_default()
}

/// Reports whether `path` is `prefix` or lies below it, by whole components: `src` does not contain `src2/`.
pub(crate) fn contains(prefix: &str, path: &[u8]) -> bool {
    let prefix = prefix.trim_end_matches('/').as_bytes();
    let path = path.strip_suffix(b"/").unwrap_or(path);
    match path.strip_prefix(prefix) {
        Some(rest) => prefix.is_empty() || rest.is_empty() || rest.starts_with(b"/"),
        None => false,
    }
}

/// Counts the files that each workstream shares with any other. `files` is the approximate total, for the capacity.
pub(crate) fn count_shared(all_paths: &[WorkstreamPaths<'_>], files: usize) -> Vec<usize> {
    let mut owners: HashMap<&[u8], (usize, bool), RandomState> =
        HashMap::with_capacity_and_hasher(files, RandomState::default());
    let mut shared = vec![0; all_paths.len()];
    for (at, paths) in all_paths.iter().enumerate() {
        for path in parse_touched(paths.touched) {
            match owners.get_mut(path) {
                None => {
                    owners.insert(path, (at, false));
                }
                Some((first, counted)) if *first != at => {
                    shared[at] += 1;
                    if !*counted {
                        *counted = true;
                        shared[*first] += 1;
                    }
                }
                Some(_) => {}
            }
        }
    }
    shared
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the expected path '{path}' must name a file or folder inside the repository, without '..'"
)]
pub(crate) struct BadExpectedPath {
    path: String,
}

/// Reads the expected paths of a new workstream: relative, without `..`, and `./` taken off. They are compared as folders and
/// files, so a pattern stands for the folder before its wildcard.
pub(crate) fn parse_expected(text: &str) -> Result<Vec<String>, BadExpectedPath> {
    let mut paths = Vec::new();
    for word in text.split_whitespace() {
        let word = folder_of_pattern(word);
        let is_folder = word.ends_with('/');
        let parts: Vec<&str> = word.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        if word.starts_with('/') || parts.is_empty() || parts.contains(&"..") {
            return Err(BadExpectedPath { path: word.to_owned() });
        }
        let path = parts.join("/") + if is_folder { "/" } else { "" };
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// The folder that has all that a pattern with an asterisk matches. Other characters of patterns are found in names of files.
fn folder_of_pattern(path: &str) -> &str {
    let Some(at) = path.find('*') else { return path };
    path.get(..at)
        .and_then(|start| start.rsplit_once('/'))
        .map_or(".", |(folder, _)| path.get(..=folder.len()).unwrap_or(folder))
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_by_components() {
        assert!(
            contains("src", b"src/a.rs")
                && contains("src/", b"src/a.rs")
                && contains("src", b"src")
        );
        assert!(!contains("src", b"src2/a.rs") && !contains("src/a", b"src/ab"));
    }

    #[test]
    fn all_four_kinds_of_overlap_are_found() {
        let paths = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let (mk, src, doc) = (paths(&["mk/"]), paths(&["src/"]), paths(&["src/api"]));
        let target = WorkstreamPaths { id: "a", touched: b"mk/x\nsrc/y\n", expected: &src };
        let others = [
            WorkstreamPaths { id: "c", touched: b"src/y\nother\n", expected: &mk },
            WorkstreamPaths { id: "b", touched: b"", expected: &doc },
            WorkstreamPaths { id: "a", touched: b"mk/x\n", expected: &src },
            WorkstreamPaths { id: "d", touched: b"zzz\n", expected: &[] },
        ];
        let found = find_overlaps(&target, &others);
        assert_eq!(
            found.iter().map(|overlap| overlap.workstream.as_str()).collect::<Vec<_>>(),
            ["b", "c"]
        );
        assert_eq!(found[0].expected, [("src/".to_owned(), "src/api".to_owned())]);
        assert_eq!(found[1].actual, ["src/y"]);
        assert_eq!(found[1].predicted["src/"], ["src/y"]);
        assert_eq!(found[1].reverse["mk/"], ["mk/x"]);
    }

    #[test]
    fn shared_files_are_counted_for_each() {
        let paths = |id, touched| WorkstreamPaths { id, touched, expected: &[] };
        let all = [paths("a", &b"x\ny\n"[..]), paths("b", b"x\n"), paths("c", b"x\nz\n")];
        assert_eq!(count_shared(&all, 3), [1, 1, 1]);
    }

    #[test]
    fn expected_paths_are_tidied_or_refused() {
        assert_eq!(
            parse_expected("./mk/ tests//unit src mk/").unwrap(),
            ["mk/", "tests/unit", "src"]
        );
        assert_eq!(
            parse_expected("src/login/** lib/*/a.rs docs/*.md app/[id]/page.tsx").unwrap(),
            ["src/login/", "lib/", "docs/", "app/[id]/page.tsx"]
        );
        assert_eq!(parse_expected("  ").unwrap(), Vec::<String>::new());
        for bad in ["/etc", "../x", "a/../b", ".", "*", "**/a.rs", "/*"] {
            assert!(parse_expected(bad).is_err(), "{bad}");
        }
    }
}
