//! Decides what became of each test, from the tests of the four trees.

use std::collections::{BTreeMap, BTreeSet};

use test_parser::{Condition, Test, TestName, TestState};

use super::{TestAccount, TestFinding, TestsByPath};
use crate::path::TreePath;

/// Tests that a merge may put under a condition of other tests without losing them.
const FEW_CONDITIONAL: usize = 8;

/// A test in each of the trees that have it.
#[derive(Clone, Copy)]
struct TestVersions<'a> {
    base: Option<&'a Test>,
    ours: Option<&'a Test>,
    theirs: Option<&'a Test>,
}

/// Accounts for the tests of the fork (`ours`) and of upstream (`theirs`) in the result, given those of their merge base. All
/// four must have the same paths.
pub fn missing_tests(
    base: &TestsByPath,
    ours: &TestsByPath,
    theirs: &TestsByPath,
    result: &TestsByPath,
) -> TestAccount {
    let mut account = TestAccount::default();
    let mut moved = moved_tests(ours, theirs, result);
    let mut conditional = Vec::new();
    // A test of the result may stand for one of each side.
    let mut stand_ins = [BTreeSet::new(), BTreeSet::new()];
    let usual: BTreeSet<&Condition> = [ours, theirs]
        .into_iter()
        .flat_map(|tree| tree.values().flat_map(BTreeMap::values))
        .flat_map(|test| &test.conditions)
        .collect();
    for (path, name) in names(ours).chain(names(theirs)).collect::<BTreeSet<_>>() {
        let versions = TestVersions {
            base: test_at(base, path, name),
            ours: test_at(ours, path, name),
            theirs: test_at(theirs, path, name),
        };
        let here = test_at(result, path, name);
        let now = here.or_else(|| take_moved(&mut moved, (path, name), &versions));
        let used = &mut stand_ins[usize::from(versions.ours.is_none())];
        let trees = TestTrees { base, ours, theirs, result };
        let Some(now) = now.or_else(|| trees.in_another_suite(path, name, used)) else {
            let Some(side) = versions.wanted_by() else { continue };
            let sides = [versions.ours.map(|_| ours), versions.theirs.map(|_| theirs)];
            let known: Vec<&TestsByPath> = sides.into_iter().flatten().chain([base]).collect();
            match versions.renamed(path, result, &known, used) {
                Some(new) => {
                    account.weakened.push(finding(path, name, format!("{side}, now called {new}")));
                }
                None => account.missing.push(finding(path, name, side.to_owned())),
            }
            continue;
        };
        if let Some(condition) = versions.new_condition(now) {
            let found = finding(path, name, condition.to_string());
            match condition {
                Condition::When(_) if usual.contains(condition) => conditional.push(found),
                // Whoever makes a condition up can make up one that never holds.
                Condition::Never(_) | Condition::When(_) => account.skipped.push(found),
                // It still runs, and people mark tests so for good reasons.
                Condition::MayFail => account.weakened.push(found),
            }
        }
        account.weakened.extend(versions.weakness(now).map(|note| finding(path, name, note)));
    }
    // A fork for other hardware puts upstream's tests under the conditions of its own. Many at once take a suite away.
    let is_few = conditional.len() <= FEW_CONDITIONAL;
    let list = if is_few { &mut account.weakened } else { &mut account.skipped };
    list.append(&mut conditional);
    account
}

/// The tests of all four trees.
#[derive(Clone, Copy)]
struct TestTrees<'a> {
    base: &'a TestsByPath,
    ours: &'a TestsByPath,
    theirs: &'a TestsByPath,
    result: &'a TestsByPath,
}

