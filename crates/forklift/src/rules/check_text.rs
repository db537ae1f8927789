//! Words about a check: for the agent, the terminal and the pull request.

use engine::box_command::BoxCommandSummary;
use engine::test_count::TestCount;

use super::brief::fenced;
use super::strategy::Strategy;

/// Describes the end of a check, with the number of tests that its output reports.
pub(crate) fn check_words(check: &BoxCommandSummary) -> String {
    if !check.passed() {
        return match check.tests {
            Some(TestCount { failed, .. }) if failed > 0 => {
                let ran = check.tests.map_or(0, TestCount::ran);
                format!("failed ({}, {failed} of {} failed)", check.how(), tests(ran))
            }
            Some(_) | None => format!("failed ({})", check.how()),
        };
    }
    match check.tests {
        Some(count) if count.ran() > 0 => format!("passed, {}", tests(count.ran())),
        Some(count) if count.groups > 0 => format!("passed, tests of {} packages", count.groups),
        Some(_) | None => "passed, no test was seen".to_owned(),
    }
}

fn tests(count: u64) -> String {
    if count == 1 { "1 test".to_owned() } else { format!("{count} tests") }
}

/// Page for an agent that has to repair a merge on which the check fails.
pub(crate) fn render_check_page(check: &BoxCommandSummary, strategy: Strategy) -> String {
    let (state, end) = match strategy {
        Strategy::Merge => (
            "The merge needs no decision about conflicts. It is in progress in your workspace, with everything staged.",
            "then conclude the merge with `git commit --no-edit`",
        ),
        Strategy::Rebase => (
            "The rebase has no conflicts. It is not in your workspace: make it yourself.",
            "as commits of their own on top",
        ),
    };
    format!(
        "# The check fails\n\n{state} The fork's check fails on the result: {}.\n\nThe command:\n\n{}\nThe end of its \
         output:\n\n{}\nRepair what does not fit together, keep what both sides did and all of their tests, {end}. The check \
         runs again on your commit, with the files that define it as the fork and upstream have them.\n",
        check_words(check),
        fenced(&check.command),
        fenced(&check.tail),
    )
}

#[cfg(test)]
mod tests {
    use model::verdict::Ended;

    use super::*;

    fn summary(code: i32, tests: Option<TestCount>) -> BoxCommandSummary {
        let (command, tail) = ("make test".to_owned(), "the reason\n".to_owned());
        BoxCommandSummary { command, ended: Ended::Exited { code }, wall_ms: 1, tail, tests }
    }

    #[test]
    fn a_check_that_ran_no_test_says_so() {
        let check =
            |code, tests, expected| assert_eq!(check_words(&summary(code, tests)), expected);
        let count = TestCount { passed: 4, failed: 0, skipped: 1, groups: 0 };
        check(0, None, "passed, no test was seen");
        check(0, Some(TestCount { passed: 0, ..count }), "passed, no test was seen");
        check(0, Some(count), "passed, 4 tests");
        check(0, Some(TestCount { passed: 1, ..count }), "passed, 1 test");
        check(
            0,
            Some(TestCount { groups: 3, ..TestCount::default() }),
            "passed, tests of 3 packages",
        );
        check(1, None, "failed (status 1)");
        check(1, Some(TestCount { failed: 2, ..count }), "failed (status 1, 2 of 6 tests failed)");
    }

    #[test]
    fn the_agent_reads_the_output_of_the_check() {
        let page = render_check_page(&summary(7, None), Strategy::Merge);
        for words in ["status 7", "make test", "the reason", "git commit --no-edit"] {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert!(render_check_page(&summary(7, None), Strategy::Rebase).contains("rebase"));
    }
}
