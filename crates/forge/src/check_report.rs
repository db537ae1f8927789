//! Checks of a commit: statuses, check runs and pipelines, the same for every forge.

use model::escape::escape_terminal;

/// Failed checks whose logs are read.
const LOGS_MAX: usize = 3;
/// Bytes at the end of a log.
const TAIL_MAX: usize = 4 * 1024;

/// One check of a commit, in its newest attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// Number on the forge, by which its log is found.
    pub id: u64,
    pub name: String,
    pub state: CheckState,
    /// The check's own words.
    pub description: String,
    /// Page for people; never requested.
    pub url: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckState {
    Pending,
    /// Passed, or skipped and not counted.
    Passed,
    Failed,
}

/// A failed check with the end of its log, where the forge has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCheck {
    pub name: String,
    pub description: String,
    pub url: String,
    pub log: Option<String>,
}

impl CheckReport {
    pub fn is_failed(&self) -> bool {
        self.state == CheckState::Failed
    }
}

impl CheckState {
    /// Parses a word of any forge. A word that no version of this program knows is a check that is still at work.
    pub(crate) fn parse(word: &str) -> Self {
        match word {
            "success" | "neutral" | "skipped" | "warning" | "cancelled" | "canceled" | "stale"
            | "manual" => Self::Passed,
            "failure" | "failed" | "error" | "timed_out" | "startup_failure"
            | "action_required" => Self::Failed,
            _ => Self::Pending,
        }
    }
}

/// The failed ones of which a log is read.
pub(crate) fn failed(reports: &[CheckReport]) -> impl Iterator<Item = &CheckReport> {
    reports.iter().filter(|report| report.is_failed()).take(LOGS_MAX)
}

/// The end of a log, in whole lines where it can be, with control characters escaped.
pub(crate) fn tail(log: &[u8]) -> String {
    let start = log.len().saturating_sub(TAIL_MAX);
    let cut = &log[start..];
    let line = cut.iter().position(|byte| *byte == b'\n').filter(|_| start > 0);
    let text = String::from_utf8_lossy(&cut[line.map_or(0, |at| at + 1)..]).into_owned();
    escape_terminal(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_all_forges_are_known() {
        for word in ["success", "skipped", "neutral", "canceled", "manual"] {
            assert_eq!(CheckState::parse(word), CheckState::Passed, "{word}");
        }
        for word in ["failure", "failed", "error", "timed_out"] {
            assert_eq!(CheckState::parse(word), CheckState::Failed, "{word}");
        }
        for word in ["pending", "queued", "in_progress", "running", "created", "odd"] {
            assert_eq!(CheckState::parse(word), CheckState::Pending, "{word}");
        }
    }

    #[test]
    fn of_a_long_log_the_last_whole_lines_stay() {
        let log = format!("first\n{}\u{1b}[31mlast\n", "x\n".repeat(4000));
        let tail = tail(log.as_bytes());
        assert!(tail.len() <= TAIL_MAX + 16 && tail.starts_with("x\n"), "{}", tail.len());
        assert!(!tail.contains('\u{1b}') && tail.contains("last"));
    }
}
