//! Parser of OpenCode's events: `step_start`, `tool_use`, `text`, `step_finish`, `error`.
//!
//! It prints nothing while it retries the model, and reports a tool only after its end.

use serde_json::Value;

use crate::draft::ReportDraft;
use crate::field::{count, number, text};
use crate::reader::{EventKind, LINE_LIMIT, ProviderEvents, parse_event};
use crate::refusal;
use crate::report::{AgentOutcome, QuotaReset, Usage};
use crate::tool_use::{ToolResult, ToolUse};

#[derive(Debug, Default)]
pub(crate) struct OpenCodeEvents {
    last_reason: Option<String>,
    error: Option<AgentOutcome>,
    /// True if the current step has text; the texts of a step belong together.
    has_text: bool,
}

impl OpenCodeEvents {
    fn take_text(&mut self, event: &Value, draft: &mut ReportDraft) {
        let Some(part) = text(event, "/part/text") else { return };
        match &mut draft.answer {
            Some(answer) if self.has_text && answer.len() > LINE_LIMIT => {}
            Some(answer) if self.has_text => {
                answer.push('\n');
                answer.push_str(part);
            }
            answer => *answer = Some(part.to_owned()),
        }
        self.has_text = true;
        draft.say(part);
    }

    fn take_finish(&mut self, event: &Value, draft: &mut ReportDraft) {
        self.last_reason = text(event, "/part/reason").map(str::to_owned);
        let usage = Usage {
            input: count(event, "/part/tokens/input"),
            output: count(event, "/part/tokens/output"),
            cache_read: count(event, "/part/tokens/cache/read"),
            cache_write: count(event, "/part/tokens/cache/write"),
            reasoning: count(event, "/part/tokens/reasoning"),
        };
        draft.add_usage(usage, number(event, "/part/cost"));
    }
}

impl ProviderEvents for OpenCodeEvents {
    fn take(&mut self, line: &str, draft: &mut ReportDraft) -> EventKind {
        let Some(event) = &parse_event(line) else { return EventKind::Unknown };
        match text(event, "/type") {
            Some("step_start") => {
                self.has_text = false;
                self.last_reason = None;
            }
            Some("tool_use") => take_tool(event, draft),
            Some("text") => self.take_text(event, draft),
            Some("step_finish") => self.take_finish(event, draft),
            Some("error") => self.error = Some(judge_error(event)),
            Some("reasoning") => {}
            Some(_) | None => return EventKind::Unknown,
        }
        draft.name_session(text(event, "/sessionID"));
        EventKind::Known
    }

    /// Success is status 0, no error, and a last step that ended with `stop`. A refused permission ends the run after
    /// a step that ended with `tool-calls`, with status 0 and without a message.
    fn judge(&self, exit: Option<i32>, draft: &ReportDraft) -> AgentOutcome {
        match (&self.error, self.last_reason.as_deref(), exit) {
            (Some(error), _, _) => error.clone(),
            (None, Some("stop"), Some(0)) => AgentOutcome::Finished,
            (None, Some("stop"), Some(code)) => AgentOutcome::Failed {
                reason: format!("its last step ended well, but its status is {code}"),
            },
            (None, Some("tool-calls"), Some(_)) if !draft.denials.is_empty() => {
                AgentOutcome::PermissionDenied
            }
            (None, None | Some("stop" | "tool-calls"), _) => AgentOutcome::Interrupted,
            (None, Some(reason), _) => {
                AgentOutcome::Failed { reason: format!("its last step ended with `{reason}`") }
            }
        }
    }
}

fn take_tool(event: &Value, draft: &mut ReportDraft) {
    let name = text(event, "/part/tool").unwrap_or("tool");
    let tool = ToolUse::new(name, event.pointer("/part/state/input"));
    if text(event, "/part/state/error").is_some_and(|error| error.contains("rejected permission")) {
        draft.deny(name, tool.detail.clone());
    }
    // A command that failed is a completed call, with the status beside it.
    let completed = text(event, "/part/state/status") == Some("completed");
    let exit = event.pointer("/part/state/metadata/exit").and_then(Value::as_i64);
    let output = text(event, "/part/state/output").or(text(event, "/part/state/error"));
    let ok = completed && exit.unwrap_or(0) == 0;
    let result = ToolResult::new(ok, output.unwrap_or_default()).with_status(exit);
    draft.add_call(tool, ToolResult { took_ms: took_ms(event), ..result });
}

fn took_ms(event: &Value) -> Option<u64> {
    let time = |name: &str| event.pointer("/part/state/time")?.get(name)?.as_u64();
    Some(time("end")?.saturating_sub(time("start")?))
}

fn judge_error(event: &Value) -> AgentOutcome {
    let name = text(event, "/error/name").unwrap_or("error");
    let message = text(event, "/error/data/message").unwrap_or(name);
    match name {
        "APIError" | "ProviderAuthError" => {
            let status = crate::field::status(event, "/error/data/statusCode");
            refusal::judge(status, message, retry_after(event))
        }
        "MessageAbortedError" => AgentOutcome::Interrupted,
        _ => AgentOutcome::Failed { reason: message.to_owned() },
    }
}

fn retry_after(event: &Value) -> Option<QuotaReset> {
    let seconds = text(event, "/error/data/responseHeaders/retry-after")?;
    seconds.trim().parse().ok().map(QuotaReset::InSecs)
}
