//! The one line that an attempt prints.

use std::fmt;

/// Outcome of an attempt, with its own message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It did not work.
    Blocked(String),
    /// It worked.
    Reached(String),
    /// It left something behind for the host.
    Planted(String),
    /// It could not be tried.
    Skipped(String),
}

impl Outcome {
    /// The first line that tells an outcome. Attempts that flood the output tell theirs before they start.
    pub fn parse(printed: &str) -> Option<Self> {
        printed.lines().find_map(|line| {
            let (word, detail) = line.split_once(' ').unwrap_or((line, ""));
            let detail = detail.to_owned();
            match word {
                "BLOCKED" => Some(Self::Blocked(detail)),
                "REACHED" => Some(Self::Reached(detail)),
                "PLANTED" => Some(Self::Planted(detail)),
                "SKIPPED" => Some(Self::Skipped(detail)),
                _ => None,
            }
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked(detail) => write!(f, "BLOCKED {detail}"),
            Self::Reached(detail) => write!(f, "REACHED {detail}"),
            Self::Planted(detail) => write!(f, "PLANTED {detail}"),
            Self::Skipped(detail) => write!(f, "SKIPPED {detail}"),
        }
    }
}
