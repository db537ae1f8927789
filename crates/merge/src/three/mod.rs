//! Three-way merging of sequences: of lines for files, of tokens for hunks.
//!
//! As in git, changes of the two sides that neither overlap nor touch are both applied, and the others conflict.

pub mod text;

use std::hash::Hash;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, Interner, Token};

/// Corresponding ranges of the three sequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    pub change: Change,
    pub base: Range<usize>,
    pub ours: Range<usize>,
    pub theirs: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Neither side.
    None,
    Ours,
    Theirs,
    /// Both sides, in the same way.
    Same,
    /// Both sides, differently.
    Conflict,
}

/// Treatment of changes that touch without overlapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touching {
    /// One region, as in git.
    Joins,
    /// Two regions, unless both insert at the same position. An insertion before a range that the other side changes
    /// comes first.
    Parts,
}

/// Splits three sequences into regions, in order and without gaps.
pub fn three_way<T: Hash + Eq + Copy>(
    base: &[T],
    ours: &[T],
    theirs: &[T],
    touching: Touching,
) -> Vec<Region> {
    let mut interner = Interner::new(base.len() + ours.len() + theirs.len());
    let mut ids = |items: &[T]| items.iter().map(|&item| interner.intern(item)).collect::<Vec<_>>();
    let (before, after_ours, after_theirs) = (ids(base), ids(ours), ids(theirs));
    let mut input = InternedInput { before, after: after_ours, interner };
    let changes_ours = changes(&input);
    let ids_ours = std::mem::replace(&mut input.after, after_theirs);
    let changes_theirs = changes(&input);
    let walk = Walk { ours: &ids_ours, theirs: &input.after, touching };
    walk.regions(input.before.len(), &changes_ours, &changes_theirs)
}

/// A range of one sequence and what stands in its place in the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub before: Range<usize>,
    pub after: Range<usize>,
}

/// The edits that turn one sequence into the other, in order.
pub fn edits<T: Hash + Eq + Copy>(before: &[T], after: &[T]) -> Vec<Edit> {
    let mut interner = Interner::new(before.len() + after.len());
    let mut ids = |items: &[T]| items.iter().map(|&item| interner.intern(item)).collect::<Vec<_>>();
    let (before, after) = (ids(before), ids(after));
    changes(&InternedInput { before, after, interner })
}

fn changes<T: Hash + Eq>(input: &InternedInput<T>) -> Vec<Edit> {
    let mut diff = Diff::compute(Algorithm::Histogram, input);
    diff.postprocess_no_heuristic(input);
    let wide = |range: Range<u32>| range.start as usize..range.end as usize;
    diff.hunks().map(|hunk| Edit { before: wide(hunk.before), after: wide(hunk.after) }).collect()
}

struct Walk<'a> {
    ours: &'a [Token],
    theirs: &'a [Token],
    touching: Touching,
}

impl Walk<'_> {
    /// End of a group before any edit was taken into it.
    fn first_end(&self, (start, end): (usize, usize)) -> usize {
        match self.touching {
            Touching::Joins => start,
            Touching::Parts => end,
        }
    }

    fn regions(&self, base_len: usize, ours: &[Edit], theirs: &[Edit]) -> Vec<Region> {
        let (mut ours, mut theirs) = (EditCursor::new(ours), EditCursor::new(theirs));
        let mut regions = Vec::new();
        let mut at = 0;
        while let Some(first) = [ours.next(), theirs.next()].into_iter().flatten().min() {
            push_quiet(&mut regions, at..first.0, &ours, &theirs);
            let mut group = first.0..self.first_end(first);
            let (from_ours, from_theirs) = (ours.taken, theirs.taken);
            while ours.take(&mut group, self.touching) || theirs.take(&mut group, self.touching) {}
            let change = match (ours.taken > from_ours, theirs.taken > from_theirs) {
                (true, false) => Change::Ours,
                (false, _) => Change::Theirs,
                (true, true) => Change::Conflict,
            };
            let mut region = Region {
                change,
                base: group.clone(),
                ours: ours.span(from_ours, &group),
                theirs: theirs.span(from_theirs, &group),
            };
            if change == Change::Conflict
                && self.ours[region.ours.clone()] == self.theirs[region.theirs.clone()]
            {
                region.change = Change::Same;
            }
            regions.push(region);
            at = group.end;
        }
        push_quiet(&mut regions, at..base_len, &ours, &theirs);
        regions
    }
}

/// Adds the unchanged region between two groups.
fn push_quiet(
    regions: &mut Vec<Region>,
    base: Range<usize>,
    ours: &EditCursor<'_>,
    theirs: &EditCursor<'_>,
) {
    if !base.is_empty() {
        let (ours, theirs) = (ours.moved(&base), theirs.moved(&base));
        regions.push(Region { change: Change::None, base, ours, theirs });
    }
}

