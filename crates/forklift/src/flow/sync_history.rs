//! Syncs of a fork's branch in their order: its runs, and the attempts that left none.
//!
//! The order is that of the runs' names and of the log of attempts, not of times: a clock may have been ahead.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use model::exit::ForkliftExit;
use model::id::RunId;
use run_store::run_dir;

use super::record::ForkRunRecord;
use super::run::{final_status, final_verdict};
use crate::rules::judge::Verdict;
use crate::rules::sync_attempt::SyncAttempt;
use crate::rules::sync_health::{SyncFacts, SyncOutcome, SyncRun, count_missed, find_overdue};

const DAY_SECS: i64 = 24 * 3600;

/// Most that a recorded time may be ahead: clocks of machines that share a folder differ a little.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// A run as it was found.
pub(super) struct ForkRunOnDisk {
    pub(super) record: ForkRunRecord,
    pub(super) is_closed: bool,
}

/// A finished sync.
pub(super) struct FinishedSync<'a> {
    /// When it began, by the clock of that time.
    pub(super) at: Timestamp,
    outcome: SyncOutcome,
    pub(super) run: Option<RunId>,
    attempt: Option<&'a SyncAttempt>,
}

/// Whole days since a time; `None` for one in the future, which a clock that was ahead has recorded.
pub(super) fn days_since(when: Timestamp) -> Option<i64> {
    let now = host::clock::now();
    let is_ahead = when.duration_since(now) > CLOCK_TOLERANCE;
    (!is_ahead).then(|| (now.as_second() - when.as_second()).max(0) / DAY_SECS)
}

/// The finished syncs, newest first, from runs that are newest first and attempts that are oldest first.
pub(super) fn finished_syncs<'a>(
    runs: &[ForkRunOnDisk],
    attempts: &[&'a SyncAttempt],
    withdrawn: &BTreeSet<RunId>,
) -> Vec<FinishedSync<'a>> {
    let is_sync = |run: &&ForkRunOnDisk| run.is_closed && run.record.withdraws.is_none();
    let runs: Vec<&ForkRunOnDisk> = runs.iter().filter(is_sync).rev().collect();
    let mut syncs = Vec::new();
    let mut taken = 0;
    for attempt in attempts {
        let Some(outcome) = attempt_outcome(attempt, &runs) else { continue };
        // An attempt is never before one that was recorded before it.
        let before =
            runs.iter().filter(|run| began_before(&run.record, attempt)).count().max(taken);
        syncs.extend(runs[taken..before].iter().map(|run| of_run(&run.record, withdrawn)));
        taken = before;
        let (at, attempt) = (attempt.began_at, Some(*attempt));
        syncs.push(FinishedSync { at, outcome, run: None, attempt });
    }
    syncs.extend(runs[taken..].iter().map(|run| of_run(&run.record, withdrawn)));
    syncs.reverse();
    syncs
}

/// Returns whether a run began before an attempt. An attempt of an older version has only its time.
fn began_before(run: &ForkRunRecord, attempt: &SyncAttempt) -> bool {
    match &attempt.order {
        Some(order) => {
            order.after.as_ref().is_some_and(|after| !run_dir::is_newer(&run.run, after))
        }
        None => run.started_at <= attempt.began_at,
    }
}

fn of_run<'a>(record: &ForkRunRecord, withdrawn: &BTreeSet<RunId>) -> FinishedSync<'a> {
    let outcome = match run_outcome(record) {
        SyncOutcome::Good if withdrawn.contains(&record.run) => SyncOutcome::Held,
        outcome => outcome,
    };
    FinishedSync { at: record.started_at, outcome, run: Some(record.run.clone()), attempt: None }
}

/// Outcome of a closed run by itself; what it published may have been taken back since.
pub(super) fn run_outcome(record: &ForkRunRecord) -> SyncOutcome {
    if final_status(record) != ForkliftExit::Success {
        return SyncOutcome::Missed;
    }
    let is_pushed = record.publication.as_ref().is_some_and(|sent| sent.pushed);
    let is_whole = record.train.as_ref().is_none_or(|step| step.rest.is_empty());
    match final_verdict(record) {
        Verdict::UpToDate => SyncOutcome::Good,
        Verdict::Publish if is_pushed && is_whole => SyncOutcome::Good,
        _ => SyncOutcome::Held,
    }
}

/// Outcome of an attempt by itself; `None` if it is at work, if a person stopped it, if it left the work to another process or
/// to a person, or if a closed run of it counts.
fn attempt_outcome(attempt: &SyncAttempt, runs: &[&ForkRunOnDisk]) -> Option<SyncOutcome> {
    let Some(end) = &attempt.end else {
        return (!attempt.is_at_work).then_some(SyncOutcome::Failed);
    };
    if end.is_up_to_date {
        return Some(SyncOutcome::Good);
    }
    let is_own = |run: &&&ForkRunOnDisk| match (&end.run, &attempt.order) {
        (Some(own), _) => run.record.run == *own,
        (None, Some(_)) => false,
        (None, None) => (attempt.began_at..=end.at).contains(&run.record.started_at),
    };
    if end.is_deferred
        || end.status == ForkliftExit::Interrupted.code()
        || runs.iter().any(|run| is_own(&run))
    {
        return None;
    }
    // Its run may have been removed since.
    Some(match end.outcome {
        Some(outcome) => outcome,
        None if end.status == ForkliftExit::Success.code() => SyncOutcome::Held,
        None => SyncOutcome::Failed,
    })
}

/// Number of syncs that were missed, and the reason why the fork is overdue.
pub(super) fn judge_syncs(
    syncs: &[FinishedSync<'_>],
    behind: Option<usize>,
    max_days: Option<i64>,
) -> (usize, Option<String>) {
    let run =
        |sync: &FinishedSync<'_>| SyncRun { outcome: sync.outcome, days: days_since(sync.at) };
    let runs: Vec<SyncRun> = syncs.iter().map(run).collect();
    (count_missed(&runs), find_overdue(&SyncFacts { behind, runs: &runs, max_days }))
}

/// The newest sync that reached its target.
pub(super) fn newest_good<'a, 's>(syncs: &'s [FinishedSync<'a>]) -> Option<&'s FinishedSync<'a>> {
    syncs.iter().find(|sync| sync.outcome == SyncOutcome::Good)
}

/// Failure of the newest sync, if it left no closed run.
pub(super) fn newest_failure(syncs: &[FinishedSync<'_>]) -> Option<String> {
    let newest = syncs.first().filter(|sync| sync.outcome == SyncOutcome::Failed)?;
    let attempt = newest.attempt?;
    let day = newest.at.strftime("%Y-%m-%d");
    Some(match &attempt.end {
        None => {
            format!("the sync of {day} ended without a result, as after kill -9 or a power cut")
        }
        Some(end) => {
            let problem = end.problem.clone();
            let problem = problem.unwrap_or_else(|| format!("it ended with status {}", end.status));
            format!("the sync of {day} failed: {problem}")
        }
    })
}
