//! The exit statuses of `bot-bottle`: the table in its README and its `--help` comes from here.
//!
//! Headless `start` and `resume` are the exception: they return the agent's own status, and 125 when
//! the failure is ours, as `docker run` does.

/// How `bot-bottle` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BottleStatus {
    /// Done.
    Success = 0,
    /// General error.
    General = 1,
    /// Wrong configuration or usage.
    Usage = 2,
    /// No such bottle, or it is in the wrong state.
    NotFound = 3,
    /// Waiting for a person.
    Blocked = 8,
    /// Internal error; please report it.
    Internal = 9,
    /// Headless start or resume failed before the agent had a status of its own.
    OwnFailure = 125,
}

impl BottleStatus {
    /// All statuses, by code.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::General,
        Self::Usage,
        Self::NotFound,
        Self::Blocked,
        Self::Internal,
        Self::OwnFailure,
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
            Self::Usage => "usage",
            Self::NotFound => "not-found",
            Self::Blocked => "blocked",
            Self::Internal => "internal",
            Self::OwnFailure => "own-failure",
        }
    }

    /// What it means, in one line.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Success => "done",
            Self::General => "general error",
            Self::Usage => "wrong configuration or usage",
            Self::NotFound => "no such bottle, or it is in the wrong state",
            Self::Blocked => "waiting for a person",
            Self::Internal => "internal error; please report it",
            Self::OwnFailure => "start or resume failed before the agent had a status of its own",
        }
    }
}
