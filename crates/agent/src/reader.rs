//! Reader of the output lines of any agent: progress events at once, a report at the end.
//!
//! Each agent's own module knows its events and its rule of success. This module has the common parts: lines
//! that are too long, lines that are not events, and agents that end without output.

use std::fmt::Debug;

use serde_json::Value;

use crate::draft::ReportDraft;
use crate::field::cut;
use crate::provider::Provider;
use crate::report::{AgentOutcome, AgentReport, UNKNOWN_KEPT, UNKNOWN_LENGTH, Usage};
use crate::tool_use::ToolKind;
use crate::{claude, codex, command, opencode, pi, scripted};

/// Length limit of a line, in bytes. The beginning of a longer one is kept with the unknown.
pub const LINE_LIMIT: usize = 1024 * 1024;

/// The first status that means a signal, by the convention of shells.
const FIRST_SIGNAL_STATUS: i32 = 128;

/// Progress event of an agent, safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    SessionStarted {
        id: String,
    },
    /// With a summary of its input, in one short line.
    ToolCall {
        name: String,
        summary: String,
    },
    /// With a report of its end; only for calls whose beginning was seen.
    ToolEnd(ToolEnd),
    /// A text from the agent, of at most 16 KiB.
    Text(String),
    /// The tokens of this run so far.
    Tokens(Usage),
    /// The model returned an error, and the agent retries.
    Retrying {
        reason: String,
    },
}

/// A tool call that has ended. All of it is a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolEnd {
    pub kind: ToolKind,
    /// As a sentence in the past, such as "edited src/a.rs +3 −1".
    pub action: String,
    pub ok: bool,
    /// Exit status of a command.
    pub status: Option<i32>,
    /// The end of its output.
    pub output: String,
    pub took_ms: Option<u64>,
}

#[derive(Debug)]
pub struct EventReader {
    events: Box<dyn ProviderEvents>,
    draft: ReportDraft,
    has_events: bool,
    unknown: Vec<String>,
    unknown_count: u64,
}

pub(crate) trait ProviderEvents: Debug + Send + Sync {
    fn take(&mut self, line: &str, draft: &mut ReportDraft) -> EventKind;

    /// Judges the outcome. `exit` is the agent's exit status, if it had one.
    fn judge(&self, exit: Option<i32>, draft: &ReportDraft) -> AgentOutcome;

    /// Judges an agent that printed no event.
    fn judge_silent(&self, exit: Option<i32>) -> AgentOutcome {
        match exit {
            Some(code) if code < FIRST_SIGNAL_STATUS => AgentOutcome::Failed {
                reason: format!("it ended with status {code} before its first event"),
            },
            Some(_) | None => AgentOutcome::Interrupted,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Known,
    Unknown,
}

pub(crate) fn parse_event(line: &str) -> Option<Value> {
    Some(line)
        .filter(|line| line.len() <= LINE_LIMIT)
        .and_then(|line| serde_json::from_str(line).ok())
}

impl EventReader {
    /// Creates a reader for a new session, or for an agent that counts each run separately.
    pub fn new(provider: Provider) -> Self {
        Self::resuming(provider, Usage::default())
    }

    /// Creates a reader for a resumed session. `earlier` is its last [`AgentReport::thread_usage`], which
    /// agents that count a whole session will include again.
    pub fn resuming(provider: Provider, earlier: Usage) -> Self {
        let events: Box<dyn ProviderEvents> = match provider {
            Provider::OpenCode => Box::<opencode::OpenCodeEvents>::default(),
            Provider::Codex => Box::new(codex::CodexEvents::after(earlier)),
            Provider::Claude => Box::<claude::ClaudeEvents>::default(),
            Provider::Pi => Box::<pi::PiEvents>::default(),
            Provider::Command => Box::new(command::CommandEvents),
            Provider::Scripted => Box::<scripted::ScriptedEvents>::default(),
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
        self.push_line_at(line, None)
    }

    /// As [`EventReader::push_line`], for a line that came at `at_ms` on any clock: calls then have a duration.
    pub fn push_line_at(&mut self, line: &str, at_ms: Option<u64>) -> Vec<Progress> {
        self.draft.set_time(at_ms);
        if !line.trim().is_empty() {
            match self.events.take(line, &mut self.draft) {
                EventKind::Known => self.has_events = true,
                EventKind::Unknown => self.keep(line),
            }
        }
        self.draft.take_progress()
    }

    /// Returns the number of lines so far that are no event of this agent.
    pub fn unknown_count(&self) -> u64 {
        self.unknown_count
    }

    /// Returns the calls that have begun and not ended.
    pub fn open_actions(&self) -> impl Iterator<Item = &str> {
        self.draft.open_actions()
    }

    /// Returns the report. The exit status never proves success, but may disprove it.
    pub fn finish(self, exit: Option<i32>) -> AgentReport {
        let outcome = match self.has_events {
            true => self.events.judge(exit, &self.draft),
            false => self.events.judge_silent(exit),
        };
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

    fn keep(&mut self, line: &str) {
        self.unknown_count += 1;
        if self.unknown.len() < UNKNOWN_KEPT {
            self.unknown.push(cut(line, UNKNOWN_LENGTH).to_owned());
        }
    }
}