/// Edits of one side and how many of them were taken.
struct EditCursor<'a> {
    edits: &'a [Edit],
    taken: usize,
}

impl<'a> EditCursor<'a> {
    fn new(edits: &'a [Edit]) -> Self {
        Self { edits, taken: 0 }
    }

    /// Start and end of the next edit in the base.
    fn next(&self) -> Option<(usize, usize)> {
        self.edits.get(self.taken).map(|edit| (edit.before.start, edit.before.end))
    }

    /// Takes the next edit into the group if it belongs there. An empty group is the position of an insertion.
    fn take(&mut self, group: &mut Range<usize>, touching: Touching) -> bool {
        let Some(edit) = self.edits.get(self.taken) else { return false };
        let joins = match touching {
            Touching::Joins => edit.before.start <= group.end,
            Touching::Parts => edit.before.start < group.end || edit.before == *group,
        };
        if !joins {
            return false;
        }
        group.end = group.end.max(edit.before.end);
        self.taken += 1;
        true
    }

    /// Range on this side of a base range behind all taken edits.
    fn moved(&self, base: &Range<usize>) -> Range<usize> {
        shift(&self.edits[..self.taken], base.start)..shift(&self.edits[..self.taken], base.end)
    }

    /// Range of a group on this side, given the number of edits taken before it.
    fn span(&self, before: usize, group: &Range<usize>) -> Range<usize> {
        shift(&self.edits[..before], group.start)..shift(&self.edits[..self.taken], group.end)
    }
}

/// Position on a side of a base position behind these edits.
fn shift(edits: &[Edit], at: usize) -> usize {
    edits.last().map_or(at, |edit| at - edit.before.end + edit.after.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(base: &str, ours: &str, theirs: &str, touching: Touching) -> String {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        let (base, ours, theirs) = (letters(base), letters(ours), letters(theirs));
        let mut text = String::new();
        for region in three_way(&base, &ours, &theirs, touching) {
            match region.change {
                Change::None => text.extend(&base[region.base]),
                Change::Ours | Change::Same => text.extend(&ours[region.ours]),
                Change::Theirs => text.extend(&theirs[region.theirs]),
                Change::Conflict => {
                    let show = |part: &[char]| part.iter().collect::<String>();
                    let (o, b) = (show(&ours[region.ours]), show(&base[region.base]));
                    text += &format!("<{o}|{b}|{}>", show(&theirs[region.theirs]));
                }
            }
        }
        text
    }

    #[track_caller]
    fn check(base: &str, ours: &str, theirs: &str, expected: &str) {
        assert_eq!(merge(base, ours, theirs, Touching::Joins), expected);
    }

    #[test]
    fn changes_apart_are_both_made() {
        check("abcdef", "aXcdef", "abcdYf", "aXcdYf");
        check("abcdef", "abcdef", "bcdef", "bcdef");
        check("abc", "abcX", "Yabc", "YabcX");
        check("", "a", "", "a");
    }

    #[test]
    fn the_same_change_is_made_once() {
        check("abc", "aXc", "aXc", "aXc");
        check("", "x", "x", "x");
        check("abc", "", "", "");
    }

    #[test]
    fn changes_that_touch_are_a_conflict() {
        check("abcd", "aXcd", "abYd", "a<Xc|bc|bY>d");
        check("ab", "aXb", "aYb", "a<X||Y>b");
        check("abc", "ac", "aXc", "a<|b|X>c");
    }

    #[test]
    fn touching_changes_can_be_told_apart() {
        let parts = |base, ours, theirs| merge(base, ours, theirs, Touching::Parts);
        assert_eq!(parts("abcd", "aXcd", "abYd"), "aXYd");
        assert_eq!(parts("abYd", "aXbd", "abcd"), "aXb<|Y|c>d");
        assert_eq!(parts("ab", "aXb", "aYb"), "a<X||Y>b");
        assert_eq!(parts("abcd", "abXYcd", "aZcd"), "aZXYcd");
        assert_eq!(parts("abcd", "aXbcd", "acd"), "aXcd");
        assert_eq!(parts("abcd", "acd", "aXbcd"), "aXcd");
        assert_eq!(parts("abcd", "aXd", "abYcd"), "a<X|bc|bYc>d");
    }

    #[test]
    fn several_changes_of_one_side_can_meet_one_of_the_other() {
        check("abcdefg", "aXcdYfg", "aZZZZZg", "a<XcdYf|bcdef|ZZZZZ>g");
    }
}
