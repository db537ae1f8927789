//! Reads the lines of any agent, one at a time, and tells what they say: news at once, a report at the end.
//!
//! Each agent's own module knows its events and its rule of success. What all have in common is here: lines that are
//! too long, lines that are no events, and agents that end before they say anything.

use serde_json::Value;

use crate::draft::ReportDraft;
use crate::field::cut;
use crate::provider::Provider;
use crate::report::{AgentOutcome, AgentReport, UNKNOWN_KEPT, UNKNOWN_LENGTH, Usage};
use crate::{claude, codex, command, opencode, pi, scripted};

/// The longest line that is read, in bytes. The beginning of a longer one is kept with the unknown.
pub const LINE_LIMIT: usize = 1024 * 1024;

/// The first status that stands for a signal, as shells count.
const FIRST_SIGNAL_STATUS: i32 = 128;

/// News from an agent, safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The conversation has an id.
    SessionStarted {
        /// The id.
        id: String,
    },
    /// A tool is used.
    ToolCall {
        /// The tool.
        name: String,
        /// What for, in one short line.
        summary: String,
    },
    /// The beginning of something that the agent said.
    Text(String),
    /// The tokens of this run so far.
    Tokens(Usage),
    /// The model did not answer well, and is asked again.
    Retrying {
        /// What was wrong.
        reason: String,
    },
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

/// Whether a line was an event of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Known,
    Unknown,
}

impl EventReader {
    /// For a conversation that begins, or an agent that counts each run by itself.
    pub fn new(provider: Provider) -> Self {
        Self::resuming(provider, Usage::default())
    }

    /// For a conversation that goes on. `earlier` is its last [`AgentReport::thread_usage`], which agents that count
    /// a whole conversation will count again.
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

    /// Reads one line, without its line break.
    pub fn push_line(&mut self, line: &str) -> Vec<Progress> {
        if !line.trim().is_empty() {
            match self.take(line) {
                EventKind::Known => self.has_events = true,
                EventKind::Unknown => self.keep(line),
            }
        }
        self.draft.take_news()
    }

    /// What the lines amount to. `exit` is the agent's exit status, if it had one; it never speaks for success, but
    /// may speak against it.
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
