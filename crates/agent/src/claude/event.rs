//! Parser of Claude Code's events: `system`, `assistant`, `user`, `result`.
//!
//! Tokens are counted from `result` alone: an `assistant` line has the numbers of a message that has only
//! begun. Results that are errors have the subtype `success` too.

use serde_json::Value;

use crate::draft::ReportDraft;
use crate::field::{
    block_texts, count, flag, input_summary, list, number, result_text, status, text,
};
use crate::reader::{EventKind, ProviderEvents, parse_event};
use crate::refusal;
use crate::report::{AgentOutcome, QuotaReset, Usage};
use crate::tool_use::{ToolResult, ToolUse};

#[derive(Debug, Default)]
pub(crate) struct ClaudeEvents {
    /// Outcome, if the last event is a result.
    end: Option<AgentOutcome>,
    /// Time at which the exhausted quota resets.
    resets_at: Option<u64>,
}

impl ClaudeEvents {
    fn take_system(&mut self, event: &Value, draft: &mut ReportDraft) {
        self.end = None;
        draft.name_session(text(event, "/session_id"));
        if text(event, "/subtype") == Some("api_retry") {
            let reason = text(event, "/error").unwrap_or("unknown");
            match status(event, "/error_status") {
                Some(status) => draft.report_retry(&format!("{status} {reason}")),
                None => draft.report_retry(reason),
            }
        }
    }

    fn take_assistant(&mut self, event: &Value, draft: &mut ReportDraft) {
        self.end = None;
        for block in list(event, "/message/content") {
            if text(block, "/type") == Some("tool_use") {
                let name = text(block, "/name").unwrap_or("tool");
                let id = text(block, "/id").unwrap_or_default();
                draft.open_call(id, ToolUse::new(name, block.pointer("/input")));
            }
        }
        // A message synthesised for a model error is not an answer, nor is the text of a subagent.
        let made_up = text(event, "/message/model") == Some("<synthetic>");
        let from_subagent = text(event, "/parent_tool_use_id").is_some();
        if let Some(answer) = event.pointer("/message").and_then(block_texts)
            && !made_up
            && !from_subagent
        {
            draft.set_answer(answer);
        }
    }

    fn take_user(&mut self, event: &Value, draft: &mut ReportDraft) {
        self.end = None;
        for block in list(event, "/message/content") {
            if let Some(id) = text(block, "/tool_use_id") {
                let output = result_text(block.pointer("/content"));
                let result = ToolResult::new(!flag(block, "/is_error"), &output);
                draft.close_call(id, result.with_status(exit_code(&output)));
            }
        }
    }

    fn take_result(&mut self, event: &Value, draft: &mut ReportDraft) {
        draft.name_session(text(event, "/session_id"));
        draft.usage = Usage {
            input: count(event, "/usage/input_tokens"),
            output: count(event, "/usage/output_tokens"),
            cache_read: count(event, "/usage/cache_read_input_tokens"),
            cache_write: count(event, "/usage/cache_creation_input_tokens"),
            reasoning: 0,
        };
        draft.cost_usd = number(event, "/total_cost_usd");
        draft.report_tokens();
        draft.denials.clear();
        for denial in list(event, "/permission_denials") {
            let tool = text(denial, "/tool_name").unwrap_or("tool");
            draft.deny(tool, input_summary(denial.pointer("/tool_input")));
        }
        let end = self.judge_result(event);
        if end.is_finished()
            && let Some(answer) = text(event, "/result")
        {
            draft.answer = Some(answer.to_owned());
        }
        self.end = Some(end);
    }

    fn judge_result(&self, event: &Value) -> AgentOutcome {
        if event.pointer("/is_error").and_then(Value::as_bool) == Some(false) {
            return AgentOutcome::Finished;
        }
        if text(event, "/terminal_reason").is_some_and(|reason| reason.starts_with("aborted")) {
            return AgentOutcome::Interrupted;
        }
        match text(event, "/subtype") {
            Some("success") | None => refusal::judge(
                status(event, "/api_error_status"),
                text(event, "/result").unwrap_or("the model did not answer"),
                self.resets_at.map(QuotaReset::UnixSecs),
            ),
            Some(subtype) => AgentOutcome::Failed { reason: reason_of(event, subtype) },
        }
    }
}

impl ProviderEvents for ClaudeEvents {
    fn take(&mut self, line: &str, draft: &mut ReportDraft) -> EventKind {
        let Some(event) = &parse_event(line) else { return EventKind::Unknown };
        match text(event, "/type") {
            Some("system") => self.take_system(event, draft),
            Some("assistant") => self.take_assistant(event, draft),
            Some("user") => self.take_user(event, draft),
            Some("result") => self.take_result(event, draft),
            Some("rate_limit_event") => {
                if text(event, "/rate_limit_info/status") == Some("rejected") {
                    self.resets_at =
                        event.pointer("/rate_limit_info/resetsAt").and_then(Value::as_u64);
                }
            }
            _ => return EventKind::Unknown,
        }
        EventKind::Known
    }

    /// Success is a last line `result` that is neither an error nor has denials.
    fn judge(&self, _exit: Option<i32>, draft: &ReportDraft) -> AgentOutcome {
        match &self.end {
            Some(AgentOutcome::Finished) if !draft.denials.is_empty() => {
                AgentOutcome::PermissionDenied
            }
            Some(end) => end.clone(),
            None => AgentOutcome::Interrupted,
        }
    }
}

/// Parses the exit code that begins the result of a command that failed.
fn exit_code(output: &str) -> Option<i64> {
    output.strip_prefix("Exit code ")?.lines().next()?.trim().parse().ok()
}

fn reason_of(event: &Value, subtype: &str) -> String {
    let errors: Vec<_> = list(event, "/errors").iter().filter_map(Value::as_str).collect();
    if errors.is_empty() { subtype.to_owned() } else { errors.join("; ") }
}
