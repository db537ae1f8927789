//! Reader of the output lines of any agent: progress events at once, a report at the end.
//!
//! Each agent's own module knows its events and its rule of success. This module has the common parts: lines
//! that are too long, lines that are not events, and agents that end without output.

use serde_json::Value;

use crate::draft::ReportDraft;
use crate::field::cut;
use crate::provider::Provider;
use crate::report::{AgentOutcome, AgentReport, UNKNOWN_KEPT, UNKNOWN_LENGTH, Usage};
use crate::{claude, codex, command, opencode, pi, scripted};

/// Length limit of a line, in bytes. The beginning of a longer one is kept with the unknown.
pub const LINE_LIMIT: usize = 1024 * 1024;

/// The first status that means a signal, by the convention of shells.
const FIRST_SIGNAL_STATUS: i32 = 128;

/// Progress event of an agent, safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The session has an id.
    SessionStarted { id: String },
    /// A tool is used.
    ToolCall {
        name: String,
        /// Summary of its input, in one short line.
        summary: String,
    },
    /// The beginning of a text from the agent.
    Text(String),
    /// The tokens of this run so far.
    Tokens(Usage),
    /// The model returned an error, and the agent retries.
    Retrying { reason: String },
}

/// Reads the lines of one run of one agent.
#[derive(Debug)]
pub struct EventReader {
    events: ProviderEvents,
    draft: ReportDraft,
    /// True if an event of the agent was read.
    has_events: bool,
    unknown: Vec<String>,
    unknown_count: u64,
}

/// Per-provider state of the reader.
#[derive(Debug)]
enum ProviderEvents {
    OpenCode(opencode::OpenCodeEvents),
    Codex(codex::CodexEvents),
    Claude(claude::ClaudeEvents),
    Pi(pi::PiEvents),
    Command,
    Scripted(scripted::ScriptedEvents),
}

/// Classification of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Known,
    Unknown,
}

impl EventReader {
    /// Creates a reader for a new session, or for an agent that counts each run separately.
    pub fn new(provider: Provider) -> Self {
        Self::resuming(provider, Usage::default())
    }

    /// Creates a reader for a resumed session. `earlier` is its last [`AgentReport::thread_usage`], which
    /// agents that count a whole session will include again.
    pub fn resuming(provider: Provider, earlier: Usage) -> Self {
        let events = match provider {
            Provider::OpenCode => ProviderEvents::OpenCode(opencode::OpenCodeEvents::default()),
            Provider::Codex => ProviderEvents::Codex(codex::CodexEvents::after(earlier)),
            Provider::Claude => ProviderEvents::Claude(claude::ClaudeEvents::default()),
            Provider::Pi => ProviderEvents::Pi(pi::PiEvents::default()),
            Provider::Command => ProviderEvents::Command,
            Provider::Scripted => ProviderEvents::Scripted(scripted::ScriptedEvents::default()),
        };
        Self {
            events,
            draft: ReportDraft::default(),
            has_events: false,
            unknown: Vec::new(),
            unknown_count: 0,
        }
    }

    /// Parses one line, without its line break.
    pub fn push_line(&mut self, line: &str) -> Vec<Progress> {
        if !line.trim().is_empty() {
            match self.take(line) {
                EventKind::Known => self.has_events = true,
                EventKind::Unknown => self.keep(line),
            }
        }
        self.draft.take_news()
    }

    /// Returns the report. `exit` is the agent's exit status, if it had one; it never proves success, but may
    /// disprove it.
    pub fn finish(self, exit: Option<i32>) -> AgentReport {
        let outcome = self.judge(exit);
        let draft = self.draft;
        let usage = draft.usage;
        AgentReport {
            outcome,
            answer: draft.answer,
            usage,
            thread_usage: draft.thread_usage,
            cost_usd: draft.cost_usd.filter(|&cost| cost > 0.0 || usage.total() == 0),
            session_id: draft.session_id,
            tool_calls: draft.tool_calls,
            denials: draft.denials,
            unknown: self.unknown,
            unknown_count: self.unknown_count,
        }
    }

    fn take(&mut self, line: &str) -> EventKind {
        if matches!(self.events, ProviderEvents::Command) {
            return command::take(line, &mut self.draft);
        }
        if matches!(self.events, ProviderEvents::Pi(_)) && pi::is_repetition(line) {
            return EventKind::Known;
        }
        if line.len() > LINE_LIMIT {
            return EventKind::Unknown;
        }
        let Ok(event) = serde_json::from_str::<Value>(line) else { return EventKind::Unknown };
        let draft = &mut self.draft;
        match &mut self.events {
            ProviderEvents::OpenCode(events) => events.take(&event, draft),
            ProviderEvents::Codex(events) => events.take(&event, draft),
            ProviderEvents::Claude(events) => events.take(&event, draft),
            ProviderEvents::Pi(events) => events.take(&event, draft),
            ProviderEvents::Command => EventKind::Unknown,
            ProviderEvents::Scripted(events) => events.take(event, draft),
        }
    }

    fn keep(&mut self, line: &str) {
        self.unknown_count += 1;
        if self.unknown.len() < UNKNOWN_KEPT {
            self.unknown.push(cut(line, UNKNOWN_LENGTH).to_owned());
        }
    }

    fn judge(&self, exit: Option<i32>) -> AgentOutcome {
        match (&self.events, self.has_events, exit) {
            (ProviderEvents::Command, _, _) => command::judge(exit),
            (_, false, Some(code)) if code < FIRST_SIGNAL_STATUS => AgentOutcome::Failed {
                reason: format!("it ended with status {code} before its first event"),
            },
            (_, false, _) => AgentOutcome::Interrupted,
            (ProviderEvents::OpenCode(events), ..) => events.judge(exit, &self.draft),
            (ProviderEvents::Codex(events), ..) => events.judge(exit),
            (ProviderEvents::Claude(events), ..) => events.judge(&self.draft),
            (ProviderEvents::Pi(events), ..) => events.judge(),
            (ProviderEvents::Scripted(events), ..) => events.judge(),
        }
    }
}
