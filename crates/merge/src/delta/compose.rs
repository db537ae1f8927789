//! Versions of a file between upstream's and the fork's, with some of the fork's changes. Pure.

use super::{DeltaFile, DeltaHunk, FileContent, LineOrigin};
use crate::three::text::lines;

/// Makes the version of a file that has only those changed lines whose origins are wanted.
pub(super) fn compose(
    hunks: &[DeltaHunk],
    before: &[u8],
    after: &[u8],
    wanted: impl Fn(LineOrigin) -> bool,
) -> Vec<u8> {
    let (before, after) = (lines(before), lines(after));
    let mut made: Vec<&[u8]> = Vec::new();
    let mut at = 0;
    for hunk in hunks {
        made.extend(&before[at..hunk.before.start]);
        let kept = hunk.before.clone().zip(&hunk.removed).filter(|(_, origin)| !wanted(**origin));
        made.extend(kept.map(|(line, _)| before[line]));
        let added = hunk.after.clone().zip(&hunk.added).filter(|(_, origin)| wanted(**origin));
        made.extend(added.map(|(line, _)| after[line]));
        at = hunk.before.end;
    }
    made.extend(&before[at..]);
    join(&made)
}

/// Joins lines. One without an end that is no longer the last gets one, as every line between others has one.
fn join(made: &[&[u8]]) -> Vec<u8> {
    let mut text = Vec::with_capacity(made.iter().map(|line| line.len() + 1).sum());
    for (number, line) in made.iter().enumerate() {
        text.extend_from_slice(line);
        if number + 1 < made.len() && !line.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    text
}

impl DeltaFile {
    /// The places that differ; none for a file without lines.
    pub(super) fn hunks(&self) -> &[DeltaHunk] {
        match &self.content {
            FileContent::Text(hunks) => hunks,
            FileContent::Whole | FileContent::Unread => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &[u8] = b"a\nold\nb\nc\n";
    const AFTER: &[u8] = b"a\nnew\nnewer\nb\nc\nend";

    fn hunks() -> [DeltaHunk; 2] {
        let [one, two] = [0, 1].map(LineOrigin::Commit);
        [
            DeltaHunk { before: 1..2, after: 1..3, removed: vec![one], added: vec![one, two] },
            DeltaHunk { before: 4..4, after: 5..6, removed: vec![], added: vec![two] },
        ]
    }

    #[track_caller]
    fn check(wanted: &[usize], expected: &[u8]) {
        let wanted: Vec<LineOrigin> = wanted.iter().copied().map(LineOrigin::Commit).collect();
        let made = compose(&hunks(), BEFORE, AFTER, |origin| wanted.contains(&origin));
        assert_eq!(String::from_utf8_lossy(&made), String::from_utf8_lossy(expected));
    }

    #[test]
    fn a_version_has_the_lines_of_the_wanted_changes_alone() {
        check(&[], BEFORE);
        check(&[0], b"a\nnew\nb\nc\n");
        check(&[1], b"a\nold\nnewer\nb\nc\nend");
        check(&[0, 1], AFTER);
    }
}
