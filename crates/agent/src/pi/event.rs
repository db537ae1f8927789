//! Parser of pi's events. Only `message_end` counts: other events repeat its numbers, and retries of the
//! model produce several `agent_end`.

use serde_json::Value;

use crate::draft::ReportDraft;
use crate::field::{block_texts, count, flag, number, result_text, text};
use crate::reader::{EventKind, ProviderEvents, parse_event};
use crate::refusal;
use crate::report::{AgentOutcome, Usage};
use crate::tool_use::{ToolResult, ToolUse};

#[derive(Debug, Default)]
pub(crate) struct PiEvents {
    /// Outcome by the model's last message.
    end: Option<AgentOutcome>,
}

/// Beginning of a line that only repeats a growing message. It may be very long, so it is not parsed.
const REPETITION: &str = r#"{"type":"message_update""#;

impl PiEvents {
    fn take_message(&mut self, event: &Value, draft: &mut ReportDraft) {
        let Some(message) = event.pointer("/message") else { return };
        if text(message, "/role") != Some("assistant") {
            return;
        }
        let usage = Usage {
            input: count(message, "/usage/input"),
            output: count(message, "/usage/output"),
            cache_read: count(message, "/usage/cacheRead"),
            cache_write: count(message, "/usage/cacheWrite"),
            reasoning: 0,
        };
        draft.add_usage(usage, number(message, "/usage/cost/total"));
        if let Some(answer) = block_texts(message) {
            draft.set_answer(answer);
        }
        self.end = Some(match text(message, "/stopReason").unwrap_or("nothing") {
            "stop" => AgentOutcome::Finished,
            "error" => {
                let error = text(message, "/errorMessage").unwrap_or("the model did not answer");
                refusal::judge(None, error, None)
            }
            "toolUse" | "aborted" => AgentOutcome::Interrupted,
            other => {
                AgentOutcome::Failed { reason: format!("its last message ended with `{other}`") }
            }
        });
    }
}

impl ProviderEvents for PiEvents {
    fn take(&mut self, line: &str, draft: &mut ReportDraft) -> EventKind {
        if line.starts_with(REPETITION) {
            return EventKind::Known;
        }
        let Some(event) = &parse_event(line) else { return EventKind::Unknown };
        match text(event, "/type") {
            Some("session") => draft.name_session(text(event, "/id")),
            Some("message_end") => self.take_message(event, draft),
            Some("tool_execution_start") => {
                let id = text(event, "/toolCallId").unwrap_or_default();
                let name = text(event, "/toolName").unwrap_or("tool");
                draft.open_call(id, ToolUse::new(name, event.pointer("/args")));
            }
            Some("tool_execution_end") => {
                let id = text(event, "/toolCallId").unwrap_or_default();
                let output = result_text(event.pointer("/result/content"));
                let result = ToolResult::new(!flag(event, "/isError"), &output);
                draft.close_call(id, result.with_status(exit_code(&output)));
            }
            Some("auto_retry_start") => {
                draft.report_retry(text(event, "/errorMessage").unwrap_or("unknown"));
            }
            Some(
                "agent_start"
                | "agent_end"
                | "turn_start"
                | "turn_end"
                | "message_start"
                | "message_update"
                | "tool_execution_update"
                | "auto_retry_end"
                | "queue_update"
                | "compaction_start"
                | "compaction_end",
            ) => {}
            Some(_) | None => return EventKind::Unknown,
        }
        EventKind::Known
    }

    /// Success is a last message of the model that ended with `stop`.
    fn judge(&self, _exit: Option<i32>, _draft: &ReportDraft) -> AgentOutcome {
        self.end.clone().unwrap_or(AgentOutcome::Interrupted)
    }
}

/// Parses the exit code at the end of the result of a command that failed.
fn exit_code(output: &str) -> Option<i64> {
    output.trim_end().rsplit_once("Command exited with code ")?.1.parse().ok()
}
