//! Answers that need no past: rungs `same` and `token`, each a pure function of one hunk.
//!
//! No answer has a token that is in none of the three sides.

use std::collections::{BTreeMap, BTreeSet};

use super::hunk::Hunk;
use crate::three::text::{bare_lines, dark_tokens, lines, tokens};
use crate::three::{Change, Touching, three_way};

/// A hunk with more lines than this is not taken apart: what would come out is not worth the time.
const LINES_CAP: usize = 600;
/// The same for tokens, against lines without end.
const TOKENS_CAP: usize = 60_000;

/// All that can be said about a hunk without knowing the fork.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plain {
    /// The side to take when the rest is whitespace.
    pub spaces: Option<Vec<u8>>,
    /// The side whose edit contains the other's.
    pub contained: Option<Contained>,
    /// The merge of changes that lie apart inside the lines.
    pub apart: Option<Vec<u8>>,
    /// The merge of changes that may touch, where they do not lie apart.
    pub touching: Option<Vec<u8>>,
    /// What both inserted at the same place, in both orders.
    pub both: Option<Both>,
    /// What the hunk looks like.
    pub shape: Shape,
}

/// The larger one of two edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contained {
    /// Whose it is.
    pub of: Whose,
    /// The text.
    pub text: Vec<u8>,
}

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The fork's.
    Ours,
    /// Upstream's.
    Theirs,
}

/// Both insertions, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Both {
    /// Whether whole lines or parts of lines were inserted.
    pub unit: &'static str,
    /// The fork's first.
    pub ours_first: Vec<u8>,
    /// Upstream's first.
    pub theirs_first: Vec<u8>,
}

/// What a hunk looks like, in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// Lines of the longest side.
    pub lines: usize,
    /// Whether all sides have as many lines.
    pub is_level: bool,
    /// Whether the changes lie apart by whole lines.
    pub parts_by_lines: bool,
    /// Tokens that the fork added or took out.
    pub changed_ours: usize,
    /// Tokens that upstream added or took out.
    pub changed_theirs: usize,
    /// How many of the new words the sides have in common, of those of the side with fewer.
    pub alike: f64,
}

/// Looks at a hunk from all sides.
#[must_use]
pub fn look(hunk: &Hunk) -> Plain {
    let sides = [&hunk.base, &hunk.ours, &hunk.theirs];
    let counts = sides.map(|side| lines(side).len());
    let mut plain = Plain {
        spaces: spaces(hunk),
        shape: Shape {
            lines: counts.into_iter().max().unwrap_or_default(),
            is_level: counts[0] == counts[1] && counts[1] == counts[2],
            ..Shape::default()
        },
        ..Plain::default()
    };
    contain(hunk, &mut plain);
    let [base, ours, theirs] = sides.map(|side| tokens(side));
    if counts.iter().sum::<usize>() >= LINES_CAP
        || base.len() + ours.len() + theirs.len() >= TOKENS_CAP
    {
        return plain;
    }
    let by_lines = sides.map(|side| lines(side));
    let [base_lines, our_lines, their_lines] = by_lines.each_ref().map(Vec::as_slice);
    let parted = weave(base_lines, our_lines, their_lines, Touching::Parts, None);
    plain.shape.parts_by_lines = parted.is_some();
    plain.shape.alike = alike(hunk);
    plain.apart = weave(&base, &ours, &theirs, Touching::Joins, None);
    if plain.apart.is_none() {
        plain.touching = weave(&base, &ours, &theirs, Touching::Parts, None);
    }
    if plain.apart.is_none() && plain.touching.is_none() {
        plain.both = both([base_lines, our_lines, their_lines], "lines")
            .or_else(|| both([&base, &ours, &theirs], "words"));
    }
    plain
}

/// One side differs from another in whitespace only.
fn spaces(hunk: &Hunk) -> Option<Vec<u8>> {
    let [base, ours, theirs] = [&hunk.base, &hunk.ours, &hunk.theirs].map(|side| bare_lines(side));
    if ours == theirs || ours == base {
        Some(hunk.theirs.clone())
    } else if theirs == base {
        Some(hunk.ours.clone())
    } else {
        None
    }
}

