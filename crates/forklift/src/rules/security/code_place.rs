//! The code around a change, and whether a file has it: a fork may have moved the code with the hole into another file, where
//! neither its path nor git's detection of renames finds it.

use std::collections::{BTreeMap, BTreeSet};

use merge::likeness::Likeness;
use model::id::Sha;

/// Letters and digits below which a line says nothing.
const TELLING_CHARS: usize = 3;

/// Lines before and after a change that belong to its surroundings.
const AROUND: usize = 4;

/// Lines that are looked for in all files; the longest tell the most.
const MOST_SOUGHT: usize = 8;

/// Share of the surroundings from which a file has the code, and from which it has all of it.
const HAS_CODE: f64 = 0.5;
const HAS_ALL: f64 = 0.9;

/// Share below which a file has something else.
const HAS_NONE: f64 = 0.25;

/// Comparison of the files that a commit changes with those of the fork.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FileFacts {
    /// Files with code that the commit changes, and how many of them the fork has, under whatever name.
    pub(crate) code_files: usize,
    pub(crate) code_files_there: usize,
    pub(crate) likeness: Likeness,
    /// Files as the commit leaves them, to the byte.
    pub(crate) as_new: usize,
    /// Files as in the state of upstream that the fork has taken, to the byte; a file that neither has is one too.
    pub(crate) as_common: usize,
    /// Files in which most of the code around the change stands.
    pub(crate) with_surroundings: usize,
    /// Other files of the fork that have the code.
    pub(crate) moved: Vec<MovedCode>,
    /// Files whose code could not be looked for elsewhere, or of which some lines stand elsewhere.
    pub(crate) unsearched: usize,
}

/// Code of a file that the fork has in another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MovedCode {
    pub(crate) path: String,
    /// Next to all of it.
    pub(crate) is_whole: bool,
}

impl FileFacts {
    /// Returns whether each file is, to the byte, as upstream has it with the commit or later.
    pub(crate) fn is_upstreams(&self, takes_common: bool) -> bool {
        let all = |count| self.code_files > 0 && count == self.code_files;
        let is_as = all(self.as_new) || (takes_common && all(self.as_common));
        is_as && self.moved.is_empty() && self.unsearched == 0
    }

    /// Returns whether each file is as in the state of upstream that the fork has taken, and no code of it stands elsewhere.
    pub(crate) fn is_common(&self) -> bool {
        self.as_common == self.code_files && self.moved.is_empty() && self.unsearched == 0
    }

    /// Returns whether the code around the change is nowhere in the fork.
    pub(crate) fn lacks_code(&self) -> bool {
        self.code_files > 0
            && self.with_surroundings == 0
            && self.moved.is_empty()
            && self.unsearched == 0
    }

    pub(crate) fn is_moved_whole(&self) -> bool {
        !self.moved.is_empty() && self.moved.iter().all(|moved| moved.is_whole)
    }

    /// Says in which other files the code stands.
    pub(crate) fn moved_words(&self) -> String {
        let paths: BTreeSet<&str> = self.moved.iter().map(|moved| moved.path.as_str()).collect();
        match paths.len() {
            0 => String::new(),
            _ => format!(" (in {})", paths.into_iter().take(3).collect::<Vec<_>>().join(", ")),
        }
    }
}

/// A line without its blanks.
fn bare(line: &[u8]) -> Vec<u8> {
    line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

fn is_telling(line: &[u8]) -> bool {
    let telling = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte >= 0x80;
    line.iter().filter(telling).count() >= TELLING_CHARS
}

/// The telling lines of the code that a change takes away or stands in. Of a file that the change adds these are its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// Without outer blanks.
    lines: Vec<Vec<u8>>,
}

impl Surroundings {
    pub(crate) fn of(before: &[u8], after: &[u8]) -> Self {
        if before.is_empty() {
            return Self::of_lines(after.split(|&byte| byte == b'\n'));
        }
        let old: Vec<&[u8]> = before.split(|&byte| byte == b'\n').collect();
        let new: Vec<&[u8]> = after.split(|&byte| byte == b'\n').collect();
        let same = |pair: &(&&[u8], &&[u8])| pair.0 == pair.1;
        let start = old.iter().zip(&new).take_while(same).count();
        let most = old.len().min(new.len()) - start;
        let end = old.iter().rev().zip(new.iter().rev()).take_while(same).count().min(most);
        let from = start.saturating_sub(AROUND);
        let to = (old.len() - end + AROUND).min(old.len());
        Self::of_lines(old[from..to].iter().copied())
    }

