//! Parser of the events that the player of scripts prints on standard output.
//!
//! The commands of a script write to the same stdout, so anything may stand between the events, and a command
//! may even print lines that look like them. A report is only a claim.

use guest::script::PlayerEvent;

use crate::draft::ReportDraft;
use crate::field::snippet;
use crate::reader::{EventKind, ProviderEvents, parse_event};
use crate::report::AgentOutcome;
use crate::tool_use::{ToolResult, ToolUse};

#[derive(Debug, Default)]
pub(crate) struct ScriptedEvents {
    question: Option<String>,
    /// The status of the whole script.
    status: Option<i32>,
}

impl ProviderEvents for ScriptedEvents {
    fn take(&mut self, line: &str, draft: &mut ReportDraft) -> EventKind {
        let Some(event) = parse_event(line) else { return EventKind::Unknown };
        let Ok(event) = serde_json::from_value(event) else { return EventKind::Unknown };
        match event {
            PlayerEvent::Step { index, kind, detail } => {
                draft.open_call(&index.to_string(), step_of(&kind, &detail));
            }
            PlayerEvent::StepDone { index, status, ms } => {
                let result = ToolResult { took_ms: Some(ms), ..ToolResult::new(status == 0, "") };
                draft.close_call(&index.to_string(), result.with_status(Some(status.into())));
            }
            PlayerEvent::Clarification { question, .. } => {
                draft.say(&question);
                self.question = Some(question);
            }
            PlayerEvent::Result { status } => self.status = Some(status),
        }
        EventKind::Known
    }

    /// The script's own status counts; that of the process adds nothing.
    fn judge(&self, _exit: Option<i32>, _draft: &ReportDraft) -> AgentOutcome {
        match (self.status, &self.question) {
            (Some(0), Some(question)) => {
                AgentOutcome::NeedsClarification { question: question.clone() }
            }
            (Some(0), None) => AgentOutcome::Finished,
            (Some(status), _) => {
                AgentOutcome::Failed { reason: format!("the script ended with status {status}") }
            }
            (None, _) => AgentOutcome::Interrupted,
        }
    }
}

fn step_of(kind: &str, detail: &str) -> ToolUse {
    let detail_line = snippet(detail);
    match kind {
        "run" => ToolUse::command(kind, detail),
        "print" => ToolUse::other(kind, detail_line, "printed a text".to_owned()),
        "sleep" => ToolUse::other(kind, detail_line.clone(), format!("slept {detail_line}")),
        "write" => ToolUse::other(kind, detail_line.clone(), format!("wrote {detail_line}")),
        _ => ToolUse::other(kind, detail_line.clone(), format!("did {kind}: {detail_line}")),
    }
}
