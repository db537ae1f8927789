//! The exit statuses of `forklift`: the table in its README and its `--help` comes from here.

use crate::failure::UsageStatus;

/// How `forklift` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ForkliftStatus {
    /// Pull request opened, or nothing to do.
    Success = 0,
    /// Git, the network or the disk failed.
    Machine = 1,
    /// Wrong configuration or usage, or a missing remote.
    Usage = 2,
    /// Upstream not integrated, or work of the fork lost.
    NotIntegrated = 3,
    /// The agent is stuck and left a note.
    Stuck = 4,
    /// The clock ran out.
    OutOfTime = 5,
    /// The agent failed.
    AgentFailed = 6,
    /// Verified, but publishing failed.
    PublishFailed = 7,
    /// Internal error; please report it.
    Internal = 9,
}

impl ForkliftStatus {
    /// All statuses, by code.
    pub const ALL: [Self; 9] = [
        Self::Success,
        Self::Machine,
        Self::Usage,
        Self::NotIntegrated,
        Self::Stuck,
        Self::OutOfTime,
        Self::AgentFailed,
        Self::PublishFailed,
        Self::Internal,
    ];

    /// The number that the process returns.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// One word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Machine => "machine",
            Self::Usage => "usage",
            Self::NotIntegrated => "not-integrated",
            Self::Stuck => "stuck",
            Self::OutOfTime => "out-of-time",
            Self::AgentFailed => "agent-failed",
            Self::PublishFailed => "publish-failed",
            Self::Internal => "internal",
        }
    }

    /// What it means, in one line.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Success => "pull request opened, or nothing to do",
            Self::Machine => "git, the network or the disk failed",
            Self::Usage => "wrong configuration or usage, or a missing remote",
            Self::NotIntegrated => "upstream not integrated, or work of the fork lost",
            Self::Stuck => "the agent is stuck and left a note",
            Self::OutOfTime => "the clock ran out",
            Self::AgentFailed => "the agent failed",
            Self::PublishFailed => "verified, but publishing failed",
            Self::Internal => "internal error; please report it",
        }
    }
}

impl UsageStatus for ForkliftStatus {
    const USAGE: Self = Self::Usage;
}
