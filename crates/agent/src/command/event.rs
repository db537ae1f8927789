//! Parser of the output of a program without events.

use crate::draft::ReportDraft;
use crate::reader::{EventKind, ProviderEvents};
use crate::report::AgentOutcome;

/// Bytes at the end of the output that are certainly kept as the answer.
const ANSWER_LIMIT: usize = 64 * 1024;

/// A program without events has no state.
#[derive(Debug)]
pub(crate) struct CommandEvents;

impl ProviderEvents for CommandEvents {
    /// Takes a line as part of the answer.
    fn take(&mut self, line: &str, draft: &mut ReportDraft) -> EventKind {
        let answer = draft.answer.get_or_insert_default();
        if !answer.is_empty() {
            answer.push('\n');
        }
        answer.push_str(&line[line.ceil_char_boundary(line.len().saturating_sub(ANSWER_LIMIT))..]);
        // Cut occasionally and not at each line, so that a long text stays cheap.
        if answer.len() > 2 * ANSWER_LIMIT {
            answer.drain(..answer.ceil_char_boundary(answer.len() - ANSWER_LIMIT));
        }
        draft.say(line);
        EventKind::Known
    }

    fn judge(&self, exit: Option<i32>, _draft: &ReportDraft) -> AgentOutcome {
        self.judge_silent(exit)
    }

    /// The status is the only evidence.
    fn judge_silent(&self, exit: Option<i32>) -> AgentOutcome {
        match exit {
            Some(0) => AgentOutcome::Finished,
            Some(code) => AgentOutcome::Failed { reason: format!("it ended with status {code}") },
            None => AgentOutcome::Interrupted,
        }
    }
}
