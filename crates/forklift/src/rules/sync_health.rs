//! Health of the syncs of a fork: one that fails again and again, or does not happen any more, must not go unseen.

use super::words::counted;

/// Runs in a row without a result after which a fork is overdue.
const MOST_MISSED: usize = 2;

/// A finished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SyncRun {
    /// It published, or found nothing to do.
    pub(crate) is_good: bool,
    /// Days since it began.
    pub(crate) days: i64,
}

/// Facts about the syncs of a fork.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SyncFacts<'a> {
    /// Commits of upstream that the fork lacks; `None` if the fork is gone.
    pub(crate) behind: Option<usize>,
    /// Newest first.
    pub(crate) runs: &'a [SyncRun],
    /// Days without a good run after which a fork is overdue, if the user says so.
    pub(crate) max_days: Option<i64>,
}

/// Number of runs in a row, up to the newest, without a result.
pub(crate) fn count_missed(runs: &[SyncRun]) -> usize {
    runs.iter().take_while(|run| !run.is_good).count()
}

/// Reason why a fork is overdue. A fork that has all of upstream is not, however its last runs ended; but what upstream has
/// is known by the last fetch alone, so a limit in days holds for it too.
pub(crate) fn find_overdue(facts: &SyncFacts<'_>) -> Option<String> {
    let behind = facts.behind?;
    let missed = count_missed(facts.runs);
    if behind > 0 && missed >= MOST_MISSED {
        return Some(format!("{} in a row without a result", counted(missed, "sync")));
    }
    let max_days = facts.max_days?;
    match facts.runs.iter().find(|run| run.is_good) {
        Some(good) if good.days <= max_days => None,
        Some(good) => Some(format!("no good sync for {} days", good.days)),
        None => Some("no good sync yet".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: SyncRun = SyncRun { is_good: true, days: 9 };
    const BAD: SyncRun = SyncRun { is_good: false, days: 1 };

    fn overdue(behind: Option<usize>, runs: &[SyncRun], max_days: Option<i64>) -> Option<String> {
        find_overdue(&SyncFacts { behind, runs, max_days })
    }

    #[test]
    fn two_missed_syncs_are_too_many_and_one_is_not() {
        assert_eq!(overdue(Some(3), &[BAD, GOOD], None), None);
        let words = overdue(Some(3), &[BAD, BAD, GOOD], None).expect("overdue");
        assert_eq!(words, "2 syncs in a row without a result");
        assert_eq!(overdue(Some(0), &[BAD, BAD], None), None, "it has all of upstream");
        assert_eq!(overdue(None, &[BAD, BAD], Some(1)), None, "the fork is gone");
    }

    #[test]
    fn a_sync_that_does_not_happen_any_more_is_seen_where_a_limit_is_set() {
        assert_eq!(overdue(Some(0), &[GOOD], Some(9)), None);
        let words = overdue(Some(0), &[GOOD], Some(8)).expect("overdue");
        assert_eq!(words, "no good sync for 9 days");
        assert_eq!(overdue(Some(1), &[BAD], Some(8)).as_deref(), Some("no good sync yet"));
    }
}
