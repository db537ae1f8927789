//! Compares the fork's lines in one file by how often each line occurs in each of four versions.
//!
//! Lines have no identity, so they are counted: lines that the fork has more often than the common ancestor were added,
//! lines that it has less often were removed. Lines that upstream added too are upstream's. Whitespace at the end of a line
//! does not count, and lines without a letter or digit (braces, empty lines) count only if the change has no others. A line
//! that is there in another place is named as moved: behind a `return` it does nothing any more.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use imara_diff::{Algorithm, Diff, InternedInput};

use crate::three::text::uncommented;

/// Most lines that are compared word by word.
const MOST_COMPARED: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineId(u64);

impl LineId {
    /// Id of a line; `None` if it has no letter or digit.
    pub fn of(line: &[u8]) -> Option<Self> {
        let line = line.trim_ascii_end();
        has_words(line).then(|| Self::any(line))
    }

    /// Id of any line; blanks at its end do not count if the caller cuts them off.
    pub(crate) fn any(line: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Four versions of a file; a missing one is empty.
#[derive(Clone, Copy, Debug)]
pub struct Versions<'a> {
    pub ancestor: &'a [u8],
    pub fork: &'a [u8],
    pub upstream: &'a [u8],
    pub result: &'a [u8],
}

/// Counts of the fork's lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineFacts {
    /// Lines that only the fork added or removed.
    pub own: usize,
    /// Those that the result keeps.
    pub held: usize,
    /// Added lines that upstream added too.
    pub shared_count: usize,
    /// Lines that the fork removed and upstream removed or rewrote.
    pub contested: usize,
    /// Added lines that are in the result.
    pub kept: BTreeSet<LineId>,
    /// Those of them that the result has in another place.
    pub moved: BTreeSet<LineId>,
    /// Added lines that upstream has too.
    pub shared: BTreeSet<LineId>,
    /// Added lines that are in the result only in a similar form that neither side has.
    pub adapted: BTreeSet<LineId>,
    /// Added lines that are lost.
    pub missing: BTreeSet<LineId>,
    /// The fork's version differs from the ancestor in empty lines alone.
    pub only_empty: bool,
}

pub fn count_lines(versions: Versions<'_>) -> LineFacts {
    let mut counts: BTreeMap<&[u8], Count> = BTreeMap::new();
    let Versions { ancestor, fork, upstream, result } = versions;
    for (side, text) in [ancestor, fork, upstream, result].into_iter().enumerate() {
        for line in text.split(|&byte| byte == b'\n') {
            counts.entry(line.trim_ascii_end()).or_default().0[side] += 1;
        }
    }
    let tells = |line: &[u8], count: &Count| has_words(line) && count.is_forks();
    let some_tell = counts.iter().any(|(line, count)| tells(line, count));
    let mut facts = LineFacts::default();
    let mut gone = Vec::new();
    for (&line, count) in &counts {
        if count.is_forks() && (!some_tell || has_words(line)) {
            let missing = note(&mut facts, line, count);
            gone.extend(missing.then_some(line));
        }
    }
    sort_out_gone(&mut facts, &gone, &counts);
    facts.moved = find_moved(fork, result, &facts.kept);
    let [one, other] = [ancestor, fork].map(|text| {
        let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
        lines.filter(|line| !line.is_empty())
    });
    facts.only_empty = !some_tell && one.eq(other);
    facts
}

/// Finds lines of the fork that the result has, but not between the same other lines as the fork. The other lines are
/// those that a diff of both without the fork's lines leaves in place.
fn find_moved(fork: &[u8], result: &[u8], kept: &BTreeSet<LineId>) -> BTreeSet<LineId> {
    if kept.is_empty() {
        return BTreeSet::new();
    }
    let [fork, result] = [fork, result].map(|text| Placed::read(text, kept));
    let mut input = InternedInput::default();
    input.update_before(fork.others.iter().map(|(_, line)| *line));
    input.update_after(result.others.iter().map(|(_, line)| *line));
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let stays = |placed: &Placed<'_>, is_changed: &dyn Fn(u32) -> bool| -> Vec<usize> {
        let others = (0_u32..).zip(&placed.others).filter(|(at, _)| !is_changed(*at));
        others.map(|(_, (place, _))| *place).collect()
    };
    let before = stays(&fork, &|at| diff.is_removed(at));
    let after = stays(&result, &|at| diff.is_added(at));
    let mut places: BTreeMap<LineId, Vec<usize>> = BTreeMap::new();
    for (place, id) in &result.own {
        places.entry(*id).or_default().push(*place);
    }
    let mut moved = BTreeSet::new();
    for (place, id) in &fork.own {
        // The neighbours that stay, and where the result has them.
        let next = before.partition_point(|other| other < place);
        let first = next.checked_sub(1).and_then(|at| after.get(at)).copied();
        let last = after.get(next).copied();
        let is_between =
            |at: usize| first.is_none_or(|first| first < at) && last.is_none_or(|last| at < last);
        if !result.own.iter().any(|(at, other)| other == id && is_between(*at)) {
            moved.insert(*id);
        }
    }
    moved
}

