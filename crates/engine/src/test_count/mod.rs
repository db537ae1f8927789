//! Number of tests that a command ran, read from the output of common test runners and from JUnit files.
//!
//! The output is that of the code under test, so the number is a claim: it tells a check that runs tests from one that runs
//! none, and proves nothing.

mod junit;
mod line;

use serde::{Deserialize, Serialize};

pub use junit::parse_junit;

use line::{LineCounts, strip_escapes};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestCount {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
    /// Groups, such as Go packages, whose tests passed without a number.
    pub groups: u64,
}

impl TestCount {
    pub fn ran(self) -> u64 {
        self.passed.saturating_add(self.failed)
    }

    /// The sum of two counts.
    pub fn with(self, other: Self) -> Self {
        Self {
            passed: self.passed.saturating_add(other.passed),
            failed: self.failed.saturating_add(other.failed),
            skipped: self.skipped.saturating_add(other.skipped),
            groups: self.groups.saturating_add(other.groups),
        }
    }

    fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// Counts the tests in the output of a command; `None` if no test runner reported any.
pub fn parse_test_output(text: &str) -> Option<TestCount> {
    let mut counts = LineCounts::default();
    for line in text.lines() {
        counts.read(&strip_escapes(line));
    }
    Some(counts.total()).filter(|count| !count.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a check prints, the host goes on.
    #[test]
    fn numbers_that_no_suite_has_count_as_none_and_sums_do_not_overflow() {
        let most = u64::MAX;
        let text = format!(
            "OK ({most} tests)\n{most} runs, 1 assertions, {most} failures, {most} errors\n"
        );
        assert_eq!(parse_test_output(&text), None);
        let full = TestCount { passed: most, failed: most, skipped: most, groups: most };
        assert_eq!((full.with(full), full.ran()), (full, most));
    }

    #[track_caller]
    fn check(text: &str, expected: [u64; 4]) {
        let [passed, failed, skipped, groups] = expected;
        let expected = TestCount { passed, failed, skipped, groups };
        assert_eq!(parse_test_output(text), Some(expected), "{text}");
    }

    #[test]
    fn each_runner_is_read() {
        check(
            "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
             test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            [13, 2, 3, 0],
        );
        check(
            "     Summary [   0.512s] 12 tests run: 11 passed (1 slow), 1 failed, 4 skipped",
            [11, 1, 4, 0],
        );
        check("==== 3 passed, 1 skipped, 2 xfailed, 1 warning in 0.12s ====", [3, 0, 3, 0]);
        check("1 failed, 2 passed, 1 error in 0.12s", [2, 2, 0, 0]);
        check("Ran 5 tests in 0.003s\n\nFAILED (failures=1, errors=1, skipped=1)", [2, 2, 1, 0]);
        check("Ran 1 test in 0.003s\n\nOK", [1, 0, 0, 0]);
        check("ok  \texample.com/a\t0.01s\n?   \texample.com/b\t[no test files]\n", [0, 0, 0, 1]);
        check(
            "--- PASS: TestA (0.00s)\n    --- PASS: TestA/sub (0.00s)\n--- SKIP: TestB (0.0s)\nok  \ta\t0.01s",
            [2, 0, 1, 0],
        );
        check("Tests:       1 failed, 2 skipped, 10 passed, 13 total", [10, 1, 2, 0]);
        check("      Tests  10 passed | 1 failed | 2 skipped (13)", [10, 1, 2, 0]);
        check("  5 passing (10ms)\n  2 pending\n  1 failing\n", [5, 1, 2, 0]);
        check("ℹ tests 6\nℹ pass 4\nℹ fail 1\nℹ skipped 1\nℹ todo 0", [4, 1, 1, 0]);
        check("ok 1 - a\nok 2 - b\n# tests 2\n# pass 2\n# fail 0\n# skipped 0", [2, 0, 0, 0]);
        check("ok | 5 passed | 1 failed (10ms)", [5, 1, 0, 0]);
        check(
            "[INFO] Tests run: 5, Failures: 1, Errors: 1, Skipped: 1, Time elapsed: 0.1 s -- in A\n\
             [INFO] Tests run: 5, Failures: 1, Errors: 1, Skipped: 1",
            [2, 2, 1, 0],
        );
        check("5 tests completed, 2 failed, 1 skipped", [2, 2, 1, 0]);
        check("OK (5 tests)", [5, 0, 0, 0]);
        check("100% tests passed, 0 tests failed out of 5", [5, 0, 0, 0]);
        check("[  PASSED  ] 5 tests.\n[  FAILED  ] 2 tests, listed below:", [5, 2, 0, 0]);
        check("All tests passed (12 assertions in 5 test cases)", [5, 0, 0, 0]);
        check("test cases: 5 | 4 passed | 1 failed", [4, 1, 0, 0]);
        check("1..3\nok 1 - a\nnot ok 2 - b\nok 3 # SKIP later", [1, 1, 1, 0]);
        check("All tests successful.\nFiles=2, Tests=15,  0 wallclock secs", [15, 0, 0, 0]);
        check("5 examples, 1 failure, 1 pending", [3, 1, 1, 0]);
        check("5 runs, 10 assertions, 1 failures, 1 errors, 1 skips", [2, 2, 1, 0]);
        check(
            "Passed!  - Failed:     0, Passed:     5, Skipped:     1, Total:     6",
            [5, 0, 1, 0],
        );
    }

    #[test]
    fn colours_do_not_hide_a_number() {
        check(
            "\u{1b}[1m\u{1b}[32mtest result: ok\u{1b}[0m. 2 passed; 0 failed; 0 ignored",
            [2, 0, 0, 0],
        );
    }

    #[test]
    fn runners_after_one_another_are_added_up() {
        check(
            "test result: ok. 2 passed; 0 failed; 0 ignored\n== 3 passed in 0.1s ==",
            [5, 0, 0, 0],
        );
    }

    #[test]
    fn what_runs_no_test_counts_none() {
        for text in [
            "",
            "ok\n",
            "everything passed\n",
            "running 0 tests\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
            "==== no tests ran in 0.01s ====",
            "Ran 0 tests in 0.000s\n\nOK",
            "?   \texample.com/b\t[no test files]",
            "ok  \texample.com/a\t0.01s [no tests to run]",
            "No tests were found!!!",
            "make: Nothing to be done for 'test'.",
            "1 file passed the linter",
        ] {
            assert_eq!(parse_test_output(text), None, "{text}");
        }
    }
}