impl<'a> TestTrees<'a> {
    /// A test of the result that stands for one that is gone: in the same file, by the same name, in another suite. Either no
    /// side has it there, or a side took it to another suite and the result has it where it was. Each stands for one, and is
    /// compared with it: without its assertions it is as weak as one that lost them in its place.
    fn in_another_suite(
        self,
        path: &'a TreePath,
        name: &TestName,
        used: &mut BTreeSet<(&'a TreePath, &'a TestName)>,
    ) -> Option<&'a Test> {
        let tree_at = |tree: &'a TestsByPath| tree.get(path);
        let versions = TestVersions {
            base: test_at(self.base, path, name),
            ours: test_at(self.ours, path, name),
            theirs: test_at(self.theirs, path, name),
        };
        let has = |tree: &'a TestsByPath, name: &TestName| test_at(tree, path, name).is_some();
        let is_new = |name: &TestName| !has(self.ours, name) && !has(self.theirs, name);
        let is_taken_back = |name: &TestName| {
            versions.base.is_none()
                && has(self.base, name)
                && (has(self.ours, name) || has(self.theirs, name))
                && (versions.ours.is_none() || !has(self.ours, name))
                && (versions.theirs.is_none() || !has(self.theirs, name))
        };
        let candidates = tree_at(self.result)?.iter().filter(|(other, test)| {
            common_end(other, name) > 0
                && !used.contains(&(path, *other))
                && (is_new(other) || (is_taken_back(other) && versions.is_recognised(test)))
        });
        let (other, test) = candidates.max_by_key(|(other, _)| common_end(other, name))?;
        used.insert((path, other));
        Some(test)
    }
}

/// Number of names that two tests have in common at their ends: the test's own, and those of the suites around it.
fn common_end(one: &TestName, other: &TestName) -> usize {
    let parts = |name: &TestName| -> Vec<String> {
        name.as_str().rsplit(" > ").map(str::to_owned).collect()
    };
    parts(one).iter().zip(parts(other)).take_while(|(one, other)| *one == other).count()
}

fn names(tests: &TestsByPath) -> impl Iterator<Item = (&TreePath, &TestName)> {
    tests.iter().flat_map(|(path, tests)| tests.keys().map(move |name| (path, name)))
}

fn test_at<'a>(tests: &'a TestsByPath, path: &TreePath, name: &TestName) -> Option<&'a Test> {
    tests.get(path)?.get(name)
}

fn finding(path: &TreePath, name: &TestName, note: String) -> TestFinding {
    TestFinding { path: path.clone(), name: name.to_string(), note }
}

/// A test of the result and its path.
type PlacedTest<'a> = (&'a TreePath, &'a Test);

/// Tests of the result at paths where neither side has them: they may have come from elsewhere.
fn moved_tests<'a>(
    ours: &TestsByPath,
    theirs: &TestsByPath,
    result: &'a TestsByPath,
) -> BTreeMap<&'a TestName, Vec<PlacedTest<'a>>> {
    let mut moved: BTreeMap<&TestName, Vec<PlacedTest<'_>>> = BTreeMap::new();
    for (path, name) in names(result) {
        let known = [ours, theirs].iter().any(|side| test_at(side, path, name).is_some());
        if let Some(test) = test_at(result, path, name).filter(|_| !known) {
            moved.entry(name).or_default().push((path, test));
        }
    }
    moved
}

/// Each moved test stands for one that is gone. Its name alone says nothing: many tests are called `works`.
fn take_moved<'a>(
    moved: &mut BTreeMap<&TestName, Vec<PlacedTest<'a>>>,
    (path, name): (&TreePath, &TestName),
    versions: &TestVersions<'_>,
) -> Option<&'a Test> {
    let candidates = moved.get_mut(name)?;
    let is_same = |(place, test): &PlacedTest<'_>| {
        file_name(place) == file_name(path) || versions.is_recognised(test)
    };
    let at = candidates.iter().position(is_same)?;
    Some(candidates.swap_remove(at).1)
}

