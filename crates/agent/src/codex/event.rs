//! Parser of Codex's events: `thread.started`, `turn.*`, `item.*` and `error`.
//!
//! An `error` line is a retry in progress, and an `error` *item* is a warning: only `turn.failed` is the end.

use serde_json::Value;

use crate::draft::ReportDraft;
use crate::field::{count, list, snippet, text};
use crate::reader::{EventKind, ProviderEvents, parse_event};
use crate::refusal;
use crate::report::{AgentOutcome, Usage};
use crate::tool_use::{ToolResult, ToolUse};

#[derive(Debug)]
pub(crate) struct CodexEvents {
    earlier: Usage,
    /// The last event, if it ends the turn: well, or with this message.
    end: Option<Result<(), String>>,
}

impl CodexEvents {
    pub(crate) fn after(earlier: Usage) -> Self {
        Self { earlier, end: None }
    }

    /// Takes the usage. Codex counts the whole thread, earlier runs included; cached input is part of its
    /// input, and reasoning part of its output.
    fn take_usage(&self, event: &Value, draft: &mut ReportDraft) {
        let cache_read = count(event, "/usage/cached_input_tokens");
        let reasoning = count(event, "/usage/reasoning_output_tokens");
        let thread = Usage {
            input: count(event, "/usage/input_tokens").saturating_sub(cache_read),
            output: count(event, "/usage/output_tokens").saturating_sub(reasoning),
            cache_read,
            cache_write: count(event, "/usage/cache_write_input_tokens"),
            reasoning,
        };
        draft.thread_usage = Some(thread);
        draft.usage = thread - self.earlier;
        draft.report_tokens();
    }
}

impl ProviderEvents for CodexEvents {
    fn take(&mut self, line: &str, draft: &mut ReportDraft) -> EventKind {
        let Some(event) = &parse_event(line) else { return EventKind::Unknown };
        let mut end = None;
        match text(event, "/type") {
            Some("thread.started") => draft.name_session(text(event, "/thread_id")),
            Some("turn.started" | "item.updated") => {}
            Some("item.started") => take_item(event, draft),
            Some("item.completed") => take_item_end(event, draft),
            Some("turn.completed") => {
                self.take_usage(event, draft);
                end = Some(Ok(()));
            }
            Some("turn.failed") => {
                let message = text(event, "/error/message").unwrap_or("the turn failed");
                end = Some(Err(message.to_owned()));
            }
            Some("error") => take_notice(event, draft),
            Some(_) | None => return EventKind::Unknown,
        }
        self.end = end;
        EventKind::Known
    }

    /// Success is status 0 and a last event that completes the turn.
    fn judge(&self, exit: Option<i32>, _draft: &ReportDraft) -> AgentOutcome {
        match (&self.end, exit) {
            (Some(Ok(())), Some(0)) => AgentOutcome::Finished,
            (Some(Ok(())), Some(code)) => AgentOutcome::Failed {
                reason: format!("its turn ended well, but its status is {code}"),
            },
            (Some(Err(message)), _) if refusal::speaks_of_model(message) => {
                refusal::judge(None, message, None)
            }
            (Some(Err(message)), _) => AgentOutcome::Failed { reason: message.clone() },
            (Some(Ok(())), None) | (None, _) => AgentOutcome::Interrupted,
        }
    }
}

fn take_item(event: &Value, draft: &mut ReportDraft) {
    if let (Some(id), Some(tool)) = (text(event, "/item/id"), tool_of(event)) {
        draft.open_call(id, tool);
    }
}

fn take_item_end(event: &Value, draft: &mut ReportDraft) {
    if text(event, "/item/type") == Some("agent_message") {
        draft.set_answer(text(event, "/item/text").unwrap_or_default().to_owned());
        return;
    }
    let Some(tool) = tool_of(event) else { return };
    let ok = text(event, "/item/status").is_none_or(|status| status == "completed");
    let id = text(event, "/item/id").unwrap_or_default();
    let output = text(event, "/item/aggregated_output").unwrap_or_default();
    let exit = event.pointer("/item/exit_code").and_then(Value::as_i64);
    let result = ToolResult::new(ok, output).with_status(exit);
    if !draft.close_call(id, result.clone()) {
        draft.add_call(tool, result);
    }
}

fn tool_of(event: &Value) -> Option<ToolUse> {
    let item = event.pointer("/item")?;
    Some(match text(item, "/type")? {
        "agent_message" | "reasoning" | "error" | "todo_list" => return None,
        "mcp_tool_call" => {
            let server = text(item, "/server").unwrap_or_default();
            let tool = text(item, "/tool").unwrap_or_default();
            ToolUse::new(&format!("mcp__{server}__{tool}"), item.pointer("/arguments"))
        }
        "file_change" => {
            let changes = item.pointer("/changes").map(Value::to_string).unwrap_or_default();
            ToolUse::other("file_change", snippet(&changes), describe_changes(item))
        }
        "web_search" => {
            let query = snippet(text(item, "/query").unwrap_or_default());
            let action = format!("searched for {query}");
            ToolUse::other("web_search", query, action)
        }
        other => ToolUse::command(other, text(item, "/command").unwrap_or_default()),
    })
}

fn describe_changes(item: &Value) -> String {
    let changes = list(item, "/changes").iter();
    let words: Vec<_> = changes
        .filter_map(|change| {
            let verb = match text(change, "/kind") {
                Some("add") => "added",
                Some("delete") => "deleted",
                Some(_) | None => "edited",
            };
            Some(format!("{verb} {}", text(change, "/path")?))
        })
        .collect();
    snippet(&words.join(", "))
}

fn take_notice(event: &Value, draft: &mut ReportDraft) {
    let message = text(event, "/message").unwrap_or_default();
    if message.starts_with("Reconnecting") {
        draft.report_retry(message);
    }
}
