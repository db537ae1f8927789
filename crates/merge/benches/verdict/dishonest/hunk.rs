//! Hunks of a side that the result has, and where in the result they are.

use std::ops::Range;

use merge::three::text::lines;
use merge::three::{Change, Touching, three_way};

use super::file::MergeFile;
use super::{MergePart, Place};

/// Lines of the result that come from a side, and what stands there if the side's change is dropped.
#[derive(Clone, Debug)]
pub(crate) struct KeptHunk {
    pub(crate) side: MergePart,
    pub(crate) place: Place,
    pub(crate) result: Range<usize>,
    pub(crate) without: Vec<u8>,
}

/// Hunks of both sides that a file of the result has. A file that only one side has is one hunk of that side.
pub(crate) fn kept_hunks(file: &MergeFile) -> Vec<KeptHunk> {
    let (Some(base), Some(fork), Some(upstream)) = (&file.base, &file.fork, &file.upstream) else {
        return Vec::new();
    };
    let texts = Texts {
        base: lines(base),
        fork: lines(fork),
        upstream: lines(upstream),
        result: lines(&file.result),
    };
    let mut found = Vec::new();
    let regions = three_way(&texts.base, &texts.fork, &texts.upstream, Touching::Joins);
    // The file with the fork's version, and with upstream's version, of each region in conflict.
    let (mut of_fork, mut of_upstream) = (Vec::new(), Vec::new());
    let mut inside = Vec::new();
    for region in regions {
        let base = &texts.base[region.base.clone()];
        let (ours, theirs) =
            (&texts.fork[region.ours.clone()], &texts.upstream[region.theirs.clone()]);
        let begun = [of_fork.len(), of_upstream.len()];
        let taken = match region.change {
            Change::None => base,
            Change::Ours | Change::Same => ours,
            Change::Theirs => theirs,
            Change::Conflict => &[],
        };
        of_fork.extend_from_slice(taken);
        of_upstream.extend_from_slice(taken);
        match region.change {
            Change::None | Change::Same => {}
            Change::Ours => {
                let range = exact_range(&texts.fork, &texts.result, &region.ours);
                found.extend(texts.outside(MergePart::Fork, range, base));
            }
            Change::Theirs => {
                let range = exact_range(&texts.upstream, &texts.result, &region.theirs);
                found.extend(texts.outside(MergePart::Upstream, range, base));
            }
            Change::Conflict => {
                of_fork.extend_from_slice(ours);
                of_upstream.extend_from_slice(theirs);
                inside.push((begun, ours.to_vec(), theirs.to_vec(), base.to_vec()));
            }
        }
    }
    if file.in_conflict {
        for (begun, ours, theirs, base) in inside {
            let sides = [
                (MergePart::Upstream, &of_fork, begun[0], &ours, &theirs),
                (MergePart::Fork, &of_upstream, begun[1], &theirs, &ours),
            ];
            for (side, text, start, kept, dropped) in sides {
                let range = wide_range(text, &texts.result, start..start + kept.len());
                let is_own = |line: &&[u8]| {
                    has_words(line)
                        && dropped.contains(line)
                        && !kept.contains(line)
                        && !base.contains(line)
                };
                let has_own = texts.result[range.clone()].iter().any(is_own);
                let without = kept.concat();
                if has_own && texts.result[range.clone()].concat() != without {
                    found.push(KeptHunk { side, place: Place::Inside, result: range, without });
                }
            }
        }
    }
    found
}

struct Texts<'a> {
    base: Vec<&'a [u8]>,
    fork: Vec<&'a [u8]>,
    upstream: Vec<&'a [u8]>,
    result: Vec<&'a [u8]>,
}

impl Texts<'_> {
    /// A hunk without words, such as an empty line, is no work that could be dropped.
    fn outside(
        &self,
        side: MergePart,
        range: Option<Range<usize>>,
        base: &[&[u8]],
    ) -> Option<KeptHunk> {
        let range = range?;
        let (before, after) = (dark(base), dark(&self.result[range.clone()]));
        let has_words = base.iter().chain(&self.result[range.clone()]).any(|line| has_words(line));
        (has_words && before != after).then(|| KeptHunk {
            side,
            place: Place::Outside,
            result: range,
            without: base.concat(),
        })
    }
}

/// Lines without blanks at their ends; the sorted order leaves moves out, which the lines do not show.
fn dark(lines: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = lines
        .iter()
        .map(|line| line.trim_ascii().to_vec())
        .filter(|line| !line.is_empty())
        .collect();
    found.sort();
    found
}

pub(crate) fn has_words(line: &[u8]) -> bool {
    line.iter().any(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
}

/// Edits that make one text of another: ranges of both.
fn edits(from: &[&[u8]], to: &[&[u8]]) -> Vec<(Range<usize>, Range<usize>)> {
    let regions = three_way(from, to, from, Touching::Joins).into_iter();
    let changed = regions.filter(|region| region.change == Change::Ours);
    changed.map(|region| (region.base, region.ours)).collect()
}

/// Where a range of one text is in another, if its lines are there as they were.
fn exact_range(from: &[&[u8]], to: &[&[u8]], range: &Range<usize>) -> Option<Range<usize>> {
    let mut shift = 0_isize;
    for (old, new) in edits(from, to) {
        if old.end < range.start {
            shift += new.len() as isize - old.len() as isize;
        } else if old.start <= range.end {
            return None;
        }
    }
    let start = range.start.checked_add_signed(shift)?;
    Some(start..start + range.len())
}

/// Where a range of one text is in another, with the changes that touch it.
fn wide_range(from: &[&[u8]], to: &[&[u8]], range: Range<usize>) -> Range<usize> {
    let shifted = |at: usize, by: isize| at.saturating_add_signed(by);
    let mut before = 0_isize;
    let (mut start, mut within) = (None, 0_isize);
    for (old, new) in edits(from, to) {
        let grown = new.len() as isize - old.len() as isize;
        if old.end < range.start {
            before += grown;
        } else if old.start <= range.end {
            start.get_or_insert(new.start.min(shifted(range.start, before)));
            within += grown;
        }
    }
    let start = start.unwrap_or_else(|| shifted(range.start, before)).min(to.len());
    let end = shifted(range.end, before + within).clamp(start, to.len());
    start..end
}