/// Lines of a text by their places: the fork's, and those others that have words.
struct Placed<'a> {
    own: Vec<(usize, LineId)>,
    others: Vec<(usize, &'a [u8])>,
}

impl<'a> Placed<'a> {
    fn read(text: &'a [u8], kept: &BTreeSet<LineId>) -> Self {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (at, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii_end();
            let id = LineId::any(line);
            if kept.contains(&id) {
                own.push((at, id));
            } else if has_words(line) {
                others.push((at, line));
            }
        }
        Self { own, others }
    }
}

/// Occurrences of a line in ancestor, fork, upstream and result.
#[derive(Default)]
struct Count([usize; 4]);

impl Count {
    fn is_forks(&self) -> bool {
        self.0[0] != self.0[1]
    }

    /// Returns whether the result has the line more often than either side.
    fn is_new(&self) -> bool {
        let [ancestor, fork, upstream, result] = self.0;
        result > ancestor.max(fork).max(upstream)
    }
}

/// Adds one line to the facts. Returns whether an added line is missing.
fn note(facts: &mut LineFacts, line: &[u8], count: &Count) -> bool {
    let [ancestor, fork, upstream, result] = count.0;
    if fork < ancestor {
        let taken_out = ancestor - fork;
        let contested = taken_out.min(ancestor.saturating_sub(upstream));
        let own = taken_out - contested;
        facts.contested += contested;
        facts.own += own;
        facts.held += own.min(upstream.saturating_sub(result));
        return false;
    }
    let added = fork - ancestor;
    let in_both = added.min(upstream.saturating_sub(ancestor));
    // Lines of both sides that the result lacks are lost as well.
    let shared = in_both - in_both.min(upstream.saturating_sub(result));
    let own = added - shared;
    let held = own.min(result.saturating_sub(upstream));
    facts.own += own;
    facts.held += held;
    facts.shared_count += shared;
    if held > 0 {
        facts.kept.insert(LineId::any(line));
    } else if shared > 0 {
        facts.shared.insert(LineId::any(line));
    }
    own > held && held + shared == 0
}

/// Sorts missing lines into adapted ones, which resemble a new line of the result, and lost ones.
fn sort_out_gone(facts: &mut LineFacts, gone: &[&[u8]], counts: &BTreeMap<&[u8], Count>) {
    let new = counts.iter().filter(|(_, count)| count.is_new()).map(|(&line, _)| line);
    let new: Vec<_> =
        new.take(MOST_COMPARED).map(|line| (words_of(line), uncommented(line))).collect();
    for (at, line) in gone.iter().enumerate() {
        let words = words_of(line);
        let bare = line.trim_ascii();
        let is_commented = new.iter().any(|(_, comment)| *comment == Some(bare));
        let is_adapted = at < MOST_COMPARED
            && !is_commented
            && new.iter().any(|(other, comment)| {
                // A comment does not do what a line of code did.
                (comment.is_none() || uncommented(line).is_some()) && are_alike(&words, other)
            });
        let list = if is_adapted { &mut facts.adapted } else { &mut facts.missing };
        list.insert(LineId::any(line));
    }
}

/// Returns whether half of the words of both lines are the same.
fn are_alike(one: &BTreeSet<&[u8]>, other: &BTreeSet<&[u8]>) -> bool {
    let common = one.intersection(other).count();
    common > 0 && 4 * common >= one.len() + other.len()
}

fn words_of(line: &[u8]) -> BTreeSet<&[u8]> {
    line.split(|&byte| !is_of_word(byte)).filter(|word| !word.is_empty()).collect()
}

fn has_words(line: &[u8]) -> bool {
    line.iter().copied().any(is_of_word)
}

