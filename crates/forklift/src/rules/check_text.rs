//! Words about a check: for the agent, the terminal and the pull request.

use engine::box_command::BoxCommandSummary;
use engine::check::check_words;

use super::brief::fenced;
use super::strategy::Strategy;

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

    fn summary(code: i32) -> BoxCommandSummary {
        let (command, tail) = ("make test".to_owned(), "the reason\n".to_owned());
        BoxCommandSummary { command, ended: Ended::Exited { code }, wall_ms: 1, tail, tests: None }
    }

    #[test]
    fn the_agent_reads_the_output_of_the_check() {
        let page = render_check_page(&summary(7), Strategy::Merge);
        for words in ["status 7", "make test", "the reason", "git commit --no-edit"] {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert!(render_check_page(&summary(7), Strategy::Rebase).contains("rebase"));
    }
}
