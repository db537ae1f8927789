//! Report of an agent about its run, in one shape for all agents.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

use crate::provider::Provider;
use crate::reader::EventReader;

/// Report parsed from an agent's event lines. All of it is claims.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentReport {
    pub outcome: AgentOutcome,
    /// The last message to the user.
    pub answer: Option<String>,
    pub usage: Usage,
    /// The tokens of the whole session so far, from agents that count them in this way.
    pub thread_usage: Option<Usage>,
    /// Cost, from agents that compute it. Absent also where tokens were used and the cost is 0, because an
    /// agent without a price list reports that too.
    pub cost_usd: Option<f64>,
    pub session_id: Option<String>,
    /// The tools it used, in order; the first [`TOOL_CALLS_KEPT`] of them.
    pub tool_calls: Vec<ToolCall>,
    pub denials: Vec<DeniedTool>,
    /// Unknown lines, cut to [`UNKNOWN_LENGTH`] bytes; the first [`UNKNOWN_KEPT`] of them.
    pub unknown: Vec<String>,
    pub unknown_count: u64,
}

impl AgentReport {
    /// Creates the report of an agent at a terminal: its output is not parsed, and only its exit status counts.
    pub fn of_status(exit: Option<i32>) -> Self {
        EventReader::new(Provider::Command).finish(exit)
    }
}

/// Limit on the tool calls and denials that are kept.
pub const TOOL_CALLS_KEPT: usize = 10_000;

/// Limit on the unknown lines that are kept.
pub const UNKNOWN_KEPT: usize = 200;

/// Length limit of an unknown line, in bytes.
pub const UNKNOWN_LENGTH: usize = 4096;

/// Tokens. No token is in two of the counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read, excluding the cache.
    pub input: u64,
    /// Written, excluding reasoning that is counted separately.
    pub output: u64,
    pub cache_read: u64,
    /// Read, and written to the cache.
    pub cache_write: u64,
    /// Reasoning, from agents that count it separately.
    pub reasoning: u64,
}

impl Usage {
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

impl Sub for Usage {
    type Output = Self;

    /// Subtracts, never below zero.
    fn sub(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }
}

/// Outcome that an agent claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentOutcome {
    /// It ended by itself.
    Finished,
    Failed {
        reason: String,
    },
    /// The model did not respond, or responded with an error. The HTTP status may be unknown.
    ModelRefused {
        status: Option<u16>,
        message: String,
    },
    /// The quota of the model is exhausted for now.
    QuotaExhausted {
        message: String,
        until: Option<QuotaReset>,
    },
    /// A tool call was denied; [`AgentReport::denials`] has the details.
    PermissionDenied,
    NeedsClarification {
        question: String,
    },
    /// Its output ends before a final event.
    Interrupted,
}

impl AgentOutcome {
    pub fn is_finished(&self) -> bool {
        *self == Self::Finished
    }
}

/// Time at which a quota resets, as the message gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuotaReset {
    InSecs(u64),
    /// At this second since 1970.
    UnixSecs(u64),
    /// As text, such as `Nov 20th, 2026 3:45 PM`.
    Words(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    pub name: String,
    /// True if it succeeded; absent when it did not end.
    pub ok: Option<bool>,
    /// Summary of its input, in one short line.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedTool {
    pub tool: String,
    /// Summary of its input, in one short line.
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
