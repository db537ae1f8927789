//! Attempts to bring a fork up to date, as they are recorded: a sync may fail before it has a run, or be killed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use jiff::Timestamp;
use model::id::{BranchName, RunId};
use serde::{Deserialize, Serialize};

use super::sync_health::SyncOutcome;
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
    /// True if it left the work to another process that was at it, or to a person that a result waits for: neither a failure nor
    /// a result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_deferred: bool,
    /// The run that it made, of several the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<RunId>,
    /// Outcome of that run, which may be removed some day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<SyncOutcome>,
}

/// Place of an attempt among the runs, which no clock can change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttemptOrder {
    /// The newest run of the fork when it began.
    pub(crate) after: Option<RunId>,
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
    /// Branch that it turned out to be about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) found_branch: Option<BranchName>,
    /// A record of an older version has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) order: Option<AttemptOrder>,
    /// File that its process keeps locked: numbers of processes are taken again, and mean others in another container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lock_file: Option<String>,
    /// `None` for one that is at work or was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<AttemptEnd>,
    /// Observed when the record is read.
    #[serde(skip)]
    pub(crate) is_at_work: bool,
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
    /// The same for single branches.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) forgotten_branches: BTreeSet<BranchName>,
}

/// Need for a notification after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notification {
    Due,
    NotDue,
}

impl AttemptLog {
    pub(crate) fn new(fork: PathBuf) -> Self {
        let (attempts, notified_of, forgotten_branches) = Default::default();
        Self {
            fork,
            attempts,
            notified: None,
            notified_of,
            is_forgotten: false,
            forgotten_branches,
        }
    }

    pub(crate) fn begin(&mut self, attempt: SyncAttempt) {
        self.is_forgotten = false;
        if let Some(branch) = &attempt.branch {
            self.forgotten_branches.remove(branch);
        }
        self.attempts.push(attempt);
        let more = self.attempts.len().saturating_sub(MOST_ATTEMPTS);
        self.attempts.drain(..more);
    }

    /// Forgets the fork with all that failed there: it does not come back with the next attempt.
    pub(crate) fn forget(&mut self) {
        self.is_forgotten = true;
        self.attempts.clear();
    }

    /// Forgets one branch of the fork, until somebody asks for it again.
    pub(crate) fn forget_branch(&mut self, branch: &BranchName) {
        let is_kept: Vec<bool> =
            self.attempts.iter().map(|it| self.branch_of(it) != Some(branch)).collect();
        let mut is_kept = is_kept.into_iter();
        self.attempts.retain(|_| is_kept.next().unwrap_or(true));
        self.forgotten_branches.insert(branch.clone());
    }

    /// The branch that an attempt is about: the one that it found or asked for, else the one that the newest attempt without a
    /// branch found.
    pub(crate) fn branch_of<'a>(&'a self, attempt: &'a SyncAttempt) -> Option<&'a BranchName> {
        let usual = || {
            let mut plain = self.attempts.iter().rev().filter(|it| it.branch.is_none());
            plain.find_map(|it| it.found_branch.as_ref())
        };
        attempt.found_branch.as_ref().or(attempt.branch.as_ref()).or_else(usual)
    }

    /// Records the end of the attempt that this process began at this time, and the branch that it was about. A failure is
    /// notified about until that succeeds, and again when it is another one.
    pub(crate) fn end(
        &mut self,
        began_at: Timestamp,
        process: &AttemptProcess,
        (end, found_branch): (AttemptEnd, Option<BranchName>),
    ) -> Notification {
        let is_deferred = end.is_deferred;
        let end = AttemptEnd { problem: end.problem.as_deref().map(shortened), ..end };
        let mark = end.problem.as_deref().map(without_numbers);
        let mut own = self.attempts.iter_mut().rev();
        let own = own.find(|it| it.began_at == began_at && it.process == *process);
        let branch = own.as_ref().and_then(|own| own.branch.clone());
        if let Some(own) = own {
            own.end = Some(end);
            if let Some(branch) = &found_branch {
                self.forgotten_branches.remove(branch);
            }
            own.found_branch = found_branch;
        }
        if is_deferred {
            return Notification::NotDue;
        }
        let Some(mark) = mark else {
            match branch {
                None => self.notified = None,
                Some(branch) => drop(self.notified_of.remove(&branch)),
            }
            return Notification::NotDue;
        };
        let known = match &branch {
            None => self.notified.as_ref(),
            Some(branch) => self.notified_of.get(branch),
        };
        if known == Some(&mark) { Notification::NotDue } else { Notification::Due }
    }

