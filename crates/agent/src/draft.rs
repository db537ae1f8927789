//! A report under construction, and the progress events produced on the way.

use crate::field::snippet;
use crate::reader::Progress;
use crate::report::{DeniedTool, TOOL_CALLS_KEPT, ToolCall, Usage};

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
    /// The agent's own ids of the calls that have not ended.
    open_calls: Vec<(String, usize)>,
    progress: Vec<Progress>,
}

impl ReportDraft {
    pub(crate) fn take_progress(&mut self) -> Vec<Progress> {
        std::mem::take(&mut self.progress)
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
            self.progress.push(Progress::Text(snippet(text)));
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
    pub(crate) fn open_call(&mut self, id: &str, name: &str, detail: String) {
        if let Some(index) = self.add_call(name, detail, None) {
            self.open_calls.push((id.to_owned(), index));
        }
    }

    /// Closes a call; returns whether it was open.
    pub(crate) fn close_call(&mut self, id: &str, ok: bool) -> bool {
        let Some(place) = self.open_calls.iter().position(|(open, _)| open == id) else {
            return false;
        };
        let (_, index) = self.open_calls.swap_remove(place);
        self.tool_calls[index].ok = Some(ok);
        true
    }

    pub(crate) fn deny(&mut self, tool: &str, detail: String) {
        if self.denials.len() < TOOL_CALLS_KEPT {
            self.denials.push(DeniedTool { tool: snippet(tool), detail });
        }
    }

    /// Adds a call, and returns its index if it is kept.
    pub(crate) fn add_call(
        &mut self,
        name: &str,
        detail: String,
        ok: Option<bool>,
    ) -> Option<usize> {
        let name = snippet(name);
        self.progress.push(Progress::ToolCall { name: name.clone(), summary: detail.clone() });
        if self.tool_calls.len() == TOOL_CALLS_KEPT {
            return None;
        }
        self.tool_calls.push(ToolCall { name, ok, detail });
        Some(self.tool_calls.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_once_and_only_if_it_began() {
        let mut draft = ReportDraft::default();
        draft.open_call("1", "bash", "ls".to_owned());
        assert!(draft.close_call("1", true));
        assert!(!draft.close_call("1", false));
        assert!(!draft.close_call("2", false));
        assert_eq!(draft.tool_calls[0].ok, Some(true));
    }

    #[test]
    fn an_agent_without_end_does_not_fill_the_memory() {
        let mut draft = ReportDraft::default();
        for index in 0..TOOL_CALLS_KEPT + 5 {
            draft.open_call(&index.to_string(), "bash", String::new());
            draft.take_progress();
        }
        assert_eq!(draft.tool_calls.len(), TOOL_CALLS_KEPT);
    }
}
