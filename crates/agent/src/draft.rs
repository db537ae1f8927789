//! A report under construction, and the progress events produced on the way.

use crate::field::{shown, snippet};
use crate::reader::{Progress, ToolEnd};
use crate::report::{DeniedTool, TOOL_CALLS_KEPT, ToolCall, Usage};
use crate::tool_use::{ToolKind, ToolResult, ToolUse};

/// Length limit of a text from the agent, in bytes.
const TEXT_LENGTH: usize = 16 * 1024;

/// Facts of the lines so far.
#[derive(Debug, Default)]
pub(crate) struct ReportDraft {
    pub(crate) answer: Option<String>,
    pub(crate) usage: Usage,
    pub(crate) thread_usage: Option<Usage>,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) session_id: Option<String>,
    pub(crate) tool_calls: Vec<ToolCall>,
    pub(crate) denials: Vec<DeniedTool>,
    /// Calls that have not ended.
    open_calls: Vec<OpenCall>,
    /// The time of the current line.
    at_ms: Option<u64>,
    progress: Vec<Progress>,
}

#[derive(Debug)]
struct OpenCall {
    /// The agent's own id.
    id: String,
    /// Its place among the kept calls.
    index: usize,
    kind: ToolKind,
    action: String,
    since_ms: Option<u64>,
}

impl ReportDraft {
    pub(crate) fn take_progress(&mut self) -> Vec<Progress> {
        std::mem::take(&mut self.progress)
    }

    pub(crate) fn set_time(&mut self, at_ms: Option<u64>) {
        self.at_ms = at_ms;
    }

    pub(crate) fn open_actions(&self) -> impl Iterator<Item = &str> {
        self.open_calls.iter().map(|call| call.action.as_str())
    }

    /// Stores the session id; the first one counts.
    pub(crate) fn name_session(&mut self, id: Option<&str>) {
        if let (None, Some(id)) = (&self.session_id, id) {
            self.session_id = Some(id.to_owned());
            self.progress.push(Progress::SessionStarted { id: snippet(id) });
        }
    }

    pub(crate) fn say(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.progress.push(Progress::Text(shown(text, TEXT_LENGTH)));
        }
    }

    /// Stores the last message to the user.
    pub(crate) fn set_answer(&mut self, text: String) {
        self.say(&text);
        self.answer = Some(text);
    }

    pub(crate) fn report_retry(&mut self, reason: &str) {
        self.progress.push(Progress::Retrying { reason: snippet(reason) });
    }

    pub(crate) fn report_tokens(&mut self) {
        self.progress.push(Progress::Tokens(self.usage));
    }

    pub(crate) fn add_usage(&mut self, usage: Usage, cost_usd: Option<f64>) {
        self.usage = self.usage + usage;
        if let Some(cost) = cost_usd {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
        }
        self.report_tokens();
    }

    /// Opens a call whose end will carry the same id.
    pub(crate) fn open_call(&mut self, id: &str, tool: ToolUse) {
        let (kind, action) = (tool.kind, tool.action.clone());
        if let Some(index) = self.begin_call(tool, None) {
            let since_ms = self.at_ms;
            self.open_calls.push(OpenCall { id: id.to_owned(), index, kind, action, since_ms });
        }
    }

    /// Closes a call; returns whether it was open.
    pub(crate) fn close_call(&mut self, id: &str, result: ToolResult) -> bool {
        let Some(place) = self.open_calls.iter().position(|call| call.id == id) else {
            return false;
        };
        let OpenCall { index, kind, action, since_ms, .. } = self.open_calls.swap_remove(place);
        self.tool_calls[index].ok = Some(result.ok);
        let waited = self.at_ms.zip(since_ms).map(|(now, since)| now.saturating_sub(since));
        self.end_call(kind, action, ToolResult { took_ms: result.took_ms.or(waited), ..result });
        true
    }

    /// Adds a call that is reported only after its end.
    pub(crate) fn add_call(&mut self, tool: ToolUse, result: ToolResult) {
        let (kind, action) = (tool.kind, tool.action.clone());
        self.begin_call(tool, Some(result.ok));
        self.end_call(kind, action, result);
    }

    pub(crate) fn deny(&mut self, tool: &str, detail: String) {
        if self.denials.len() < TOOL_CALLS_KEPT {
            self.denials.push(DeniedTool { tool: snippet(tool), detail });
        }
    }

    /// Adds a call, and returns its index if it is kept.
    fn begin_call(&mut self, tool: ToolUse, ok: Option<bool>) -> Option<usize> {
        let ToolUse { name, detail, .. } = tool;
        self.progress.push(Progress::ToolCall { name: name.clone(), summary: detail.clone() });
        if self.tool_calls.len() == TOOL_CALLS_KEPT {
            return None;
        }
        self.tool_calls.push(ToolCall { name, ok, detail });
        Some(self.tool_calls.len() - 1)
    }

    fn end_call(&mut self, kind: ToolKind, action: String, result: ToolResult) {
        let ToolResult { ok, status, output, took_ms } = result;
        self.progress.push(Progress::ToolEnd(ToolEnd {
            kind,
            action,
            ok,
            status,
            output,
            took_ms,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_once_and_only_if_it_began() {
        let mut draft = ReportDraft::default();
        draft.open_call("1", ToolUse::command("bash", "ls"));
        assert!(draft.close_call("1", ToolResult::new(true, "")));
        assert!(!draft.close_call("1", ToolResult::default()));
        assert!(!draft.close_call("2", ToolResult::default()));
        assert_eq!(draft.tool_calls[0].ok, Some(true));
    }

    #[test]
    fn an_agent_without_end_does_not_fill_the_memory() {
        let mut draft = ReportDraft::default();
        for index in 0..TOOL_CALLS_KEPT + 5 {
            draft.open_call(&index.to_string(), ToolUse::command("bash", ""));
            draft.take_progress();
        }
        assert_eq!(draft.tool_calls.len(), TOOL_CALLS_KEPT);
    }
}
