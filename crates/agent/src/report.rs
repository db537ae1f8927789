//! What an agent said about itself, in one shape for all agents.

use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// What came out of an agent's event lines. All of it is claims.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentReport {
    /// How it ended.
    pub outcome: AgentOutcome,
    /// The last thing it said to people.
    pub answer: Option<String>,
    /// The tokens of this run.
    pub usage: Usage,
    /// The tokens of the whole conversation so far, from agents that count them in this way.
    pub thread_usage: Option<Usage>,
    /// What it cost, from agents that add it up. Absent also where tokens were used and the cost is 0, because an
    /// agent without a price list says so too.
    pub cost_usd: Option<f64>,
    /// By which the conversation can be resumed.
    pub session_id: Option<String>,
    /// The tools it used, in order; the first [`TOOL_CALLS_KEPT`] of them.
    pub tool_calls: Vec<ToolCall>,
    /// What it was not allowed to do.
    pub denials: Vec<DeniedTool>,
    /// Lines that say nothing we know, cut to [`UNKNOWN_LENGTH`] bytes; the first [`UNKNOWN_KEPT`] of them.
    pub unknown: Vec<String>,
    /// How many such lines there were.
    pub unknown_count: u64,
}

impl AgentReport {
    /// Of an agent whose words were for a person's eyes: its status is all there is.
    pub fn of_status(exit: Option<i32>) -> Self {
        let outcome = match exit {
            Some(0) => AgentOutcome::Finished,
            Some(code) => AgentOutcome::Failed { reason: format!("it ended with status {code}") },
            None => AgentOutcome::Interrupted,
        };
        Self {
            outcome,
            answer: None,
            usage: Usage::default(),
            thread_usage: None,
            cost_usd: None,
            session_id: None,
            tool_calls: Vec::new(),
            denials: Vec::new(),
            unknown: Vec::new(),
            unknown_count: 0,
        }
    }
}

/// How many tool calls and denials are kept.
pub const TOOL_CALLS_KEPT: usize = 10_000;

/// How many unknown lines are kept.
pub const UNKNOWN_KEPT: usize = 200;

/// How much of an unknown line is kept, in bytes.
pub const UNKNOWN_LENGTH: usize = 4096;

/// Tokens. No token is in two of the counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read, and not from the cache.
    pub input: u64,
    /// Written, but for reasoning that is told apart.
    pub output: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Read, and written to the cache.
    pub cache_write: u64,
    /// Written while thinking, from agents that tell it apart.
    pub reasoning: u64,
}

impl Usage {
    /// All tokens.
    pub fn total(self) -> u64 {
        [self.input, self.output, self.cache_read, self.cache_write, self.reasoning]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    fn zip(self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input: join(self.input, other.input),
            output: join(self.output, other.output),
            cache_read: join(self.cache_read, other.cache_read),
            cache_write: join(self.cache_write, other.cache_write),
            reasoning: join(self.reasoning, other.reasoning),
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Usage {
    type Output = Self;

    /// What is left; never below nothing.
    fn sub(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }
}

/// How an agent says it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentOutcome {
    /// It came to its own end.
    Finished,
    /// It gave up.
    Failed {
        /// The cause.
        reason: String,
    },
    /// The model did not answer it, or answered with an error.
    ModelRefused {
        /// The HTTP status; absent when there was no answer at all, or the agent kept it to itself.
        status: Option<u16>,
        /// What the agent made of it.
        message: String,
    },
    /// The model has no more to give for now.
    QuotaExhausted {
        /// What the agent made of it.
        message: String,
        /// When there is more, if that was told.
        until: Option<QuotaReset>,
    },
    /// It wanted something that it was not allowed; [`AgentReport::denials`] says what.
    PermissionDenied,
    /// It asks a person.
    NeedsClarification {
        /// The question.
        question: String,
    },
    /// Its lines break off before an end.
    Interrupted,
}

impl AgentOutcome {
    /// Returns whether the agent claims success.
    pub fn is_finished(&self) -> bool {
        *self == Self::Finished
    }
}

/// When a quota is filled up again, as it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuotaReset {
    /// After so many seconds.
    InSecs(u64),
    /// At this second since 1970.
    UnixSecs(u64),
    /// In words, such as `Nov 20th, 2026 3:45 PM`.
    Words(String),
}

/// One use of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool, as the agent names it.
    pub name: String,
    /// True if it worked; absent when it did not end.
    pub ok: Option<bool>,
    /// What it was used for, in one short line.
    pub detail: String,
}

/// Something an agent was not allowed to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedTool {
    /// The tool.
    pub tool: String,
    /// What it was to be used for, in one short line.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_neither_wrap_nor_go_below_nothing() {
        let much = Usage { input: u64::MAX, output: 1, ..Usage::default() };
        let more = Usage { input: 1, output: 2, ..Usage::default() };
        assert_eq!((much + more).input, u64::MAX);
        assert_eq!((much - more).output, 0);
        assert_eq!(much.total(), u64::MAX);
    }
}