    fn of_lines<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut known = BTreeSet::new();
        let telling = lines.map(<[u8]>::trim_ascii).filter(|line| is_telling(line));
        let lines = telling.filter(|line| known.insert(bare(line))).map(<[u8]>::to_vec);
        Self { lines: lines.collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines to look for in all files.
    pub(crate) fn sought(&self) -> Vec<&[u8]> {
        let mut lines: Vec<&[u8]> = self.lines.iter().map(Vec::as_slice).collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.len()));
        lines.truncate(MOST_SOUGHT);
        lines
    }

    /// Share of the lines that a text has; `None` if there is nothing to look for.
    #[expect(clippy::cast_precision_loss, reason = "numbers of lines are small")]
    pub(crate) fn share_in(&self, text: &[u8]) -> Option<f64> {
        let there: BTreeSet<Vec<u8>> = text.split(|&byte| byte == b'\n').map(bare).collect();
        let found = self.lines.iter().filter(|line| there.contains(&bare(line))).count();
        (!self.lines.is_empty()).then(|| found as f64 / self.lines.len() as f64)
    }

    pub(crate) fn are_in(&self, text: &[u8]) -> bool {
        self.share_in(text).is_some_and(|share| share >= HAS_CODE)
    }
}

/// Result of a search for code in the other files of the fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CodePlace {
    Nowhere,
    At { id: Sha, moved: MovedCode },
    Unknown,
}

/// Chooses the file that has the most of the code.
pub(crate) fn find_code(
    surroundings: &Surroundings,
    texts: &BTreeMap<Vec<u8>, (Sha, Vec<u8>)>,
) -> CodePlace {
    if surroundings.is_empty() {
        return CodePlace::Unknown;
    }
    let shares = texts.iter().filter_map(|(path, (id, text))| {
        surroundings.share_in(text).map(|share| (share, path, id))
    });
    let best = shares.reduce(|best, other| if other.0 > best.0 { other } else { best });
    match best {
        Some((share, path, id)) if share >= HAS_CODE => {
            let path = String::from_utf8_lossy(path).into_owned();
            CodePlace::At { id: id.clone(), moved: MovedCode { path, is_whole: share >= HAS_ALL } }
        }
        Some((share, ..)) if share >= HAS_NONE => CodePlace::Unknown,
        Some(_) | None => CodePlace::Nowhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &[u8] = b"#include <a>\n\nint other(void)\n{\n  return 7;\n}\nint f(char *p)\n{\n  copy(p);\n  return done;\n}\n";

    fn place(before: &[u8], after: &[u8], text: &[u8]) -> CodePlace {
        let id = Sha::parse(&"a".repeat(40)).unwrap();
        let texts = BTreeMap::from([(b"big.c".to_vec(), (id, text.to_vec()))]);
        find_code(&Surroundings::of(before, after), &texts)
    }

    #[test]
    fn code_is_found_in_another_file_by_the_lines_around_the_change() {
        let after =
            String::from_utf8_lossy(BEFORE).replace("  copy", "  if (!p) return bad;\n  copy");
        let after = after.as_bytes();
        let moved = [b"int much_else;\n".repeat(50).as_slice(), BEFORE].concat();
        let CodePlace::At { moved, .. } = place(BEFORE, after, &moved) else { panic!("not found") };
        assert_eq!((moved.path.as_str(), moved.is_whole), ("big.c", true));
        let tabs = String::from_utf8_lossy(BEFORE).replace("  ", "\t");
        assert!(matches!(place(BEFORE, after, tabs.as_bytes()), CodePlace::At { .. }));
        assert_eq!(place(BEFORE, after, b"int much_else;\n"), CodePlace::Nowhere);
        let some = b"int f(char *p)\n{\n  ours(p);\n}\n";
        assert_eq!(place(BEFORE, after, some), CodePlace::Unknown);
    }

    #[test]
    fn a_file_that_is_taken_away_or_added_is_looked_for_as_a_whole() {
        assert!(matches!(place(BEFORE, b"", BEFORE), CodePlace::At { .. }));
        assert!(matches!(place(b"", BEFORE, BEFORE), CodePlace::At { .. }));
        assert_eq!(place(b"}\n", b"{\n}\n", BEFORE), CodePlace::Unknown);
    }
}
