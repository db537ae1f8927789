//! A pull request of a workstream: what is to be done about it, and what it says.

use super::plan::Plan;

/// What `wf merge` does next on a forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullAction {
    /// Push and open, or bring what is open up to date.
    Publish,
    /// Nothing: somebody has to merge it there.
    Wait,
    /// It is merged there, with everything that is here.
    Finish,
    /// It is merged there, and something here came later.
    LeftBehind,
}

/// What follows from the pull request, as open and merged, and from whether the branch is where it was pushed. One that was
/// closed without a merge is followed by a new one: who asks for the merge again wants it.
pub(crate) fn next_pull_action(pull: Option<(bool, bool)>, is_pushed: bool) -> PullAction {
    match (pull, is_pushed) {
        (None | Some((false, false)), _) | (Some((true, false)), false) => PullAction::Publish,
        (Some((true, false)), true) => PullAction::Wait,
        (Some((_, true)), true) => PullAction::Finish,
        (Some((_, true)), false) => PullAction::LeftBehind,
    }
}

/// The text of the pull request: the micro-commits, and what they were accepted for.
pub(crate) fn render_pull(plan: &Plan) -> String {
    let mut text = "## Micro-commits\n\n".to_owned();
    for commit in &plan.commits {
        text.push_str(&format!("- {}: {}\n", commit.id, commit.title));
        for bullet in &commit.acceptance {
            text.push_str(&format!("  - {bullet}\n"));
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
}
