//! Transient failures of an agent: an overloaded model, a lost connection, a quota. Decides whether and when it is tried
//! again.

use std::time::Duration;

use agent::{AgentOutcome, QuotaReset};
use jiff::Timestamp;
use serde::Serialize;

use super::profile::{Keys, ProfileError};

/// Exit status of programs for a failure that may pass (EX_TEMPFAIL of sysexits.h).
const TEMPORARY_FAILURE: i32 = 75;
/// Longest pause before an agent is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Pause where a quota does not say when it opens.
const QUOTA_PAUSE: Duration = Duration::from_secs(900);
/// Longest wait for a quota in one stage.
const QUOTA_WAIT: Duration = Duration::from_secs(24 * 3600);

/// Retries of agents after transient failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct AgentRetryPolicy {
    /// Tries after the first one.
    pub(crate) retries: u32,
    /// Pause before the first of them; it doubles.
    pub(crate) pause: Duration,
    pub(crate) wait_quota: bool,
}

pub(super) fn parse_retry(keys: &Keys<'_>) -> Result<AgentRetryPolicy, ProfileError> {
    let rule = "a whole number from 0 to 20";
    Ok(AgentRetryPolicy {
        retries: keys.choice("AGENT_RETRIES", 2, rule, |word| {
            word.parse().ok().filter(|retries| *retries <= 20)
        })?,
        pause: keys.seconds("AGENT_RETRY_PAUSE", 15)?,
        wait_quota: keys.flag("WAIT_QUOTA")?,
    })
}

/// Failure that may pass without a change of the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TransientFailure {
    /// The model or the way to it failed.
    Model,
    /// The quota is used up, until this time if known.
    Quota { until: Option<Timestamp> },
}

/// Judges the end of an agent. `waiting` is the time that the model server itself named to the host.
pub(crate) fn judge_transient(
    outcome: &AgentOutcome,
    exit: Option<i32>,
    waiting: Option<Timestamp>,
    now: Timestamp,
) -> Option<TransientFailure> {
    match outcome {
        AgentOutcome::Finished
        | AgentOutcome::NeedsClarification { .. }
        | AgentOutcome::PermissionDenied => None,
        _ if waiting.is_some() => Some(TransientFailure::Quota { until: waiting }),
        AgentOutcome::QuotaExhausted { until, .. } => {
            let until = until.as_ref().and_then(|until| reset_time(until, now));
            Some(TransientFailure::Quota { until })
        }
        AgentOutcome::ModelRefused { status: None | Some(408 | 425 | 500..), .. } => {
            Some(TransientFailure::Model)
        }
        AgentOutcome::ModelRefused { .. } => None,
        AgentOutcome::Failed { .. } | AgentOutcome::Interrupted => {
            (exit == Some(TEMPORARY_FAILURE)).then_some(TransientFailure::Model)
        }
    }
}

fn reset_time(until: &QuotaReset, now: Timestamp) -> Option<Timestamp> {
    match until {
        QuotaReset::InSecs(secs) => now.checked_add(Duration::from_secs(*secs)).ok(),
        QuotaReset::UnixSecs(secs) => Timestamp::from_second(i64::try_from(*secs).ok()?).ok(),
        QuotaReset::Words(_) => None,
    }
}

/// Tries of one agent so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RetryTally {
    /// Retries after failures of the model.
    pub(crate) retries: u32,
    /// Time that was waited for quotas.
    pub(crate) waited: Duration,
}

