//! A plan before the work: the prompt, the comment, and the words that approve it.

use model::inert::inert_markdown;

/// Start of the comment with a plan, by which it is found again. An agent's text begins no HTML, so it cannot have it.
pub(crate) const PLAN_MARK: &str =
    "<!-- bot-bottle: plan for this issue; this comment is edited when the plan changes -->";

/// Prompt of a planning agent, beside its task.
const PLAN_PROMPT: &str = "First a plan, and no work yet: change nothing and commit nothing. Read the issue and the \
    repository, then hand in a plan with signal_done(success, plan): what you will change and where, how you will test it, \
    what could go wrong, and what you are not sure about. It is Markdown for people, who approve or correct it before you \
    begin. If there is a plan of yours already, take in what people said about it and hand in the whole new plan.";

/// Prompt of an agent whose plan is approved.
pub(crate) const APPROVED_PROMPT: &str =
    "Your plan is approved. Do the work now, as the plan and what people said about it have it.";

/// Comments that are an approval as a whole, in lower case and without marks at their end.
const APPROVALS: [&str; 12] = [
    "approve",
    "approved",
    "i approve",
    "lgtm",
    "looks good",
    "looks good to me",
    "go ahead",
    "yes",
    "ok",
    "okay",
    "+1",
    "\u{1f44d}",
];

pub(crate) fn plan_task(task: &str) -> String {
    format!("{}\n\n{PLAN_PROMPT}", task.trim())
}

/// Returns whether a comment says nothing but that the plan is approved.
pub(crate) fn is_approval(text: &str) -> bool {
    let text = text.trim().trim_end_matches(['.', '!']).to_lowercase();
    APPROVALS.contains(&text.as_str())
}

/// The comment with a plan.
pub(crate) fn render_plan(issue: u64, plan: &str) -> String {
    format!(
        "{PLAN_MARK}\n**Plan**, before any work:\n\n{}\n\nA member approves it with `/approve`, with a thumbs-up on this \
         comment, or in words (\"go ahead\"). Any other comment of a member corrects it: then there is a new plan.\n",
        inert_markdown(plan.trim(), Some(issue))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_of_approval_approve() {
        for text in ["LGTM", "Go ahead.", " yes!", "approved", "\u{1f44d}", "Looks good to me"] {
            assert!(is_approval(text), "{text}");
        }
        for text in ["", "yes, but use SQLite", "not approved", "go ahead and delete it", "no"] {
            assert!(!is_approval(text), "{text}");
        }
    }

    #[test]
    fn a_plan_does_nothing_else() {
        let text = render_plan(3, "1. sort\n<!-- x -->\nCloses #26 @all\n");
        assert!(text.starts_with(PLAN_MARK) && text.contains("`/approve`"), "{text}");
        assert_eq!(text.matches("<!--").count(), 1, "{text}");
        assert!(!text.contains("#26") && !text.contains("@all"), "{text}");
    }
}
