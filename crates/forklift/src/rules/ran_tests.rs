//! Tests by what ran: those that passed on the fork or on upstream and that the check did not run on the result.
//!
//! A test that ran on both sides, or that one side added, is lost with the result. One that the other side took away or turned
//! off is not: the merge base tells the two apart.

use std::collections::BTreeMap;

use engine::test_report::{TestOutcome, TestReport};
use serde::{Deserialize, Serialize};

use super::moved_test::{Moves, family_of};
use super::words::counted;

/// Tests of each kind that are kept by name, and that one sentence names.
const KEPT: usize = 200;
const SHOWN: usize = 5;

/// The check on a tree, as far as it says something about tests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TreeRun<'a> {
    /// It was not run, or could not be.
    Unknown,
    /// It was run to its end. A test that is not in a report of a check that failed may not have had its turn.
    Ran { report: &'a TestReport, passed: bool },
}

/// Comparison of a result with both sides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RanTests {
    /// Number of tests that passed on the fork or on upstream.
    pub(crate) compared: usize,
    /// Tests that both sides run, or that one side added.
    pub(crate) lost: NamedTests,
    /// Tests that one side does not run any more.
    pub(crate) given_up: NamedTests,
    /// Tests of one side of which it is not known whether the other gave them up, or whether they run under another name.
    pub(crate) undecided: NamedTests,
    /// Names under which both sides run more tests than the result.
    #[serde(default)]
    pub(crate) fewer: NamedTests,
    /// Number of tests that run under another name, since a side moved them.
    #[serde(default)]
    pub(crate) moved: usize,
    /// Sides on which the check could not be run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_checked: Vec<String>,
    /// Sentences about what could not be compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unknown: Vec<String>,
    /// The reports of the result are not whole, so nothing was compared.
    #[serde(default)]
    pub(crate) is_cut: bool,
}

/// Names of tests; more are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NamedTests {
    pub(crate) count: usize,
    pub(crate) tests: Vec<String>,
}

impl NamedTests {
    fn add(&mut self, name: &str, how: &str) {
        self.count += 1;
        if self.tests.len() < KEPT {
            self.tests.push(format!("{name} ({how})"));
        }
    }

    /// The first names, and how many more there are.
    pub(crate) fn shown(&self) -> String {
        let shown = self.tests.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        match self.count - self.tests.len().min(SHOWN) {
            0 => shown,
            more => format!("{shown} and {more} more"),
        }
    }
}

/// A test on a tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Unknown,
    /// Missing or skipped.
    NotRun,
    Ran,
}

impl<'a> TreeRun<'a> {
    fn passed(&self, name: &str) -> bool {
        match self {
            Self::Ran { report, .. } => report.tests.get(name) == Some(&TestOutcome::Passed),
            Self::Unknown => false,
        }
    }

    fn standing(&self, name: &str) -> Standing {
        let Self::Ran { report, passed } = self else { return Standing::Unknown };
        match report.tests.get(name) {
            Some(TestOutcome::Passed | TestOutcome::Failed) => Standing::Ran,
            Some(TestOutcome::Skipped) => Standing::NotRun,
            None if report.is_cut || !passed || report.tests.is_empty() => Standing::Unknown,
            None => Standing::NotRun,
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.report().is_some_and(|report| report.tests.contains_key(name))
    }

    /// Moves by another tree, against this one.
    fn moves_to(&self, other: &Self) -> Moves<'a> {
        let pair = self.report().zip(other.report());
        pair.map_or_else(Moves::default, |(before, after)| Moves::learn(before, after))
    }

    fn report(&self) -> Option<&'a TestReport> {
        match self {
            Self::Ran { report, .. } => Some(report),
            Self::Unknown => None,
        }
    }

    fn names(&self) -> impl Iterator<Item = &'a String> {
        self.report().into_iter().flat_map(|report| report.tests.keys())
    }
}

/// The trees that a result is compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SideRuns<'a> {
    pub(crate) fork: TreeRun<'a>,
    pub(crate) upstream: TreeRun<'a>,
    pub(crate) merge_base: TreeRun<'a>,
}

