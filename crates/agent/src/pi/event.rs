//! Parser of pi's events. Only `message_end` counts: other events repeat its numbers, and retries of the
//! model produce several `agent_end`.

use serde_json::Value;

use crate::draft::ReportDraft;
use crate::field::{block_texts, count, flag, input_summary, number, text};
use crate::reader::EventKind;
use crate::refusal;
use crate::report::{AgentOutcome, Usage};

/// State of the parser.
#[derive(Debug, Default)]
pub(crate) struct PiEvents {
    /// Stop reason of the model's last message.
    stop: Option<MessageEnd>,
}

#[derive(Debug)]
struct MessageEnd {
    reason: String,
    error: Option<String>,
}

/// Returns whether a line only repeats a growing message. It may be very long, so it is not parsed.
pub(crate) fn is_repetition(line: &str) -> bool {
    line.starts_with(r#"{"type":"message_update""#)
}

impl PiEvents {
    pub(crate) fn take(&mut self, event: &Value, draft: &mut ReportDraft) -> EventKind {
        match text(event, "/type") {
            Some("session") => draft.name_session(text(event, "/id")),
            Some("message_end") => self.take_message(event, draft),
            Some("tool_execution_start") => {
                let id = text(event, "/toolCallId").unwrap_or_default();
                let name = text(event, "/toolName").unwrap_or("tool");
                draft.open_call(id, name, input_summary(event.pointer("/args")));
            }
            Some("tool_execution_end") => {
                let id = text(event, "/toolCallId").unwrap_or_default();
                draft.close_call(id, !flag(event, "/isError"));
            }
            Some("auto_retry_start") => {
                draft.tell_retry(text(event, "/errorMessage").unwrap_or("unknown"));
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

    /// Judges the outcome. Success is a last message of the model that ended with `stop`.
    pub(crate) fn judge(&self) -> AgentOutcome {
        let Some(MessageEnd { reason, error }) = &self.stop else {
            return AgentOutcome::Interrupted;
        };
        match reason.as_str() {
            "stop" => AgentOutcome::Finished,
            "error" => {
                refusal::judge(None, error.as_deref().unwrap_or("the model did not answer"), None)
            }
            "toolUse" | "aborted" => AgentOutcome::Interrupted,
            other => {
                AgentOutcome::Failed { reason: format!("its last message ended with `{other}`") }
            }
        }
    }

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
        if let Some(said) = block_texts(message) {
            draft.say(&said);
            draft.answer = Some(said);
        }
        self.stop = Some(MessageEnd {
            reason: text(message, "/stopReason").unwrap_or("nothing").to_owned(),
            error: text(message, "/errorMessage").map(str::to_owned),
        });
    }
}
