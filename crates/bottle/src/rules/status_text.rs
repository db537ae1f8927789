//! The status comment on an issue: one comment that says how far the work is, edited as it goes on.

use jiff::Timestamp;
use model::inert::{inert_line, inert_markdown};
use orchestrator_db::WorkState;

/// Start of every status comment, by which a lost one is found again. An agent's text begins no HTML, so it cannot have it.
pub(crate) const STATUS_MARK: &str =
    "<!-- bot-bottle: status of this issue; this comment is edited as the work goes on -->";

/// Length limit of a reason or a question.
const TEXT_MAX_CHARS: usize = 4_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct StatusFacts<'a> {
    pub(crate) issue: u64,
    pub(crate) state: WorkState,
    pub(crate) reason: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) not_before: Option<Timestamp>,
    /// Time at which its bottle is destroyed, once its pull request is closed.
    pub(crate) destroy_at: Option<Timestamp>,
    /// The agent's question, if it asks one.
    pub(crate) question: Option<&'a str>,
    /// The last lines of the agent's log; empty where they do not matter.
    pub(crate) log: &'a str,
    /// Page of the bottle.
    pub(crate) page: Option<&'a str>,
}

pub(crate) fn render_status(facts: &StatusFacts<'_>) -> String {
    let StatusFacts { agent, reason, .. } = *facts;
    let agent = inert_line(agent);
    let reason = inert_line(&shorten(reason));
    let mut parts = vec![match facts.state {
        WorkState::Queued => format!("**Queued** for the agent `{agent}`."),
        WorkState::Claimed | WorkState::Running => {
            format!("**Working**: the agent `{agent}` is at it.")
        }
        WorkState::Waiting => match facts.not_before {
            Some(at) => format!("**Waiting** until {}: {reason}.", minute(at)),
            None => format!("**Waiting**: {reason}."),
        },
        WorkState::Frozen => format!("**Frozen** while people review: {reason}."),
        WorkState::NeedsAttention if facts.question.is_some() => {
            "**Needs you**: the agent asks.".to_owned()
        }
        WorkState::NeedsAttention => format!("**Needs you**: {reason}."),
        WorkState::Destroyed => format!("**Done**: {reason}."),
    }];
    if facts.state == WorkState::NeedsAttention {
        if let Some(question) = facts.question {
            let question = inert_markdown(&shorten(question), Some(facts.issue));
            parts.push(question.lines().map(|line| format!("> {line}\n")).collect());
        }
        parts.extend(facts.destroy_at.is_none().then(|| how_to_resume(&agent)));
        if !facts.log.trim().is_empty() {
            // Nothing acts in a code block, and the fence cannot be closed from inside.
            let log = facts.log.trim_end().replace("```", "'''");
            parts.push(format!(
                "<details><summary>Last lines of the log</summary>\n\n````text\n{log}\n````\n\n</details>"
            ));
        }
    }
    let is_kept = matches!(facts.state, WorkState::Frozen | WorkState::NeedsAttention);
    if let (Some(at), true) = (facts.destroy_at, is_kept) {
        parts.push(format!(
            "Its pull request is closed: comments start nothing, and its bottle is removed at {}.",
            minute(at)
        ));
    }
    parts.extend(facts.page.map(|page| format!("[The bottle]({page})")));
    format!("{STATUS_MARK}\n{}\n", parts.join("\n\n"))
}

/// The ways to go on, with their conditions: this text is not written again when a label is taken off.
fn how_to_resume(agent: &str) -> String {
    let label = match agent {
        "" => "its label".to_owned(),
        agent => format!("the label `bot-bottle:{agent}`"),
    };
    format!(
        "A comment by a member resumes it, while the issue has {label} and is assigned to a member; so does `/retry`."
    )
}

fn minute(at: Timestamp) -> impl std::fmt::Display {
    at.strftime("%Y-%m-%d %H:%M UTC")
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(state: WorkState, reason: &str) -> StatusFacts<'_> {
        StatusFacts {
            issue: 3,
            state,
            reason,
            agent: "worker",
            not_before: None,
            destroy_at: None,
            question: None,
            log: "",
            page: None,
        }
    }

    #[test]
    fn each_state_has_its_words() {
        let words = |state| {
            let text = render_status(&facts(state, "why"));
            text.strip_prefix(STATUS_MARK).expect("the mark").trim().to_owned()
        };
        assert_eq!(words(WorkState::Queued), "**Queued** for the agent `worker`.");
        assert_eq!(words(WorkState::Running), "**Working**: the agent `worker` is at it.");
        assert_eq!(words(WorkState::Frozen), "**Frozen** while people review: why.");
        let needs = words(WorkState::NeedsAttention);
        let resumes =
            "A comment by a member resumes it, while the issue has the label `bot-bottle:worker`";
        assert!(needs.starts_with(&format!("**Needs you**: why.\n\n{resumes}")), "{needs}");
    }

    #[test]
    fn what_is_about_to_be_removed_is_not_resumed_by_a_comment() {
        let at: Timestamp = "2026-11-16T10:00:00Z".parse().expect("a time");
        for state in [WorkState::Frozen, WorkState::NeedsAttention] {
            let closed = StatusFacts { destroy_at: Some(at), ..facts(state, "why") };
            let text = render_status(&closed);
            assert!(!text.contains("resumes it"), "{text}");
            assert!(text.contains("its bottle is removed at 2026-11-16 10:00 UTC"), "{text}");
        }
    }

    #[test]
    fn words_of_an_agent_do_nothing() {
        let asking = StatusFacts {
            question: Some("Which?\n<!-- x -->\ncloses #26 @all\n/close"),
            log: "```\n@all closes #26",
            page: Some("https://bottles.example/bottles/a"),
            ..facts(WorkState::NeedsAttention, "closes #26")
        };
        let text = render_status(&asking);
        assert_eq!(text.matches("<!--").count(), 1, "{text}");
        let quoted = text.split("<details>").next().expect("a text");
        assert!(!quoted.contains("#26") && !quoted.contains("@all"), "{quoted}");
        assert!(text.contains("````text\n'''\n@all closes #26\n````"), "{text}");
        assert!(text.contains("[The bottle](https://bottles.example/bottles/a)"), "{text}");
        let reason = render_status(&facts(WorkState::NeedsAttention, "closes #26"));
        assert!(!reason.contains("#26"), "{reason}");
    }
}