/// Returns the pause before the next try; none to give up.
pub(crate) fn next_pause(
    policy: &AgentRetryPolicy,
    failure: &TransientFailure,
    tally: RetryTally,
    now: Timestamp,
) -> Option<Duration> {
    match failure {
        TransientFailure::Model if tally.retries < policy.retries => {
            let factor = 2_u32.saturating_pow(tally.retries);
            Some(policy.pause.saturating_mul(factor).min(LONGEST_PAUSE))
        }
        TransientFailure::Model => None,
        TransientFailure::Quota { .. } if !policy.wait_quota => None,
        TransientFailure::Quota { until } => {
            let pause = match until {
                // A second more, because clocks differ.
                Some(until) => {
                    Duration::try_from(until.duration_since(now)).unwrap_or_default()
                        + Duration::from_secs(1)
                }
                None => QUOTA_PAUSE,
            };
            (tally.waited + pause <= QUOTA_WAIT).then_some(pause)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: Option<u16>) -> AgentOutcome {
        AgentOutcome::ModelRefused { status, message: "x".to_owned() }
    }

    fn failed() -> AgentOutcome {
        AgentOutcome::Failed { reason: "x".to_owned() }
    }

    #[test]
    fn only_a_failure_that_can_pass_is_tried_again() {
        let now = Timestamp::UNIX_EPOCH;
        let quota = |until| AgentOutcome::QuotaExhausted { message: "x".to_owned(), until };
        let at = |secs| Some(TransientFailure::Quota { until: Timestamp::from_second(secs).ok() });
        for (outcome, exit, waiting, expected) in [
            (AgentOutcome::Finished, Some(0), None, None),
            (AgentOutcome::Finished, Some(0), Some(now), None),
            (refused(Some(529)), Some(1), None, Some(TransientFailure::Model)),
            (refused(Some(503)), Some(1), None, Some(TransientFailure::Model)),
            (refused(None), Some(1), None, Some(TransientFailure::Model)),
            (refused(Some(401)), Some(1), None, None),
            (refused(Some(400)), Some(75), None, None),
            (failed(), Some(1), None, None),
            (failed(), Some(75), None, Some(TransientFailure::Model)),
            (failed(), Some(1), Some(now), at(0)),
            (AgentOutcome::Interrupted, Some(75), None, Some(TransientFailure::Model)),
            (AgentOutcome::Interrupted, None, None, None),
            (AgentOutcome::PermissionDenied, Some(75), None, None),
            (quota(None), None, None, Some(TransientFailure::Quota { until: None })),
            (quota(Some(QuotaReset::InSecs(60))), None, None, at(60)),
            (quota(Some(QuotaReset::UnixSecs(90))), None, None, at(90)),
            (
                quota(Some(QuotaReset::Words("noon".to_owned()))),
                None,
                None,
                Some(TransientFailure::Quota { until: None }),
            ),
        ] {
            assert_eq!(
                judge_transient(&outcome, exit, waiting, now),
                expected,
                "{outcome:?} {exit:?}"
            );
        }
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_end() {
        let pause = Duration::from_secs(100);
        let policy = AgentRetryPolicy { retries: 4, pause, wait_quota: false };
        let next = |retries| {
            let tally = RetryTally { retries, ..RetryTally::default() };
            next_pause(&policy, &TransientFailure::Model, tally, Timestamp::UNIX_EPOCH)
        };
        let secs: Vec<Option<u64>> =
            (0..5).map(|retries| next(retries).map(|it| it.as_secs())).collect();
        assert_eq!(secs, [Some(100), Some(200), Some(300), Some(300), None]);
    }

    #[test]
    fn a_quota_is_waited_for_only_if_told_and_not_for_ever() {
        let policy =
            |wait_quota| AgentRetryPolicy { retries: 0, pause: Duration::from_secs(1), wait_quota };
        let now = Timestamp::UNIX_EPOCH;
        let quota = |secs| TransientFailure::Quota { until: Timestamp::from_second(secs).ok() };
        let next = |policy: AgentRetryPolicy, failure: &TransientFailure, waited| {
            let tally = RetryTally { retries: 0, waited: Duration::from_secs(waited) };
            next_pause(&policy, failure, tally, now).map(|pause| pause.as_secs())
        };
        assert_eq!(next(policy(false), &quota(60), 0), None);
        assert_eq!(next(policy(true), &quota(60), 0), Some(61));
        assert_eq!(next(policy(true), &quota(-60), 0), Some(1));
        assert_eq!(next(policy(true), &TransientFailure::Quota { until: None }, 0), Some(900));
        assert_eq!(next(policy(true), &quota(60), 86_400), None);
    }
}
