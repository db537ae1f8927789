//! Attempts to bring a fork up to date, as they are recorded: a sync may fail before it has a run, or be killed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use model::id::BranchName;
use serde::{Deserialize, Serialize};

use super::target::Target;

/// Attempts of a fork that are kept.
const MOST_ATTEMPTS: usize = 200;

/// Characters of a problem that are kept.
const PROBLEM_CHARS: usize = 1000;

/// Process that makes an attempt, as long as the machine is not started again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttemptProcess {
    pub(crate) pid: u32,
    pub(crate) boot: String,
}

/// End of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttemptEnd {
    pub(crate) at: Timestamp,
    /// Exit status of the sync.
    pub(crate) status: u8,
    /// The failure; a sync that ended with the verdict of a run has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    /// True if there was nothing to do, as the sync itself saw it.
    #[serde(default)]
    pub(crate) is_up_to_date: bool,
}

/// One sync that was begun: by itself, as a row of `--all`, or as a train.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SyncAttempt {
    pub(crate) began_at: Timestamp,
    pub(crate) process: AttemptProcess,
    /// Branch of the fork that was asked for; without one, that of the remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<BranchName>,
    /// Target that was typed, or that a pair of branches names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<Target>,
    /// `None` for one that is at work or was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<AttemptEnd>,
}

/// Attempts of a fork, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttemptLog {
    /// The fork's folder, or a file with a list of forks.
    pub(crate) fork: PathBuf,
    #[serde(default)]
    pub(crate) attempts: Vec<SyncAttempt>,
    /// The problem that the user was notified about, without its numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) notified: Option<String>,
    /// The same for syncs that asked for a branch.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) notified_of: BTreeMap<BranchName, String>,
    /// True if the user does not keep the fork any more; the next attempt takes it back.
    #[serde(default)]
    pub(crate) is_forgotten: bool,
}

/// Need for a notification after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notification {
    Due,
    NotDue,
}

impl AttemptLog {
    pub(crate) fn new(fork: PathBuf) -> Self {
        let (attempts, notified_of) = (Vec::new(), BTreeMap::new());
        Self { fork, attempts, notified: None, notified_of, is_forgotten: false }
    }

    pub(crate) fn begin(&mut self, attempt: SyncAttempt) {
        self.is_forgotten = false;
        self.attempts.push(attempt);
        let more = self.attempts.len().saturating_sub(MOST_ATTEMPTS);
        self.attempts.drain(..more);
    }

    /// Records the end of the attempt that this process began at this time. A failure is notified about once, and again when
    /// it is another one.
    pub(crate) fn end(
        &mut self,
        began_at: Timestamp,
        process: &AttemptProcess,
        end: AttemptEnd,
    ) -> Notification {
        let end = AttemptEnd { problem: end.problem.as_deref().map(shortened), ..end };
        let mark = end.problem.as_deref().map(without_numbers);
        let mut own = self.attempts.iter_mut().rev();
        let own = own.find(|it| it.began_at == began_at && it.process == *process);
        let branch = own.as_ref().and_then(|own| own.branch.clone());
        if let Some(own) = own {
            own.end = Some(end);
        }
        let known = match branch {
            None => std::mem::replace(&mut self.notified, mark.clone()),
            Some(branch) => match &mark {
                Some(mark) => self.notified_of.insert(branch, mark.clone()),
                None => self.notified_of.remove(&branch),
            },
        };
        let is_new = mark.is_some() && mark != known;
        if is_new { Notification::Due } else { Notification::NotDue }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(PROBLEM_CHARS).collect()
}

/// A problem without what differs from day to day: numbers of processes, dates and ports.
fn without_numbers(problem: &str) -> String {
    problem.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn process() -> AttemptProcess {
        AttemptProcess { pid: 7, boot: "boot".to_owned() }
    }

    /// Makes an attempt that ends with this problem, and returns whether the user is notified.
    fn attempt(log: &mut AttemptLog, second: i64, problem: Option<&str>) -> bool {
        let began_at = at(second);
        log.begin(SyncAttempt {
            began_at,
            process: process(),
            branch: None,
            target: None,
            end: None,
        });
        let problem = problem.map(str::to_owned);
        let status = u8::from(problem.is_some());
        let end = AttemptEnd { at: at(second + 1), status, problem, is_up_to_date: false };
        log.end(began_at, &process(), end) == Notification::Due
    }

    #[test]
    fn a_problem_is_notified_about_once_until_it_changes() {
        let mut log = AttemptLog::new("/fork".into());
        let busy = |pid: u32| format!("another forklift (process {pid}) is at work");
        for (second, problem, expected) in [
            (0, None, false),
            (10, Some("cannot fetch".to_owned()), true),
            (20, Some("cannot fetch".to_owned()), false),
            (30, Some(busy(12)), true),
            (40, Some(busy(3456)), false),
            (50, None, false),
            (60, Some(busy(7)), true),
        ] {
            assert_eq!(attempt(&mut log, second, problem.as_deref()), expected, "{second}");
        }
    }

    #[test]
    fn the_newest_attempts_are_kept() {
        let mut log = AttemptLog::new("/fork".into());
        log.is_forgotten = true;
        for second in 0..=MOST_ATTEMPTS {
            attempt(&mut log, i64::try_from(second).expect("small"), Some(&"x".repeat(5000)));
        }
        assert!(!log.is_forgotten);
        assert_eq!((log.attempts.len(), log.attempts[0].began_at), (MOST_ATTEMPTS, at(1)));
        let end = log.attempts[0].end.as_ref().expect("an end");
        assert_eq!(end.problem.as_ref().map(String::len), Some(PROBLEM_CHARS));
        let text = serde_json::to_string(&log).expect("JSON");
        assert_eq!(serde_json::from_str::<AttemptLog>(&text).expect("the same"), log);
    }
}
