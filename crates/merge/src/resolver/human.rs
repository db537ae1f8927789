//! What people made of a conflict, read off the file that they committed.

use std::ops::Range;

use host::git::TreeEntry;

use super::conflict::{FileConflict, FileVersion};
use super::habit::Resolution;
use super::hunk::{FilePiece, join};
use crate::three::text::{bare, is_text, lines};

/// What people committed at the path of a dispute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HumanResolution {
    /// Which side it is, if it is one.
    pub choice: Resolution,
    /// The content, unless there is none or it is larger than we read.
    pub bytes: Option<Vec<u8>>,
    /// What they put where each hunk was; none where that cannot be told.
    pub hunks: Vec<Option<Vec<u8>>>,
}

impl HumanResolution {
    /// Reads it off the entry and the content that their commit has at the path.
    #[must_use]
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
        let count = super::hunk::hunks(&conflict.pieces).count();
        let hunks = match &bytes {
            Some(bytes) if is_text(bytes) => human_answers(&conflict.pieces, bytes),
            Some(_) | None => vec![None; count],
        };
        Self { choice, bytes, hunks }
    }

    /// Compares a file that was resolved hunk by hunk.
    #[must_use]
    pub fn agree_with_hunks(&self, conflict: &FileConflict, answers: &[&[u8]]) -> Agreement {
        let result = join(&conflict.pieces, answers.iter().copied());
        let whole = compare(Some(&result), self.bytes.as_deref());
        if whole.holds() || self.bytes.is_none() {
            return whole;
        }
        let same = |(answer, human): (&&[u8], &Option<Vec<u8>>)| {
            human.as_ref().is_some_and(|human| bare(human) == bare(answer))
        };
        if answers.iter().zip(&self.hunks).all(same) { Agreement::Hunks } else { Agreement::No }
    }
}

/// How a result compares with what people committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The same bytes, or both deleted it.
    Exact,
    /// The same but for whitespace.
    Spaces,
    /// Every hunk is the same; people also edited elsewhere in the file.
    Hunks,
    /// It differs, or nobody can tell.
    No,
}

impl Agreement {
    /// Whether it counts as agreement.
    #[must_use]
    pub fn holds(self) -> bool {
        self != Self::No
    }
}

/// Compares a whole file; none is a file that is gone.
#[must_use]
pub fn compare(result: Option<&[u8]>, human: Option<&[u8]>) -> Agreement {
    match (result, human) {
        (None, None) => Agreement::Exact,
        (Some(result), Some(human)) if result == human => Agreement::Exact,
        (Some(result), Some(human)) if bare(result) == bare(human) => Agreement::Spaces,
        _ => Agreement::No,
    }
}

/// How many lines around a hunk are tried to find its place.
const CONTEXT: [usize; 4] = [8, 3, 2, 1];
/// How many lines more than all sides together an answer may have.
const SLACK: usize = 30;

/// What people put where each hunk was; none where that cannot be told.
#[must_use]
pub fn human_answers(pieces: &[FilePiece], human: &[u8]) -> Vec<Option<Vec<u8>>> {
    let file = lines(human);
    let mut from = 0;
    let mut found = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let FilePiece::Hunk(hunk) = piece else { continue };
        let is_last = at + 2 == pieces.len();
        let most = [&hunk.base, &hunk.ours, &hunk.theirs].map(|side| lines(side).len());
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

/// Between the end of what comes before and the start of what comes after.
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