    /// Records that the user was notified about a problem of the syncs that ask for this branch.
    pub(crate) fn note_notified(&mut self, branch: Option<BranchName>, problem: &str) {
        let mark = without_numbers(&shortened(problem));
        match branch {
            None => self.notified = Some(mark),
            Some(branch) => drop(self.notified_of.insert(branch, mark)),
        }
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

    fn begun(second: i64) -> SyncAttempt {
        SyncAttempt {
            began_at: at(second),
            process: process(),
            branch: None,
            target: None,
            found_branch: None,
            order: None,
            lock_file: None,
            end: None,
            is_at_work: false,
        }
    }

    /// Makes an attempt that ends with this problem, and returns whether the user is notified.
    fn attempt(log: &mut AttemptLog, second: i64, problem: Option<&str>) -> bool {
        let began_at = at(second);
        log.begin(begun(second));
        let problem = problem.map(str::to_owned);
        let end = end_with(at(second + 1), problem.clone());
        let is_due = log.end(began_at, &process(), (end, None)) == Notification::Due;
        if let (true, Some(problem)) = (is_due, problem) {
            log.note_notified(None, &problem);
        }
        is_due
    }

    fn end_with(at: Timestamp, problem: Option<String>) -> AttemptEnd {
        let status = u8::from(problem.is_some());
        let (is_up_to_date, is_deferred) = (false, false);
        AttemptEnd { at, status, problem, is_up_to_date, is_deferred, run: None, outcome: None }
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
    fn a_notification_that_failed_is_due_again_and_one_that_was_put_off_changes_nothing() {
        let mut log = AttemptLog::new("/fork".into());
        let fails = |log: &mut AttemptLog| {
            let end = end_with(at(1), Some("cannot fetch".to_owned()));
            log.end(at(0), &process(), (end, None))
        };
        assert_eq!([fails(&mut log), fails(&mut log)], [Notification::Due; 2]);
        log.note_notified(None, "cannot fetch");
        let waits = AttemptEnd { is_deferred: true, ..end_with(at(2), None) };
        assert_eq!(log.end(at(0), &process(), (waits, None)), Notification::NotDue);
        assert_eq!(fails(&mut log), Notification::NotDue);
    }

    #[test]
    fn what_was_forgotten_comes_back_only_when_it_is_asked_for() {
        let mut log = AttemptLog::new("/fork".into());
        let [main, gone] = ["main", "gone"].map(|name| BranchName::parse(name).expect("a name"));
        let begin = |log: &mut AttemptLog, second, branch: &BranchName| {
            let branch = Some(branch.clone());
            log.begin(SyncAttempt { branch, ..begun(second) });
        };
        begin(&mut log, 1, &gone);
        begin(&mut log, 2, &main);
        log.forget_branch(&gone);
        assert_eq!((log.attempts.len(), log.forgotten_branches.contains(&gone)), (1, true));
        begin(&mut log, 3, &main);
        assert!(log.forgotten_branches.contains(&gone));
        begin(&mut log, 4, &gone);
        assert!(log.forgotten_branches.is_empty());
        log.forget();
        assert!(log.is_forgotten && log.attempts.is_empty());
    }

    #[test]
    fn the_newest_attempts_are_kept() {
        let mut log = AttemptLog::new("/fork".into());
        log.forget();
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
