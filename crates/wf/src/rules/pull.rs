//! The pull request of a workstream: its next action and its text.

use model::inert::inert_markdown;

use super::plan::Plan;

/// Next action of `wf merge` on a forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullAction {
    /// Push and open the pull request, or update the open one.
    Publish,
    /// Wait until the pull request is merged.
    Wait,
    /// The pull request is merged and contains every commit.
    Finish,
    /// The pull request is merged, but the branch has later commits.
    LeftBehind,
}

/// Decides from the pull request (open, merged) and from whether the pushed commit is the branch's tip. A pull request
/// that was closed without a merge is replaced by a new one, because the user asked for the merge again.
pub(crate) fn next_pull_action(pull: Option<(bool, bool)>, is_pushed: bool) -> PullAction {
    match (pull, is_pushed) {
        (None | Some((false, false)), _) | (Some((true, false)), false) => PullAction::Publish,
        (Some((true, false)), true) => PullAction::Wait,
        (Some((_, true)), true) => PullAction::Finish,
        (Some((_, true)), false) => PullAction::LeftBehind,
    }
}

/// Renders the body. Agents may have written the plan, so nothing in it acts on the forge.
pub(crate) fn render_pull(plan: &Plan) -> String {
    let mut text = "## Micro-commits\n\n".to_owned();
    for commit in &plan.commits {
        text.push_str(&format!("- {}: {}\n", commit.id, inert_markdown(&commit.title, None)));
        for bullet in &commit.acceptance {
            text.push_str(&format!("  - {}\n", inert_markdown(bullet, None)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::plan::parse_plan;

    #[test]
    fn every_state_of_a_pull_request_has_its_step() {
        let (open, merged, closed) =
            (Some((true, false)), Some((false, true)), Some((false, false)));
        for (pull, is_pushed, expected) in [
            (None, false, PullAction::Publish),
            (open, true, PullAction::Wait),
            (open, false, PullAction::Publish),
            (merged, true, PullAction::Finish),
            (merged, false, PullAction::LeftBehind),
            (closed, true, PullAction::Publish),
        ] {
            assert_eq!(next_pull_action(pull, is_pushed), expected, "{pull:?} {is_pushed}");
        }
    }

    #[test]
    fn a_pull_request_lists_what_was_done() {
        let plan = "### COMMIT-TF-001: Add it\n\nAcceptance:\n- it runs\n\nDone: [x]\n";
        let text = render_pull(&parse_plan(plan).unwrap());
        assert_eq!(text, "## Micro-commits\n\n- COMMIT-TF-001: Add it\n  - it runs\n");
    }

    #[test]
    fn a_plan_closes_nothing_and_calls_nobody() {
        let plan = "### COMMIT-TF-001: Add it, fixes #3\n\nAcceptance:\n- ask @all\n\nDone: [x]\n";
        let text = render_pull(&parse_plan(plan).unwrap());
        assert!(text.contains("fixes #\u{200b}3") && text.contains("@\u{200b}all"), "{text}");
    }
}
