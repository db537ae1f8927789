//! People's resolution of a past conflict, read from the file they committed.

use std::ops::Range;

use host::git::TreeEntry;

use super::conflict::{FileConflict, FileVersion, bytes_of};
use super::habit::Resolution;
use super::hunk::{FilePiece, join};
use crate::three::text::{bare, is_text, lines};

/// People's resolution of a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HumanResolution {
    /// Resolution of the whole file.
    pub choice: Resolution,
    /// Committed content; `None` if the file was deleted or is too large.
    pub bytes: Option<Vec<u8>>,
    /// Text in place of each hunk; `None` where it could not be located.
    pub hunks: Vec<Option<Vec<u8>>>,
}

impl HumanResolution {
    /// Reads the resolution from the entry and content in the merge commit.
    pub fn of(conflict: &FileConflict, entry: Option<&TreeEntry>, bytes: Option<Vec<u8>>) -> Self {
        let is = |side: &Option<FileVersion>| {
            side.as_ref().zip(entry).is_some_and(|(side, entry)| side.id == entry.id)
        };
        let choice = match entry {
            None => Resolution::Absent,
            Some(_) if is(&conflict.ours) => Resolution::Ours,
            Some(_) if is(&conflict.theirs) => Resolution::Theirs,
            Some(_) if is(&conflict.base) => Resolution::Base,
            Some(_) => Resolution::Other,
        };
        Self::again(conflict, choice, bytes)
    }

    /// Resolution with this choice and content.
    pub fn again(conflict: &FileConflict, choice: Resolution, bytes: Option<Vec<u8>>) -> Self {
        let count = super::hunk::hunks(&conflict.pieces).count();
        let hunks = match &bytes {
            Some(bytes) if is_text(bytes) => human_answers(&conflict.pieces, bytes),
            Some(_) | None => vec![None; count],
        };
        Self { choice, bytes, hunks }
    }

    /// Returns whether answers for each hunk give the committed file, or the committed text of each hunk where people also
    /// changed the file elsewhere. Whitespace does not count.
    pub fn agree_with_hunks(&self, conflict: &FileConflict, answers: &[&[u8]]) -> bool {
        let result = join(&conflict.pieces, answers.iter().copied());
        let same = |(answer, human): (&&[u8], &Option<Vec<u8>>)| {
            human.as_ref().is_some_and(|human| bare(human) == bare(answer))
        };
        self.agree_with_text(&result)
            || (self.bytes.is_some() && answers.iter().zip(&self.hunks).all(same))
    }

    /// Returns whether this resolution of the whole file gives the same content, ignoring whitespace.
    pub fn agree_with_choice(&self, conflict: &FileConflict, choice: Resolution) -> bool {
        let side = match choice {
            _ if self.choice == choice => return true,
            Resolution::Ours => &conflict.ours,
            Resolution::Theirs => &conflict.theirs,
            _ => return false,
        };
        bytes_of(side).is_some_and(|bytes| self.agree_with_text(bytes))
    }

    /// Returns whether people resolved the conflict as this text of the file does, wherever the text comes from: each conflicting
    /// hunk is as people committed it. A text that is not git's merge outside of the hunks must be the committed file.
    /// Whitespace does not count.
    pub fn agree_with_file(&self, conflict: &FileConflict, text: &[u8]) -> bool {
        if self.agree_with_text(text) {
            return true;
        }
        let given: Option<Vec<Vec<u8>>> =
            human_answers(&conflict.pieces, text).into_iter().collect();
        let Some(given) = given.filter(|given| !given.is_empty()) else { return false };
        let answers: Vec<&[u8]> = given.iter().map(Vec::as_slice).collect();
        let is_merge_elsewhere =
            bare(&join(&conflict.pieces, answers.iter().copied())) == bare(text);
        is_merge_elsewhere && self.agree_with_hunks(conflict, &answers)
    }

    /// Returns whether people committed this text as the whole file, ignoring whitespace.
    pub fn agree_with_text(&self, text: &[u8]) -> bool {
        self.bytes.as_ref().is_some_and(|bytes| bare(bytes) == bare(text))
    }
}

/// Numbers of context lines that are tried to locate a hunk.
const CONTEXT: [usize; 4] = [8, 3, 2, 1];
/// Lines that an answer may have beyond those of all versions together.
const SLACK: usize = 30;