/// How often each token occurs.
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

/// One side made every change that the other one made, and perhaps more.
fn contain(hunk: &Hunk, plain: &mut Plain) {
    let [base, ours, theirs] = [&hunk.base, &hunk.ours, &hunk.theirs].map(|side| bag(side));
    let (new_ours, gone_ours) = (minus(&ours, &base), minus(&base, &ours));
    let (new_theirs, gone_theirs) = (minus(&theirs, &base), minus(&base, &theirs));
    let count = |one: &Bag<'_>, other: &Bag<'_>| one.values().chain(other.values()).sum();
    plain.shape.changed_ours = count(&new_ours, &gone_ours);
    plain.shape.changed_theirs = count(&new_theirs, &gone_theirs);
    let within = |new: &Bag<'_>, gone: &Bag<'_>, all_new: &Bag<'_>, all_gone: &Bag<'_>| {
        minus(new, all_new).is_empty() && minus(gone, all_gone).is_empty()
    };
    if within(&new_ours, &gone_ours, &new_theirs, &gone_theirs) {
        plain.contained = Some(Contained { of: Whose::Theirs, text: hunk.theirs.clone() });
    } else if within(&new_theirs, &gone_theirs, &new_ours, &gone_ours) {
        plain.contained = Some(Contained { of: Whose::Ours, text: hunk.ours.clone() });
    }
}

/// Both made the same kind of change if their new words are the same.
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
    let (ours_first, theirs_first) = (woven(Whose::Ours)?, woven(Whose::Theirs)?);
    Some(Both { unit, ours_first, theirs_first })
}

/// Makes both sides' changes, if they do not collide. Two insertions at the same place collide, unless it is said
/// whose comes first.
fn weave(
    base: &[&[u8]],
    ours: &[&[u8]],
    theirs: &[&[u8]],
    touching: Touching,
    first: Option<Whose>,
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
                    Whose::Ours => (from_ours, from_theirs),
                    Whose::Theirs => (from_theirs, from_ours),
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
        let plain = look(&hunk("f(a, b)\n", "f(x, b)\n", "f(a, y)\n"));
        assert_eq!(shown(plain.apart.as_ref()).unwrap(), "f(x, y)\n");
        assert_eq!((plain.shape.changed_ours, plain.shape.changed_theirs), (2, 2));
        assert!(plain.shape.is_level && !plain.shape.parts_by_lines);
    }

    #[test]
    fn changes_that_touch_are_an_answer_of_their_own() {
        let plain = look(&hunk("use a, b3\n", "use a, b3, mine\n", "use a, b4\n"));
        assert_eq!(plain.apart, None);
        assert_eq!(shown(plain.touching.as_ref()).unwrap(), "use a, b4, mine\n");
    }

    #[test]
    fn insertions_at_one_place_come_in_both_orders() {
        let both = look(&hunk("", "one\n", "two\n")).both.unwrap();
        assert_eq!((both.unit, both.ours_first.as_slice()), ("lines", &b"one\ntwo\n"[..]));
        assert_eq!(both.theirs_first, b"two\none\n");
        let both = look(&hunk("use a\n", "use a, b\n", "use a, c\n")).both.unwrap();
        assert_eq!((both.unit, both.ours_first.as_slice()), ("words", &b"use a, b, c\n"[..]));
    }

    #[test]
    fn whitespace_and_contained_edits_are_seen() {
        let plain = look(&hunk("a b\n", "a  b\n", "a c\n"));
        assert_eq!(shown(plain.spaces.as_ref()).unwrap(), "a c\n");
        let plain = look(&hunk("a\n", "a\nb\n", "a\nb\nc\n"));
        assert_eq!(plain.contained.unwrap().of, Whose::Theirs);
    }

    #[test]
    fn a_hunk_without_end_is_not_taken_apart() {
        let long = "word ".repeat(TOKENS_CAP);
        let plain = look(&hunk("a\n", &long, "b\n"));
        assert_eq!((plain.apart, plain.touching, plain.both), (None, None, None));
    }
}
