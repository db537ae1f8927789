//! Tests that run under another name: because one side moved their module, class or file, or because a part of the name
//! differs from run to run.
//!
//! A move is learned from tests of the fork and of upstream alone: what the agent calls a moved test is a test that is gone.

use std::collections::{BTreeMap, BTreeSet};

use engine::test_report::TestReport;

/// Most moves that are remembered, and most tests with the same last part of a name that are paired.
const MOST_MOVES: usize = 10_000;
const MOST_ALIKE: usize = 20;

/// Characters between the parts of a name.
const SEPARATORS: [char; 7] = ['.', ':', '/', '\\', '$', '#', ' '];

/// Beginnings of names that a side replaced by others.
#[derive(Debug, Default)]
pub(super) struct Moves<'a> {
    starts: BTreeMap<&'a str, BTreeSet<&'a str>>,
    count: usize,
}

impl<'a> Moves<'a> {
    /// Learns the moves of a side: a test of the merge base that it has no more, and a new one with the same class and name or,
    /// if there is none, with the same name.
    pub(super) fn learn(before: &'a TestReport, after: &'a TestReport) -> Self {
        let mut moves = Self::default();
        let mut fresh: [BTreeMap<&str, Vec<&str>>; 2] = [BTreeMap::new(), BTreeMap::new()];
        for name in after.tests.keys().filter(|name| !before.tests.contains_key(*name)) {
            for (parts, fresh) in (1..).zip(&mut fresh) {
                fresh.entry(last_parts(name, parts)).or_default().push(name);
            }
        }
        let [by_name, by_class] = &fresh;
        for gone in before.tests.keys().filter(|name| !after.tests.contains_key(*name)) {
            let of_class = by_class.get(last_parts(gone, 2));
            let Some(alike) = of_class.or_else(|| by_name.get(last_parts(gone, 1))) else {
                continue;
            };
            // A common name, such as `works`, says nothing about moves.
            for now in alike.iter().filter(|_| alike.len() <= MOST_ALIKE) {
                if moves.count < MOST_MOVES {
                    let end = common_end(gone, now);
                    let (from, to) = (&gone[..gone.len() - end], &now[..now.len() - end]);
                    moves.count += usize::from(moves.starts.entry(from).or_default().insert(to));
                }
            }
        }
        moves
    }

    /// Names that a test has after these moves.
    pub(super) fn names_of(&self, name: &str) -> impl Iterator<Item = String> {
        let ends = name.match_indices(SEPARATORS).map(|(at, part)| at + part.len());
        let starts = std::iter::once(0).chain(ends);
        starts.flat_map(move |at| {
            let (start, rest) = name.split_at(at);
            self.starts.get(start).into_iter().flatten().map(move |to| format!("{to}{rest}"))
        })
    }
}

/// The last parts of a name, so many of them, or all of it.
fn last_parts(name: &str, count: usize) -> &str {
    let (mut end, mut seen) = (name.len(), 0);
    for (at, separator) in name.rmatch_indices(SEPARATORS) {
        let start = at + separator.len();
        seen += usize::from(start < end);
        if seen == count {
            return &name[start..];
        }
        end = at;
    }
    name
}

/// Bytes of the whole parts in which two names end alike.
fn common_end(one: &str, other: &str) -> usize {
    let same = one.chars().rev().zip(other.chars().rev()).take_while(|(a, b)| a == b);
    let length: usize = same.map(|(c, _)| c.len_utf8()).sum();
    let is_start = |name: &str, at: usize| at == 0 || name[..at].ends_with(SEPARATORS);
    let tail = &one[one.len() - length..];
    let starts =
        std::iter::once(0).chain(tail.match_indices(SEPARATORS).map(|(at, it)| at + it.len()));
    let mut ends = starts.map(|at| length - at);
    ends.find(|end| is_start(one, one.len() - end) && is_start(other, other.len() - end))
        .unwrap_or(0)
}

/// The part of a name that does not differ from run to run: without parameters and numbers. None if it has neither.
pub(super) fn family_of(name: &str) -> Option<String> {
    let end = name.find(['[', '(', '{', '<']).filter(|at| *at > 0).unwrap_or(name.len());
    let mut family = String::new();
    for c in name[..end].chars() {
        match c {
            '0'..='9' if family.ends_with('#') => {}
            '0'..='9' => family.push('#'),
            c => family.push(c),
        }
    }
    (family != name).then_some(family)
}

#[cfg(test)]
mod tests {
    use engine::test_report::TestOutcome;

    use super::*;

    fn report(names: &str) -> TestReport {
        let tests = names.split_whitespace().map(|name| (name.to_owned(), TestOutcome::Passed));
        TestReport { tests: tests.collect(), ..TestReport::default() }
    }

    #[track_caller]
    fn check([before, after]: [&str; 2], name: &str, expected: &[&str]) {
        let (before, after) = (report(before), report(after));
        let moves = Moves::learn(&before, &after);
        assert_eq!(moves.names_of(name).collect::<Vec<_>>(), expected, "{moves:?}");
    }

    #[test]
    fn a_test_follows_the_module_or_class_that_a_side_moved() {
        let module = ["t.old.test_a.A::one t.b::x", "t.new.test_a.A::one t.b::x"];
        check(module, "t.old.test_a.B::two", &["t.new.test_a.B::two"]);
        check(module, "t.olden.test_a.B::two", &[]);
        check(module, "t.b::y", &[]);
        check(["t.A::one", "t.B::one"], "t.A::two", &["t.B::two"]);
        check(["it::a::one", "crate::it::a::one"], "it::b::two", &["crate::it::b::two"]);
        check(
            ["p/old.test.js one", "p/new.test.js one"],
            "p/old.test.js two",
            &["p/new.test.js two"],
        );
        check(["\u{e4}.x::one", "\u{f6}.x::one"], "\u{e4}.y::two", &["\u{f6}.y::two"]);
    }

    #[test]
    fn what_a_side_did_not_move_stays() {
        check(["t.A::one", "t.A::one t.B::one"], "t.A::two", &[]);
        check(["t.A::one", "t.B::other"], "t.A::two", &[]);
        let many: String = (0..1000).map(|n| format!("n{n}::works ")).collect();
        let old: String = (0..1000).map(|n| format!("o{n}::works ")).collect();
        check([&old, &many], "o5::two", &[]);
    }

    #[test]
    fn parameters_and_numbers_may_differ_from_run_to_run() {
        let same = |one: &str, other: &str| assert_eq!(family_of(one), family_of(other));
        same("a::test_x[2026-11-18]", "a::test_x[other]");
        same("listens on port 40123", "listens on port 7");
        same("a::t(0x…)", "a::t(1)");
        assert_eq!(family_of("a::test_x"), None);
        assert_eq!(family_of("[1] a").as_deref(), Some("[#] a"));
    }
}
