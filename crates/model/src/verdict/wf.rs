//! The exit statuses of `wf`: the table in its README and its `--help` comes from here.
//!
//! Scripts rely on the numbers: a new meaning gets a new number.

use crate::failure::UsageStatus;

/// How `wf` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WfStatus {
    /// Done.
    Success = 0,
    /// General error, or ended by a signal.
    General = 1,
    /// Wrong configuration or usage.
    Config = 2,
    /// Another process held the lock for too long.
    Lock = 3,
    /// Implementation failed, or there was nothing valid to implement.
    Implement = 4,
    /// Tests failed.
    Test = 5,
    /// Review failed or requested changes.
    Review = 6,
    /// The QA gate failed.
    Qa = 7,
    /// Blocked until a person answers, accepts or resolves.
    Blocked = 8,
    /// Internal error; please report it.
    Internal = 9,
}

impl WfStatus {
    /// All statuses, by code.
    pub const ALL: [Self; 10] = [
        Self::Success,
        Self::General,
        Self::Config,
        Self::Lock,
        Self::Implement,
        Self::Test,
        Self::Review,
        Self::Qa,
        Self::Blocked,
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
            Self::General => "general",
            Self::Config => "config",
            Self::Lock => "lock",
            Self::Implement => "implement",
            Self::Test => "test",
            Self::Review => "review",
            Self::Qa => "qa",
            Self::Blocked => "blocked",
            Self::Internal => "internal",
        }
    }

    /// What it means, in one line.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Success => "done",
            Self::General => "general error, or ended by a signal",
            Self::Config => "wrong configuration or usage",
            Self::Lock => "another process held the lock for too long",
            Self::Implement => "implementation failed, or there was nothing valid to implement",
            Self::Test => "tests failed",
            Self::Review => "review failed or requested changes",
            Self::Qa => "the QA gate failed",
            Self::Blocked => "blocked until a person answers, accepts or resolves",
            Self::Internal => "internal error; please report it",
        }
    }
}

impl UsageStatus for WfStatus {
    const USAGE: Self = Self::Config;
}