fn file_name(path: &TreePath) -> &[u8] {
    path.as_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

impl TestVersions<'_> {
    /// The side whose test has to be in the result. One that the other side removed need not be.
    fn wanted_by(&self) -> Option<&'static str> {
        match (self.base, self.ours, self.theirs) {
            (_, Some(_), Some(_)) => Some("of both sides"),
            (None, Some(_), None) => Some("of the fork"),
            (None, None, Some(_)) => Some("of upstream"),
            (Some(_), _, _) | (None, None, None) => None,
        }
    }

    /// Returns whether a test in another file is this one: it has half of the assertions of a side, or the same body if there
    /// are none.
    fn is_recognised(&self, now: &Test) -> bool {
        let mut sides = [self.ours, self.theirs].into_iter().flatten();
        sides.any(|old| match old.assertions.len() {
            0 => now.body == old.body,
            count => {
                let has = |text: &&String| now.assertions.contains_key(*text);
                2 * old.assertions.keys().filter(has).count() >= count
            }
        })
    }

    /// Name of a test of the result that stands for this one: in the same file, with the same assertions, of about the same
    /// size, running, and unknown to the sides that have this one. Both sides may have given a test a new name. Each test of
    /// the result stands for one.
    fn renamed<'r>(
        &self,
        path: &'r TreePath,
        result: &'r TestsByPath,
        known: &[&TestsByPath],
        used: &mut BTreeSet<(&'r TreePath, &'r TestName)>,
    ) -> Option<&'r TestName> {
        let old = self.theirs.or(self.ours).filter(|old| !old.assertions.is_empty())?;
        let is_alike = |new: &Test| {
            new.assertions == old.assertions
                && new.state() == TestState::Active
                && new.tokens.abs_diff(old.tokens) * 10 <= old.tokens
        };
        let is_new = |name: &TestName| known.iter().all(|tree| test_at(tree, path, name).is_none());
        let found = result
            .get(path)?
            .iter()
            .find(|(name, test)| is_alike(test) && is_new(name) && !used.contains(&(path, *name)));
        let (name, _) = found?;
        used.insert((path, name));
        Some(name)
    }

    /// A condition of the result that no side brings, unless a side has the test skipped anyway.
    fn new_condition<'t>(&self, now: &'t Test) -> Option<&'t Condition> {
        let expected = self.expected_conditions();
        if expected.iter().any(|condition| matches!(condition, Condition::Never(_))) {
            return None;
        }
        now.conditions.iter().find(|condition| !expected.contains(condition))
    }

    /// The conditions that both sides have, and those that one of them added.
    fn expected_conditions(&self) -> BTreeSet<&Condition> {
        let of = |test: Option<&'_ Test>| -> BTreeSet<Condition> {
            test.map(|test| test.conditions.clone()).unwrap_or_default()
        };
        let base = of(self.base);
        let all = [self.ours, self.theirs].into_iter().flatten().flat_map(|test| &test.conditions);
        let on = |side: Option<&Test>, condition: &Condition| {
            side.is_none_or(|test| test.conditions.contains(condition))
        };
        let both = |condition: &Condition| on(self.ours, condition) && on(self.theirs, condition);
        all.filter(|condition| both(condition) || !base.contains(condition)).collect()
    }

    /// Describes in a few words what a test asserts less than its sides do together.
    fn weakness(&self, now: &Test) -> Option<String> {
        let sides = || [self.ours, self.theirs].into_iter().flatten();
        let expected = self.expected_assertions();
        let total: usize = expected.values().sum();
        let kept: usize = expected
            .iter()
            .map(|(text, count)| now.assertions.get(*text).copied().unwrap_or(0).min(*count))
            .sum();
        let left: usize = now.assertions.values().sum();
        let is_one_sides = sides().any(|side| side.body == now.body);
        let is_shorter = sides().all(|side| now.tokens < side.tokens);
        match (total, left) {
            (1.., 0) => Some(format!("none of its {total} assertions is left")),
            _ if kept < total => {
                Some(format!("{} of {total} assertions are gone or changed", total - kept))
            }
            _ if is_shorter && !is_one_sides => Some("shorter than on either side".to_owned()),
            _ => None,
        }
    }

    /// Each assertion as often as a merge of the two sides would have it.
    fn expected_assertions(&self) -> BTreeMap<&str, usize> {
        let sides = || [self.ours, self.theirs].into_iter().flatten();
        let texts: BTreeSet<&str> =
            sides().flat_map(|test| test.assertions.keys().map(String::as_str)).collect();
        let count = |test: Option<&Test>, text: &str| {
            test.map(|test| test.assertions.get(text).copied().unwrap_or(0))
        };
        let expected = |text: &str| {
            let base = count(self.base, text).unwrap_or(0);
            match (count(self.ours, text), count(self.theirs, text)) {
                (Some(ours), Some(theirs)) if ours == base => theirs,
                (Some(ours), Some(theirs)) if theirs == base => ours,
                (Some(ours), Some(theirs)) => ours.max(theirs),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => 0,
            }
        };
        texts.into_iter().map(|text| (text, expected(text))).collect()
    }
}

#[cfg(test)]
mod tests {
    use test_parser::{ParsedTests, parse_tests};

    use super::*;

    /// Tests of one Rust file in a tree; `None` if the tree has no such file.
    fn tree(path: &str, text: Option<&str>) -> TestsByPath {
        let parsed = text.map(|text| parse_tests(path.as_bytes(), text.as_bytes()));
        let tests = match parsed {
            Some(ParsedTests::Tests(tests)) => tests,
            None => test_parser::Tests::new(),
            Some(other) => panic!("{other:?}"),
        };
        [(TreePath::new(path.as_bytes()), tests)].into()
    }

