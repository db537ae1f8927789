//! Answers that need no history (strategies `same` and `token`), each a pure function of one hunk.
//!
//! No answer contains a token that is in none of the three versions.

use std::collections::{BTreeMap, BTreeSet};

use super::hunk::{Hunk, Side};
use crate::three::text::{bare_lines, dark_tokens, lines, tokens};
use crate::three::{Change, Touching, three_way};

/// Hunks with more lines are not analysed: the answers are too seldom right for the time they take.
const LINES_CAP: usize = 600;
/// The same for tokens, against very long lines.
const TOKENS_CAP: usize = 60_000;

/// Answers and measures of a hunk that do not depend on the fork's history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HunkAnalysis {
    /// The side with the real change, where the other one changed only whitespace.
    pub spaces: Option<Vec<u8>>,
    /// The side whose change contains the other's.
    pub contained: Option<Contained>,
    /// Merge of changes that do not touch inside the lines.
    pub apart: Option<Vec<u8>>,
    /// Merge of changes that touch, where there is no merge without touching.
    pub touching: Option<Vec<u8>>,
    /// Both insertions at the same position, in both orders.
    pub both: Option<Both>,
    pub shape: Shape,
}

/// The larger one of two changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contained {
    pub of: Side,
    pub text: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Both {
    /// Unit of the insertions: "lines" or "words".
    pub unit: &'static str,
    pub ours_first: Vec<u8>,
    pub theirs_first: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// Lines of the longest version.
    pub lines: usize,
    /// True if all versions have the same number of lines.
    pub is_level: bool,
    /// True if the changes are in different lines.
    pub parts_by_lines: bool,
    /// Tokens that the fork added or removed.
    pub changed_ours: usize,
    /// Tokens that upstream added or removed.
    pub changed_theirs: usize,
    /// Share of new words that both sides have, of the side with fewer new words.
    pub alike: f64,
}

pub fn analyze_hunk(hunk: &Hunk) -> HunkAnalysis {
    let sides = hunk.versions();
    let counts = sides.map(|side| lines(side).len());
    let mut analysis = HunkAnalysis {
        spaces: spaces(hunk),
        shape: Shape {
            lines: counts.into_iter().max().unwrap_or_default(),
            is_level: counts[0] == counts[1] && counts[1] == counts[2],
            ..Shape::default()
        },
        ..HunkAnalysis::default()
    };
    contain(hunk, &mut analysis);
    let [base, ours, theirs] = sides.map(tokens);
    if counts.iter().sum::<usize>() >= LINES_CAP
        || base.len() + ours.len() + theirs.len() >= TOKENS_CAP
    {
        return analysis;
    }
    let by_lines = sides.map(lines);
    let [base_lines, our_lines, their_lines] = by_lines.each_ref().map(Vec::as_slice);
    let parted = weave(base_lines, our_lines, their_lines, Touching::Parts, None);
    analysis.shape.parts_by_lines = parted.is_some();
    analysis.shape.alike = alike(hunk);
    analysis.apart = weave(&base, &ours, &theirs, Touching::Joins, None);
    if analysis.apart.is_none() {
        analysis.touching = weave(&base, &ours, &theirs, Touching::Parts, None);
    }
    if analysis.apart.is_none() && analysis.touching.is_none() {
        analysis.both = both([base_lines, our_lines, their_lines], "lines")
            .or_else(|| both([&base, &ours, &theirs], "words"));
    }
    analysis
}

/// Answer where one version differs from another in whitespace only.
fn spaces(hunk: &Hunk) -> Option<Vec<u8>> {
    let [base, ours, theirs] = hunk.versions().map(bare_lines);
    if ours == theirs || ours == base {
        Some(hunk.theirs.clone())
    } else if theirs == base {
        Some(hunk.ours.clone())
    } else {
        None
    }
}

type Bag<'a> = BTreeMap<&'a [u8], usize>;

fn bag(text: &[u8]) -> Bag<'_> {
    let mut bag = Bag::new();
    for token in dark_tokens(text) {
        *bag.entry(token).or_default() += 1;
    }
    bag
}

fn minus<'a>(one: &Bag<'a>, other: &Bag<'a>) -> Bag<'a> {
    let left = |(token, count): (&&'a [u8], &usize)| {
        let left = count.saturating_sub(other.get(token).copied().unwrap_or_default());
        (left > 0).then_some((*token, left))
    };
    one.iter().filter_map(left).collect()
}

/// Finds a side that made every change of the other one.
fn contain(hunk: &Hunk, analysis: &mut HunkAnalysis) {
    let [base, ours, theirs] = hunk.versions().map(bag);
    let (new_ours, gone_ours) = (minus(&ours, &base), minus(&base, &ours));
    let (new_theirs, gone_theirs) = (minus(&theirs, &base), minus(&base, &theirs));
    let count = |one: &Bag<'_>, other: &Bag<'_>| one.values().chain(other.values()).sum();
    analysis.shape.changed_ours = count(&new_ours, &gone_ours);
    analysis.shape.changed_theirs = count(&new_theirs, &gone_theirs);
    let within = |new: &Bag<'_>, gone: &Bag<'_>, all_new: &Bag<'_>, all_gone: &Bag<'_>| {
        minus(new, all_new).is_empty() && minus(gone, all_gone).is_empty()
    };
    if within(&new_ours, &gone_ours, &new_theirs, &gone_theirs) {
        analysis.contained = Some(Contained { of: Side::Theirs, text: hunk.theirs.clone() });
    } else if within(&new_theirs, &gone_theirs, &new_ours, &gone_ours) {
        analysis.contained = Some(Contained { of: Side::Ours, text: hunk.ours.clone() });
    }
}