/// Compares the tests that ran. The merge base matters only for tests of one side.
pub(crate) fn compare_ran(result: &TestReport, sides: SideRuns<'_>) -> RanTests {
    let SideRuns { fork, upstream, .. } = sides;
    let mut names: Vec<&String> = fork.names().chain(upstream.names()).collect();
    names.sort();
    names.dedup();
    names.retain(|name| fork.passed(name) || upstream.passed(name));
    let mut comparison = Comparison {
        result,
        sides,
        moves_by_fork: sides.merge_base.moves_to(&fork),
        moves_by_upstream: sides.merge_base.moves_to(&upstream),
        others: families_of_new(result, &fork, &upstream),
        found: RanTests { compared: names.len(), is_cut: result.is_cut, ..RanTests::default() },
    };
    for name in names {
        let now = match result.tests.get(name) {
            Some(TestOutcome::Passed | TestOutcome::Failed) => {
                comparison.add_fewer_runs(name);
                continue;
            }
            Some(TestOutcome::Skipped) => "skipped",
            None if result.is_cut => continue,
            None => "missing",
        };
        comparison.add_not_run(name, now);
    }
    comparison.found
}

/// Numbers of tests that only the result has, by what does not differ from run to run in their names.
fn families_of_new(
    result: &TestReport,
    fork: &TreeRun<'_>,
    upstream: &TreeRun<'_>,
) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (name, outcome) in &result.tests {
        let is_new = !fork.knows(name) && !upstream.knows(name);
        if is_new && *outcome != TestOutcome::Skipped {
            family_of(name).into_iter().for_each(|family| *counts.entry(family).or_default() += 1);
        }
    }
    counts
}

struct Comparison<'a> {
    result: &'a TestReport,
    sides: SideRuns<'a>,
    moves_by_fork: Moves<'a>,
    moves_by_upstream: Moves<'a>,
    /// Tests that only the result has, and that did not stand for another yet.
    others: BTreeMap<String, usize>,
    found: RanTests,
}

impl Comparison<'_> {
    /// Adds a name under which both sides ran more tests than the result. Which of them are missing is not known, and a test
    /// that is run again when it fails counts twice.
    fn add_fewer_runs(&mut self, name: &str) {
        let SideRuns { fork, upstream, .. } = self.sides;
        let of = |run: TreeRun<'_>| run.report().map_or(0, |report| report.runs_of(name));
        let (before, now) = (of(fork).min(of(upstream)), self.result.runs_of(name));
        if now < before && !self.result.is_cut {
            self.found.fewer.add(name, &format!("{now} of {before}"));
        }
    }

    /// Adds a test that passed on a side and was not run on the result.
    fn add_not_run(&mut self, name: &str, now: &str) {
        let SideRuns { fork, upstream, merge_base } = self.sides;
        let (in_fork, in_upstream) = (fork.standing(name), upstream.standing(name));
        if in_fork == Standing::Ran && in_upstream == Standing::Ran {
            self.found.lost.add(name, &format!("of both sides, {now}"));
            return;
        }
        let (own, other, moves) = if in_fork == Standing::Ran {
            ("the fork", in_upstream, &self.moves_by_upstream)
        } else {
            ("upstream", in_fork, &self.moves_by_fork)
        };
        let in_base = merge_base.standing(name);
        // What the side moved has its new name from there; what the other side added beside it has a name that nobody knows.
        let is_moved = moves.names_of(name).any(|name| {
            let ran = self.result.tests.get(&name).is_some_and(|it| *it != TestOutcome::Skipped);
            ran && (in_base == Standing::Ran || !(fork.knows(&name) || upstream.knows(&name)))
        });
        match (in_base, other) {
            (_, Standing::NotRun) if is_moved => self.found.moved += 1,
            (Standing::NotRun, _) if self.take_other(name) => {
                let how = format!("of {own}, {now}; another with such a name runs");
                self.found.undecided.add(name, &how);
            }
            (Standing::NotRun, _) => self.found.lost.add(name, &format!("new in {own}, {now}")),
            (Standing::Ran, Standing::NotRun) => {
                self.found.given_up.add(name, &format!("of {own}, {now}"));
            }
            _ => self.found.undecided.add(name, &format!("of {own}, {now}")),
        }
    }

    /// Takes a test that only the result has for one whose name may differ from run to run.
    fn take_other(&mut self, name: &str) -> bool {
        let left = family_of(name).and_then(|family| self.others.get_mut(&family));
        left.is_some_and(|left| {
            let is_left = *left > 0;
            *left = left.saturating_sub(1);
            is_left
        })
    }
}

impl RanTests {
    /// Returns whether the check on the merge base would say more.
    pub(crate) fn needs_merge_base(&self) -> bool {
        self.undecided.count > 0
    }

