//! Health of the syncs of a fork: one that fails again and again, or does not happen any more, must not go unseen.

use serde::{Deserialize, Serialize};

use super::words::counted;

/// Syncs in a row without a result after which a fork is overdue.
const MOST_MISSED: usize = 2;

/// Outcome of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SyncOutcome {
    /// It published all of its target, or the fork has it.
    Good,
    /// It ended well and brought nothing that is new into a published branch, or a part of a train.
    Held,
    /// Its run ended without a result.
    Missed,
    /// It failed before its run had an end, so that what upstream has is not known from it.
    Failed,
}

/// A finished sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SyncRun {
    pub(crate) outcome: SyncOutcome,
    /// Days since it began; `None` if the clock was ahead then, so that nobody knows.
    pub(crate) days: Option<i64>,
}

/// Facts about the syncs of a fork.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SyncFacts<'a> {
    /// Commits of upstream that the fork lacks; `None` where that cannot be told.
    pub(crate) behind: Option<usize>,
    /// Newest first.
    pub(crate) runs: &'a [SyncRun],
    /// Days without a good run after which a fork is overdue, if the user says so.
    pub(crate) max_days: Option<i64>,
}

/// Number of syncs in a row, up to the newest, without a result.
pub(crate) fn count_missed(runs: &[SyncRun]) -> usize {
    let is_missed =
        |run: &&SyncRun| matches!(run.outcome, SyncOutcome::Missed | SyncOutcome::Failed);
    runs.iter().take_while(is_missed).count()
}

/// Reason why a fork is overdue. A fork that has all of upstream is not, however its last runs ended; but what upstream has
/// is known by the last fetch alone, so a sync that failed before its end counts all the same, and so does a limit in days.
pub(crate) fn find_overdue(facts: &SyncFacts<'_>) -> Option<String> {
    let missed = count_missed(facts.runs);
    let is_stale = facts.runs.first().is_some_and(|run| run.outcome == SyncOutcome::Failed);
    if missed >= MOST_MISSED && (is_stale || facts.behind != Some(0)) {
        return Some(format!("{} in a row without a result", counted(missed, "sync")));
    }
    if facts.behind.is_none() {
        return Some("what the fork lacks cannot be told".to_owned());
    }
    let max_days = facts.max_days?;
    match facts.runs.iter().find(|run| run.outcome == SyncOutcome::Good) {
        Some(SyncRun { days: Some(days), .. }) if *days <= max_days => None,
        Some(SyncRun { days: Some(days), .. }) => Some(format!("no good sync for {days} days")),
        Some(SyncRun { days: None, .. }) => {
            Some("when the last good sync was is unknown: the clock was ahead then".to_owned())
        }
        None => Some("no good sync yet".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: SyncRun = SyncRun { outcome: SyncOutcome::Good, days: Some(9) };
    const HELD: SyncRun = SyncRun { outcome: SyncOutcome::Held, days: Some(1) };
    const BAD: SyncRun = SyncRun { outcome: SyncOutcome::Missed, days: Some(1) };
    const FAILED: SyncRun = SyncRun { outcome: SyncOutcome::Failed, days: Some(1) };

    fn overdue(behind: Option<usize>, runs: &[SyncRun], max_days: Option<i64>) -> Option<String> {
        find_overdue(&SyncFacts { behind, runs, max_days })
    }

    #[test]
    fn two_missed_syncs_are_too_many_and_one_is_not() {
        assert_eq!(overdue(Some(3), &[BAD, GOOD], None), None);
        let words = overdue(Some(3), &[BAD, BAD, GOOD], None).expect("overdue");
        assert_eq!(words, "2 syncs in a row without a result");
        assert_eq!(overdue(Some(0), &[BAD, BAD], None), None, "it has all of upstream");
        assert_eq!(overdue(Some(3), &[BAD, HELD, BAD], None), None);
    }

    #[test]
    fn a_sync_that_saw_nothing_of_upstream_does_not_believe_an_old_fetch() {
        assert_eq!(overdue(Some(0), &[FAILED, GOOD], None), None);
        for runs in [[FAILED, FAILED], [FAILED, BAD]] {
            let words = overdue(Some(0), &runs, None).expect("overdue");
            assert_eq!(words, "2 syncs in a row without a result");
        }
        assert_eq!(overdue(Some(0), &[BAD, FAILED], None), None, "the newest has looked");
    }

    #[test]
    fn a_fork_about_which_nothing_can_be_told_is_overdue() {
        for max_days in [None, Some(99)] {
            let words = overdue(None, &[GOOD], max_days).expect("overdue");
            assert_eq!(words, "what the fork lacks cannot be told");
        }
    }

    #[test]
    fn a_sync_that_does_not_happen_any_more_is_seen_where_a_limit_is_set() {
        assert_eq!(overdue(Some(0), &[GOOD], Some(9)), None);
        let words = overdue(Some(0), &[GOOD], Some(8)).expect("overdue");
        assert_eq!(words, "no good sync for 9 days");
        assert_eq!(overdue(Some(1), &[BAD], Some(8)).as_deref(), Some("no good sync yet"));
    }

    #[test]
    fn a_time_that_a_clock_ahead_has_recorded_is_no_recent_sync() {
        let ahead = SyncRun { days: None, ..GOOD };
        assert_eq!(overdue(Some(0), &[ahead], None), None);
        let words = overdue(Some(0), &[ahead, GOOD], Some(9)).expect("overdue");
        assert!(words.contains("the clock was ahead"), "{words}");
    }

    #[test]
    fn what_was_held_back_does_not_renew_the_last_good_sync() {
        let words = overdue(Some(1), &[HELD, HELD, GOOD], Some(8)).expect("overdue");
        assert_eq!(words, "no good sync for 9 days");
        assert_eq!(overdue(Some(1), &[HELD, HELD], None), None);
    }
}