/// Bytes beyond ASCII are parts of letters.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks (own, held, shared, adapted, missing).
    #[track_caller]
    fn check(
        [ancestor, fork, upstream, result]: [&str; 4],
        expected: (usize, usize, usize, usize, usize),
    ) -> LineFacts {
        let [ancestor, fork, upstream, result] =
            [ancestor, fork, upstream, result].map(str::as_bytes);
        let facts = count_lines(Versions { ancestor, fork, upstream, result });
        let (adapted, missing) = (facts.adapted.len(), facts.missing.len());
        assert_eq!((facts.own, facts.held, facts.shared_count, adapted, missing), expected);
        facts
    }

    #[test]
    fn lines_in_the_result_are_held() {
        check(["a\n", "a\nb\nc\n", "x\na\n", "x\na\nb\nc\n"], (2, 2, 0, 0, 0));
        check(["a\n", "a\nb\nc\n", "x\na\n", "x\na\nb\n"], (2, 1, 0, 0, 1));
        check(["a\n", "a\nb\nc\n", "x\na\n", "x\na\n"], (2, 0, 0, 0, 2));
    }

    #[test]
    fn lines_in_another_place_are_moved() {
        let (ancestor, fork) = ("f:\n read\n return\ng:\n", "f:\n guard\n read\n return\ng:\n");
        let upstream = "f:\n open\n read\n return\ng:\n";
        let moved = |result: &str, held: usize| {
            check([ancestor, fork, upstream, result], (1, held, 0, 0, 1 - held)).moved.len()
        };
        assert_eq!(moved("f:\n guard\n open\n read\n return\ng:\n", 1), 0);
        assert_eq!(moved("f:\n open\n guard\n read\n return\ng:\n", 1), 0);
        assert_eq!(moved("f:\n open\n read\n return\n guard\ng:\n", 1), 1);
        assert_eq!(moved("f:\n open\n read\n return\ng:\n", 0), 0);
    }

    #[test]
    fn what_upstream_added_too_is_upstreams() {
        check(["a\n", "a\nb\n", "a\nb\nx\n", "a\nb\nx\n"], (0, 0, 1, 0, 0));
        check(["a\n", "a\nb\n", "a\nb\nx\n", "a\nx\n"], (1, 0, 0, 0, 1));
    }

    #[test]
    fn a_line_that_was_taken_out_may_come_back() {
        check(["a\nb\n", "a\n", "a\nb\nc\n", "a\nc\n"], (1, 1, 0, 0, 0));
        check(["a\nb\n", "a\n", "a\nb\nc\n", "a\nb\nc\n"], (1, 0, 0, 0, 0));
        let facts = check(["a\nb1\n", "a\n", "a\nb2\n", "a\nb2\n"], (0, 0, 0, 0, 0));
        assert_eq!(facts.contested, 1);
    }

    #[test]
    fn upstream_having_the_same_line_elsewhere_hides_no_loss() {
        let ancestor = "fn a() {\n}\n";
        let fork = "fn a() {\n}\nfn b() {\n}\n";
        let upstream = "fn a() {\n}\nfn c() {\n}\n";
        check([ancestor, fork, upstream, upstream], (1, 0, 0, 0, 1));
    }

    #[test]
    fn a_likeness_that_only_the_result_has_is_an_adaptation() {
        let (ancestor, fork) = ("timeout = 30\n", "timeout = 60\n");
        check([ancestor, fork, "deadline = 30\n", "deadline = 60\n"], (1, 0, 0, 1, 0));
        check([ancestor, fork, "deadline = 30\n", "deadline = 30\n"], (1, 0, 0, 0, 1));
        check([ancestor, fork, "deadline = 30\n", "deadline = 30 # why\n"], (1, 0, 0, 0, 1));
    }

    #[test]
    fn a_comment_is_no_adaptation_of_code() {
        check(["a\n", "a\ntimeout = 60\n", "a\n", "a\n# timeout = 60\n"], (1, 0, 0, 0, 1));
        check(["a\n", "a\n# of the fork: b\n", "a\n", "a\n# of our fork: b\n"], (1, 0, 0, 1, 0));
    }

    #[test]
    fn line_ends_and_blanks_at_the_end_do_not_count() {
        check(["a\n", "a\nb\n", "a\r\n", "a\r\nb  \r\n"], (1, 1, 0, 0, 0));
    }

    #[test]
    fn braces_count_only_among_themselves() {
        check(["a\n", "a\n}\n", "a\n", "a\n"], (1, 0, 0, 0, 1));
        assert_eq!(LineId::of(b"  }"), None);
        assert_eq!(LineId::of(b"x "), LineId::of(b"x"));
    }
}