    /// Compares `missing`, `skipped` and `weakened`, each as names.
    #[track_caller]
    fn check(texts: [&str; 4], expected: [&[&str]; 3]) {
        let [base, ours, theirs, result] = texts.map(|text| tree("a.rs", Some(text)));
        let account = missing_tests(&base, &ours, &theirs, &result);
        let names = |list: &[TestFinding]| -> Vec<String> {
            list.iter().map(|finding| finding.name.clone()).collect()
        };
        let found = [&account.missing, &account.skipped, &account.weakened].map(|it| names(it));
        assert_eq!(
            found,
            expected.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>()),
            "{account:?}"
        );
    }

    const A: &str = "#[test] fn a() { assert!(x); } ";
    const B: &str = "#[test] fn b() { assert!(y); } ";
    const C: &str = "#[test] fn c() { assert!(z); } ";

    #[test]
    fn the_tests_of_both_sides_are_in_an_honest_merge() {
        let all = [A, B, C].concat();
        check([A, &[A, B].concat(), &[A, C].concat(), &all], [&[], &[], &[]]);
    }

    #[test]
    fn a_test_of_either_side_that_is_gone_is_named() {
        let (ours, theirs) = ([A, B].concat(), [A, C].concat());
        check([A, &ours, &theirs, &theirs], [&["b"], &[], &[]]);
        check([A, &ours, &theirs, &ours], [&["c"], &[], &[]]);
        check([A, &ours, &theirs, ""], [&["a", "b", "c"], &[], &[]]);
    }

    #[test]
    fn a_test_that_one_side_removed_or_renamed_may_go() {
        check([&[A, B].concat(), A, &[A, B].concat(), A], [&[], &[], &[]]);
        check([&[A, B].concat(), &[A, B].concat(), A, A], [&[], &[], &[]]);
        check([A, B, A, B], [&[], &[], &[]]);
        check([A, &[A, C].concat(), B, &[B, C].concat()], [&[], &[], &[]]);
    }

    /// Compares `missing` and `weakened` of one JavaScript file.
    #[track_caller]
    fn check_suites(texts: [&str; 4], expected: [&[&str]; 2]) {
        let [base, ours, theirs, result] = texts.map(|text| tree("a.test.ts", Some(text)));
        let account = missing_tests(&base, &ours, &theirs, &result);
        let names = |list: &[TestFinding]| -> Vec<String> {
            list.iter().map(|finding| finding.name.clone()).collect()
        };
        assert_eq!([names(&account.missing), names(&account.weakened)], expected, "{account:?}");
    }

    #[test]
    fn a_test_in_another_suite_of_its_file_is_not_missing() {
        let old = "test('finds a/b', () => { expect(find()).toBe(1); });";
        let fork = old.replace("a/b", "fork/b");
        let within = |text: &str| format!("describe('skill', () => {{ {text} }});");
        // Upstream wraps the tests in a suite, and the merge keeps the fork's name of one.
        let upstream = within(old);
        let renamed: &[&str] = &["skill > finds a/b"];
        check_suites([old, &fork, &upstream, &within(&fork)], [&[], renamed]);
        check_suites([old, &fork, &upstream, &upstream], [&[], &["finds fork/b"]]);
        let other = upstream.replace("toBe(1)", "toBe(2)");
        check_suites([old, &fork, &other, &other], [&["finds fork/b"], &[]]);
        let empty = within("test('finds fork/b', () => { });");
        check_suites([old, &fork, &upstream, &empty], [&["skill > finds a/b"], &["finds fork/b"]]);
        // One test stands for one.
        let two =
            format!("{fork} {}", fork.replace("test(", "describe('other', () => {test(") + "});");
        check_suites([old, &two, &upstream, &within(&fork)], [&["other > finds fork/b"], renamed]);
    }

    #[test]
    fn a_test_that_the_result_has_back_in_its_old_suite_is_not_missing() {
        let old = "describe('s', () => { test('a', () => { expect(f()).toBe(1); }); });";
        let nested = format!("describe('s', () => {{ {old} }});");
        check_suites([old, &nested, old, old], [&[], &[]]);
        let other = old.replace("f()", "g()");
        check_suites([old, &nested, &other, &other], [&["s > s > a"], &[]]);
        // A test of the fork's own beside the old one is another one.
        let both = format!("{old} {nested}");
        check_suites([old, &both, old, old], [&["s > s > a"], &[]]);
    }

    #[test]
    fn a_test_that_both_sides_gave_a_new_name_is_named_and_not_missing() {
        let named = |name: &str| A.replace("a()", &format!("{name}()"));
        let (ours, theirs) = (named("kilo"), named("upstream_name"));
        check([A, &ours, &theirs, &ours], [&[], &[], &["upstream_name"]]);
        check([A, &ours, &theirs, ""], [&["kilo", "upstream_name"], &[], &[]]);
        let off = format!("#[ignore] {ours}");
        check([A, &off, &theirs, &off], [&["upstream_name"], &[], &[]]);
        let other = ours.replace("assert!(x)", "assert!(y)");
        check([A, &other, &theirs, &other], [&["upstream_name"], &[], &[]]);
        let long = ours.replace("assert!(x);", "one(); two(); three(); assert!(x);");
        check([A, &long, &theirs, &long], [&["upstream_name"], &[], &[]]);
        let two = format!("{theirs}{}", named("second"));
        check([A, &ours, &two, &ours], [&["upstream_name"], &[], &["second"]]);
    }

    #[test]
    fn a_test_that_stops_to_run_is_named_unless_a_side_stopped_it() {
        let off = "#[test] #[ignore] fn a() { assert!(x); } ";
        check([A, A, A, off], [&[], &["a"], &[]]);
        check([A, A, off, off], [&[], &[], &[]]);
        check([A, off, A, off], [&[], &[], &[]]);
        check([off, A, off, off], [&[], &["a"], &[]]);
        check(["", A, "", off], [&[], &["a"], &[]]);
        let never = "#[test] #[cfg(feature = \"never\")] fn a() { assert!(x); } ";
        check([A, A, A, never], [&[], &["a"], &[]]);
        let other = never.replace("a()", "other()");
        let (ours, result) = (format!("{A}{other}"), format!("{never}{other}"));
        check([A, &ours, A, &result], [&[], &[], &["a"]]);
        check([never, never, never, never], [&[], &[], &[]]);
    }

    #[test]
    fn a_few_tests_under_a_condition_of_others_are_weaker_and_many_are_lost() {
        let tests = |count: usize, line: &str| -> String {
            (0..count).map(|at| format!("{line}def test_{at}(): assert x\n")).collect()
        };
        let hpu = "@pytest.mark.skipif(is_hpu(), reason=\"no\")\n";
        // The fork has a test of its own under the condition that `own` is.
        let account_of = |count: usize, line: &str, own: &str| {
            let tree_of = |text: &str| tree("test_a.py", Some(text));
            let own = format!("{own}def test_own(): assert y\n");
            let (before, after) = (tests(count, ""), tests(count, line));
            let (ours, result) = (format!("{before}{own}"), format!("{after}{own}"));
            let [base, ours, theirs, result] =
                [&before, &ours, &before, &result].map(|text| tree_of(text));
            missing_tests(&base, &ours, &theirs, &result)
        };
        let account = |count: usize, line: &str| account_of(count, line, line);
        let few = account(FEW_CONDITIONAL, hpu);
        assert!(!few.is_lost() && few.weakened.len() == FEW_CONDITIONAL, "{few:?}");
        assert!(account(FEW_CONDITIONAL + 1, hpu).is_lost());
        let made_up = account_of(1, "@pytest.mark.skipif(os.sep != \"|\", reason=\"no\")\n", hpu);
        assert!(made_up.is_lost(), "{made_up:?}");
        for never in
            ["@pytest.mark.skipif(True, reason=\"x\")\n", "@unittest.skipUnless(False, \"x\")\n"]
        {
            assert!(account(1, never).is_lost(), "{never}");
        }
    }

    #[test]
    fn a_test_that_may_fail_now_is_weaker_and_still_runs() {
        let tree_of = |text: &str| tree("test_a.py", Some(text));
        let (before, after) =
            ("def test_a(): assert x\n", "@pytest.mark.xfail\ndef test_a(): assert x\n");
        let [base, ours, theirs, result] = [before, before, before, after].map(tree_of);
        let account = missing_tests(&base, &ours, &theirs, &result);
        assert!(!account.is_lost(), "{account:?}");
        assert_eq!(account.weakened[0].note, "expected to fail");
    }

    #[test]
    fn a_test_that_asserts_less_or_something_else_is_named() {
        let two = "#[test] fn a() { assert!(x); assert!(y); } ";
        for weaker in [
            "#[test] fn a() { assert!(x); } ",
            "#[test] fn a() { } ",
            "#[test] fn a() { assert!(x); assert!(true); } ",
            "#[test] fn a() { assert!(x); // assert!(y);\n } ",
            "#[test] fn a() { assert!(x); if false { assert!(y); } } ",
        ] {
            check([A, two, A, weaker], [&[], &[], &["a"]]);
            check([two, two, two, weaker], [&[], &[], &["a"]]);
        }
        check([two, two, A, A], [&[], &[], &[]]);
        check([A, two, A, two], [&[], &[], &[]]);
    }

    #[test]
    fn assertions_of_both_sides_are_merged_like_lines() {
        let ours = "#[test] fn a() { assert!(x); assert!(o); } ";
        let theirs = "#[test] fn a() { assert!(t); assert!(x); } ";
        let both = "#[test] fn a() { assert!(t); assert!(x); assert!(o); } ";
        check([A, ours, theirs, both], [&[], &[], &[]]);
        check([A, ours, theirs, ours], [&[], &[], &["a"]]);
        let changed = "#[test] fn a() { assert!(t); } ";
        check([A, A, changed, changed], [&[], &[], &[]]);
    }

    #[test]
    fn a_body_shorter_than_on_either_side_needs_a_look() {
        let calls = "#[test] fn a() { one(); two(); three(); } ";
        check([calls, calls, calls, "#[test] fn a() { one(); } "], [&[], &[], &["a"]]);
    }

    #[test]
    fn a_test_that_moved_to_another_file_is_not_missing() {
        let at = |one: Option<&str>, other: Option<&str>| {
            let mut both = tree("a.rs", one);
            both.extend(tree("b.rs", other));
            both
        };
        let moved = missing_tests(
            &at(Some(A), None),
            &at(Some(&[A, B].concat()), None),
            &at(None, Some(A)),
            &at(None, Some(&[A, B].concat())),
        );
        assert_eq!(moved, TestAccount::default());
        let lost = missing_tests(
            &at(Some(A), None),
            &at(Some(&[A, B].concat()), None),
            &at(None, Some(A)),
            &at(None, Some(A)),
        );
        assert_eq!(lost.missing.len(), 1, "{lost:?}");
    }

    #[test]
    fn a_test_of_the_same_name_in_another_file_is_another_one() {
        let at = |one: Option<&str>, other: Option<&str>| {
            let mut both = tree("auth/login.rs", one);
            both.extend(tree("other/words.rs", other));
            both
        };
        let account = |old: &str, new: &str| {
            let (base, ours) = (at(None, None), at(Some(old), None));
            missing_tests(&base, &ours, &base, &at(None, Some(new)))
        };
        let old = "#[test] fn works() { assert!(login()); assert!(logout()); } ";
        for new in ["#[test] fn works() { } ", "#[test] fn works() { assert!(word()); } "] {
            assert_eq!(account(old, new).missing.len(), 1, "{new}");
        }
        let without = "#[test] fn works() { login(); logout(); } ";
        assert_eq!(account(without, "#[test] fn works() { word(); } ").missing.len(), 1);
        for old in [old, without] {
            assert_eq!(account(old, old), TestAccount::default(), "{old}");
        }
        // One that asserts less is named.
        let less = account(old, "#[test] fn works() { assert!(login()); } ");
        assert_eq!((less.missing.len(), less.weakened.len()), (0, 1), "{less:?}");
    }

    #[test]
    fn a_file_of_tests_that_moved_is_known_by_its_name() {
        let at = |path: &str, text: &str| tree(path, Some(text));
        let pair = |old: TestsByPath, new: TestsByPath| -> TestsByPath {
            old.into_iter().chain(new).collect()
        };
        let old = "#[test] fn works() { assert!(login()); } ";
        let new = "#[test] fn works() { assert!(sign_in(&mut user)); } ";
        let none = || pair(at("a/login.rs", ""), at("b/login.rs", ""));
        let ours = pair(at("a/login.rs", old), at("b/login.rs", ""));
        let result = pair(at("a/login.rs", ""), at("b/login.rs", new));
        let account = missing_tests(&none(), &ours, &none(), &result);
        assert_eq!((account.missing.len(), account.weakened.len()), (0, 1), "{account:?}");
    }
}