/// Committed text in place of each hunk; `None` where it cannot be located.
pub fn human_answers(pieces: &[FilePiece], human: &[u8]) -> Vec<Option<Vec<u8>>> {
    let file = lines(human);
    let mut from = 0;
    let mut found = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let FilePiece::Hunk(hunk) = piece else { continue };
        let is_last = at + 2 == pieces.len();
        let most = hunk.versions().map(|side| lines(side).len());
        let range = place(&file, merged(pieces, at - 1), merged(pieces, at + 1), from, is_last)
            .filter(|range| range.len() <= most.iter().sum::<usize>() + SLACK);
        from = range.as_ref().map_or(from, |range| range.end);
        found.push(range.map(|range| file[range].concat()));
    }
    found
}

fn merged(pieces: &[FilePiece], at: usize) -> &[u8] {
    match pieces.get(at) {
        Some(FilePiece::Merged(bytes)) => bytes,
        Some(FilePiece::Hunk(_)) | None => &[],
    }
}

/// Locates the range between the context before and the context after a hunk.
fn place(
    file: &[&[u8]],
    before: &[u8],
    after: &[u8],
    from: usize,
    is_last: bool,
) -> Option<Range<usize>> {
    let (before, after) = (lines(before), lines(after));
    let start = if before.is_empty() {
        from
    } else {
        contexts(before.len()).find_map(|count| {
            find(file, &before[before.len() - count..], from).map(|at| at + count)
        })?
    };
    let end = if after.is_empty() {
        is_last.then_some(file.len())?
    } else {
        contexts(after.len()).find_map(|count| find(file, &after[..count], start))?
    };
    Some(start..end)
}

fn contexts(len: usize) -> impl Iterator<Item = usize> {
    let first = CONTEXT[0].min(len);
    std::iter::once(first).chain(CONTEXT[1..].iter().copied().filter(move |&count| count <= len))
}

fn find(file: &[&[u8]], wanted: &[&[u8]], from: usize) -> Option<usize> {
    let rest = file.get(from..)?;
    rest.windows(wanted.len()).position(|window| window == wanted).map(|at| at + from)
}

#[cfg(test)]
mod tests {
    use model::id::Sha;

    use super::*;
    use crate::clean::ConflictKind;
    use crate::path::TreePath;

    /// Lines of context that no hunk touches.
    const TOP: &str = "one\ntwo\nthree\nfour\n";
    const END: &str = "six\nseven\neight\nnine\n";

    fn file(middle: &str) -> String {
        format!("{TOP}{middle}\n{END}")
    }

    fn conflict() -> FileConflict {
        let version = |digit: &str, middle: &str| {
            Some(FileVersion {
                mode: 0o100_644,
                id: Sha::parse(&digit.repeat(40)).unwrap(),
                bytes: Some(file(middle).into_bytes()),
            })
        };
        let mut conflict = FileConflict {
            path: TreePath::new("f"),
            kind: ConflictKind::Content,
            base: version("a", "base"),
            ours: version("b", "ours"),
            theirs: version("c", "theirs"),
            pieces: Vec::new(),
        };
        conflict.cut();
        conflict
    }

    /// Returns whether a text counts as people's resolution, and whether it is the file that they committed.
    fn is_agreed(people: &str, text: &str) -> (bool, bool) {
        let conflict = conflict();
        let bytes = Some(people.as_bytes().to_vec());
        let human = HumanResolution::again(&conflict, Resolution::Other, bytes);
        let text = text.as_bytes();
        (human.agree_with_file(&conflict, text), human.agree_with_text(text))
    }

    #[test]
    fn a_text_agrees_if_each_hunk_is_as_people_committed_it() {
        let both = file("ours\ntheirs");
        assert_eq!(is_agreed(&both, &both), (true, true));
        let edited = both.replace("nine", "nine and a half");
        assert_eq!(is_agreed(&edited, &both), (true, false), "people edited another place too");
        assert_eq!(is_agreed(&both, &file("ours")), (false, false));
        assert_eq!(is_agreed(&edited, &file("ours")), (false, false));
    }

    #[test]
    fn a_text_with_edits_of_its_own_elsewhere_must_be_the_committed_file() {
        let both = file("ours\ntheirs");
        let edited = both.replace("nine", "nine and a half");
        assert_eq!(is_agreed(&both, &edited), (false, false), "people did not make that edit");
        assert_eq!(is_agreed(&edited, &edited), (true, true));
    }
}