    /// Sentences for the person who merges, worst first.
    pub(crate) fn looks(&self) -> Vec<String> {
        let lost = self.lost.tests.iter().map(|test| format!("test that does not run: {test}"));
        let more = self.lost.count - self.lost.tests.len();
        let more = (more > 0).then(|| format!("{} more do not run", counted(more, "test")));
        let undecided = (self.undecided.count > 0).then(|| {
            let shown = self.undecided.shown();
            format!(
                "{} of one side do not run, and it is not known whether that is right: {shown}",
                counted(self.undecided.count, "test")
            )
        });
        let given_up = (self.given_up.count > 0).then(|| {
            let count = counted(self.given_up.count, "test");
            format!(
                "{count} of one side do not run, as on the other side: {}",
                self.given_up.shown()
            )
        });
        let fewer = (self.fewer.count > 0).then(|| {
            let names = counted(self.fewer.count, "name");
            format!("under {names} fewer tests run than on both sides: {}", self.fewer.shown())
        });
        let cut = self.is_cut.then(|| {
            "the reports of the check are not whole, so it is not known whether all tests ran"
                .to_owned()
        });
        let sides = self.not_checked.iter().map(|side| {
            format!("the check could not be run on {side}, so its tests are not compared")
        });
        lost.chain(more)
            .chain(undecided)
            .chain(fewer)
            .chain(given_up)
            .chain(cut)
            .chain(sides)
            .collect()
    }