/// Share of common new words: sides with the same new words made the same kind of change.
fn alike(hunk: &Hunk) -> f64 {
    let words = |text: &[u8]| -> BTreeSet<Vec<u8>> {
        let is_word = |word: &&[u8]| word.len() > 2 && word[0].is_ascii_alphabetic();
        dark_tokens(text).filter(is_word).map(<[u8]>::to_vec).collect()
    };
    let base = words(&hunk.base);
    let (ours, theirs) = (&words(&hunk.ours) - &base, &words(&hunk.theirs) - &base);
    let fewer = ours.len().min(theirs.len()).max(1);
    ratio((&ours & &theirs).len(), fewer)
}

#[expect(clippy::cast_precision_loss, reason = "counts of words are far below 2^52")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

fn both([base, ours, theirs]: [&[&[u8]]; 3], unit: &'static str) -> Option<Both> {
    let woven = |first| weave(base, ours, theirs, Touching::Parts, Some(first));
    let (ours_first, theirs_first) = (woven(Side::Ours)?, woven(Side::Theirs)?);
    Some(Both { unit, ours_first, theirs_first })
}

/// Applies the changes of both sides; `None` if they collide. Two insertions at the same position collide unless `first`
/// gives the order.
fn weave(
    base: &[&[u8]],
    ours: &[&[u8]],
    theirs: &[&[u8]],
    touching: Touching,
    first: Option<Side>,
) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    for region in three_way(base, ours, theirs, touching) {
        let [from_base, from_ours, from_theirs] =
            [&base[region.base], &ours[region.ours], &theirs[region.theirs]].map(<[_]>::concat);
        match (region.change, first) {
            (Change::None, _) => text.extend(from_base),
            (Change::Ours | Change::Same, _) => text.extend(from_ours),
            (Change::Theirs, _) => text.extend(from_theirs),
            (Change::Conflict, Some(first)) if from_base.is_empty() => {
                let (one, other) = match first {
                    Side::Ours => (from_ours, from_theirs),
                    Side::Theirs => (from_theirs, from_ours),
                };
                text.extend(one);
                text.extend(other);
            }
            (Change::Conflict, _) => return None,
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(base: &str, ours: &str, theirs: &str) -> Hunk {
        Hunk { base: base.into(), ours: ours.into(), theirs: theirs.into() }
    }

    fn shown(text: Option<&Vec<u8>>) -> Option<String> {
        text.map(|text| String::from_utf8_lossy(text).into_owned())
    }

    #[test]
    fn changes_apart_inside_a_line_are_both_made() {
        let analysis = analyze_hunk(&hunk("f(a, b)\n", "f(x, b)\n", "f(a, y)\n"));
        assert_eq!(shown(analysis.apart.as_ref()).unwrap(), "f(x, y)\n");
        assert_eq!((analysis.shape.changed_ours, analysis.shape.changed_theirs), (2, 2));
        assert!(analysis.shape.is_level && !analysis.shape.parts_by_lines);
    }

    #[test]
    fn changes_that_touch_are_an_answer_of_their_own() {
        let analysis = analyze_hunk(&hunk("use a, b3\n", "use a, b3, mine\n", "use a, b4\n"));
        assert_eq!(analysis.apart, None);
        assert_eq!(shown(analysis.touching.as_ref()).unwrap(), "use a, b4, mine\n");
    }

    #[test]
    fn insertions_at_one_place_come_in_both_orders() {
        let both = analyze_hunk(&hunk("", "one\n", "two\n")).both.unwrap();
        assert_eq!((both.unit, both.ours_first.as_slice()), ("lines", &b"one\ntwo\n"[..]));
        assert_eq!(both.theirs_first, b"two\none\n");
        let both = analyze_hunk(&hunk("use a\n", "use a, b\n", "use a, c\n")).both.unwrap();
        assert_eq!((both.unit, both.ours_first.as_slice()), ("words", &b"use a, b, c\n"[..]));
    }

    #[test]
    fn whitespace_and_contained_edits_are_seen() {
        let analysis = analyze_hunk(&hunk("a b\n", "a  b\n", "a c\n"));
        assert_eq!(shown(analysis.spaces.as_ref()).unwrap(), "a c\n");
        let analysis = analyze_hunk(&hunk("a\n", "a\nb\n", "a\nb\nc\n"));
        assert_eq!(analysis.contained.unwrap().of, Side::Theirs);
    }

    #[test]
    fn a_very_long_hunk_is_not_analysed() {
        let long = "word ".repeat(TOKENS_CAP);
        let analysis = analyze_hunk(&hunk("a\n", &long, "b\n"));
        assert_eq!((analysis.apart, analysis.touching, analysis.both), (None, None, None));
    }
}