    /// A sentence for the list of checks.
    pub(crate) fn words(&self) -> String {
        let Self { compared, lost, given_up, undecided, moved, unknown, is_cut, .. } = self;
        let mut parts = vec![match (compared, is_cut) {
            (0, _) => "nothing to compare".to_owned(),
            (_, true) => "the reports are not whole".to_owned(),
            (count, false) => {
                let missing = lost.count + given_up.count + undecided.count;
                format!(
                    "{} passed on a side, {missing} of them do not run",
                    counted(*count, "test")
                )
            }
        }];
        parts.extend((*moved > 0).then(|| {
            format!("{} under another name, since a side moved them", counted(*moved, "test"))
        }));
        parts.extend(unknown.iter().cloned());
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report: `+` passed, `-` failed, `~` skipped.
    fn report(tests: &str) -> TestReport {
        let test = |word: &str| {
            let (mark, name) = word.split_at(1);
            let outcome = match mark {
                "+" => TestOutcome::Passed,
                "-" => TestOutcome::Failed,
                _ => TestOutcome::Skipped,
            };
            (name.to_owned(), outcome)
        };
        TestReport { tests: tests.split_whitespace().map(test).collect(), ..TestReport::default() }
    }

    #[track_caller]
    fn check([result, fork, upstream, base]: [&str; 4], expected: [&[&str]; 3]) {
        let reports =
            [result, fork, upstream, base].map(|text| report(text.trim_start_matches('?')));
        let run = |at: usize, text: &str| match text.strip_prefix('?') {
            Some(_) => TreeRun::Unknown,
            None => TreeRun::Ran { report: &reports[at], passed: true },
        };
        let sides =
            SideRuns { fork: run(1, fork), upstream: run(2, upstream), merge_base: run(3, base) };
        let found = compare_ran(&reports[0], sides);
        let lists = [&found.lost.tests, &found.given_up.tests, &found.undecided.tests];
        assert_eq!(
            lists.map(|list| list.iter().map(String::as_str).collect::<Vec<_>>()),
            expected.map(<[&str]>::to_vec)
        );
    }

    #[test]
    fn a_test_of_both_sides_or_a_new_one_is_lost() {
        let all = "+a +f +u";
        check([all, "+a +f", "+a +u", "?"], [&[], &[], &[]]);
        check(["+f +u", "+a +f", "+a +u", "?"], [&["a (of both sides, missing)"], &[], &[]]);
        check(["~a", "+a", "-a", "?"], [&["a (of both sides, skipped)"], &[], &[]]);
        check(
            ["+a", "+a +f", "+a +u", "+a"],
            [&["f (new in the fork, missing)", "u (new in upstream, missing)"], &[], &[]],
        );
        check(["+a ~f", "+a +f", "+a ~f", "+a ~f"], [&["f (new in the fork, skipped)"], &[], &[]]);
    }

    #[test]
    fn what_one_side_took_away_is_not_lost() {
        check(["+a", "+a +o", "+a", "+a +o"], [&[], &["o (of the fork, missing)"], &[]]);
        check(["+a ~o", "+a ~o", "+a +o", "+a +o"], [&[], &["o (of upstream, skipped)"], &[]]);
        check(["+a -f", "+a +f", "+a +f", "?"], [&[], &[], &[]]);
        check(["+a", "+a ~s -x", "+a -x", "?"], [&[], &[], &[]]);
    }

    #[test]
    fn what_cannot_be_decided_is_said_and_not_refused() {
        check(["+a", "+a +o", "+a", "?"], [&[], &[], &["o (of the fork, missing)"]]);
        check(["+a", "+a +o", "?", "+a +o"], [&[], &[], &["o (of the fork, missing)"]]);
        check(["+a", "+a +o", "?", "+a"], [&["o (new in the fork, missing)"], &[], &[]]);
        // A side without reports says nothing about any test.
        check(["+a", "+a +o", "", "+a +o"], [&[], &[], &["o (of the fork, missing)"]]);
        let cut = TestReport { is_cut: true, ..report("+a ~s") };
        let both = report("+a +b +s");
        let run = TreeRun::Ran { report: &both, passed: true };
        let sides = SideRuns { fork: run, upstream: run, merge_base: TreeRun::Unknown };
        let found = compare_ran(&cut, sides);
        assert_eq!(found.lost.tests, ["s (of both sides, skipped)"]);
        assert!(found.looks().last().unwrap().contains("not whole"));
    }

    #[test]
    fn a_test_that_a_side_moved_runs_under_another_name() {
        // The fork's own test goes with the module that upstream moved, and upstream's tests have their new names.
        check(["+n.a +n.f", "+o.a +o.f", "+n.a", "+o.a"], [&[], &[], &[]]);
        check(
            ["+n.a", "+o.a +o.f", "+n.a", "+o.a"],
            [&["o.f (new in the fork, missing)"], &[], &[]],
        );
        // A test of the other side with the same name in another class is no excuse.
        let other = ["+b +G.init", "+b +F.init", "+b +G.init", "+b"];
        check(other, [&["F.init (new in the fork, missing)"], &[], &[]]);
        // Nor is what the agent alone calls so.
        check(["+n.a", "+o.a", "+o.a", "+o.a"], [&["o.a (of both sides, missing)"], &[], &[]]);
        check(["+a +n.f", "+a +o.f", "+a", "+a"], [&["o.f (new in the fork, missing)"], &[], &[]]);
    }

    #[test]
    fn names_that_differ_from_run_to_run_are_said_and_not_refused() {
        let how = "of the fork, missing; another with such a name runs";
        check(["+a +t[3]", "+a +t[1]", "+a", "+a"], [&[], &[], &[&format!("t[1] ({how})")]]);
        let [one, two] = [format!("t[1] ({how})"), "t[2] (new in the fork, missing)".to_owned()];
        check(["+a +t[3]", "+a +t[1] +t[2]", "+a", "+a"], [&[&two], &[], &[&one]]);
        // What has the same name on both sides has it in the result.
        check(["+t[3]", "+t[1]", "+t[1]", "?"], [&["t[1] (of both sides, missing)"], &[], &[]]);
    }

    #[test]
    fn of_several_tests_with_one_name_the_missing_ones_are_named() {
        let runs = |count: u32| TestReport {
            repeated: BTreeMap::from([("a".to_owned(), count)]),
            ..report("+a")
        };
        let (two, three, once) = (runs(2), runs(3), report("+a"));
        let sides = SideRuns {
            fork: TreeRun::Ran { report: &three, passed: true },
            upstream: TreeRun::Ran { report: &two, passed: true },
            merge_base: TreeRun::Unknown,
        };
        let found = compare_ran(&once, sides);
        assert_eq!((found.fewer.tests, found.undecided.count), (vec!["a (1 of 2)".to_owned()], 0));
        assert_eq!(compare_ran(&two, sides).fewer.count, 0);
    }

    #[test]
    fn many_names_are_counted() {
        let all: String = (0..1000).map(|n| format!("+t{n} ")).collect();
        let (all, few) = (report(&all), report("+t0"));
        let run = TreeRun::Ran { report: &all, passed: true };
        let sides = SideRuns { fork: run, upstream: run, merge_base: TreeRun::Unknown };
        let found = compare_ran(&few, sides);
        assert_eq!((found.lost.count, found.lost.tests.len()), (999, KEPT));
        assert!(found.lost.shown().ends_with("and 994 more"), "{}", found.lost.shown());
        assert_eq!(found.looks().len(), KEPT + 1);
        assert_eq!(found.words(), "1000 tests passed on a side, 999 of them do not run");
    }
}
