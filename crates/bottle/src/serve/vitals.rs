//! Counters of a running server, and the problems of its repositories, for the page, the metrics and the readiness check.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forge::ForgeError;
use jiff::SignedDuration;

use crate::exit::Failure;

/// Upper ends of the buckets of durations, in seconds.
pub(crate) const DURATION_BUCKETS: [f64; 8] =
    [1.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0];

#[derive(Debug, Default)]
pub(crate) struct Vitals {
    counts: Mutex<BTreeMap<CounterKey, u64>>,
    runs: Mutex<DurationCounts>,
    /// From when an issue is queued to its claim, by the database's clock.
    claims: Mutex<DurationCounts>,
    /// Problems by repository.
    problems: Mutex<BTreeMap<String, String>>,
}

/// A counter and the value of its label.
type CounterKey = (VitalCounter, &'static str);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum VitalCounter {
    /// Webhooks, by result.
    Webhooks,
    /// Observations of issues, by result.
    Observations,
    /// Failed calls of forges, by kind of failure.
    ForgeErrors,
    /// Claims on issues, by result.
    Claims,
    /// Events of leases.
    Leases,
    /// Claims that were lost while a worker had them, by how.
    LostLeases,
}

impl VitalCounter {
    /// Its labels. Each is shown from the start, so that a rate can be computed from the first event on.
    fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Webhooks => {
                &["accepted", "duplicate", "wrong-signature", "not-stored", "refused"]
            }
            Self::Observations => &["ok", "failed"],
            Self::Claims => &["claimed", "gone", "over-budget"],
            Self::Leases => &["taken-over", "renewal-failed"],
            Self::LostLeases => &["expired", "refused-by-database", "refused-by-forge"],
            Self::ForgeErrors => &[
                "unauthorized",
                "forbidden",
                "not-found",
                "moved",
                "rate-limited",
                "server",
                "unreachable",
                "other",
                "not-forge",
            ],
        }
    }
}

/// Durations since the start, as a histogram.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DurationCounts {
    /// Durations in each bucket alone.
    pub(crate) counts: [u64; DURATION_BUCKETS.len()],
    /// All of them, also those longer than the last bucket.
    pub(crate) count: u64,
    pub(crate) seconds: f64,
}

impl Vitals {
    pub(crate) fn count(&self, counter: VitalCounter, label: &'static str) {
        *lock(&self.counts).entry((counter, label)).or_default() += 1;
    }

    /// The values of a counter, by label.
    pub(crate) fn counts(&self, counter: VitalCounter) -> Vec<(&'static str, u64)> {
        let counts = lock(&self.counts);
        let value = |label: &'static str| counts.get(&(counter, label)).copied().unwrap_or(0);
        counter.labels().iter().map(|label| (*label, value(label))).collect()
    }

    pub(crate) fn record_run(&self, duration: Duration) {
        lock(&self.runs).add(duration.as_secs_f64());
    }

    pub(crate) fn runs(&self) -> DurationCounts {
        lock(&self.runs).clone()
    }

    /// Records how long an issue waited for its claim.
    pub(crate) fn record_claim(&self, waited: SignedDuration) {
        lock(&self.claims).add(waited.as_secs_f64().max(0.0));
    }

    pub(crate) fn claims(&self) -> DurationCounts {
        lock(&self.claims).clone()
    }

    /// Records that a repository answered, or why it did not.
    pub(crate) fn note_repository(&self, repo: &str, outcome: Result<(), &Failure>) {
        match outcome {
            Ok(()) => {
                lock(&self.problems).remove(repo);
            }
            Err(failure) => {
                self.count(VitalCounter::ForgeErrors, kind_of(failure));
                lock(&self.problems).insert(repo.to_owned(), failure.to_string());
            }
        }
    }

    /// Problems of repositories, by name.
    pub(crate) fn problems(&self) -> BTreeMap<String, String> {
        lock(&self.problems).clone()
    }
}

impl DurationCounts {
    fn add(&mut self, seconds: f64) {
        if let Some(at) = DURATION_BUCKETS.iter().position(|end| seconds <= *end) {
            self.counts[at] += 1;
        }
        self.count += 1;
        self.seconds += seconds;
    }
}

/// The kind of a failure, as a label.
fn kind_of(failure: &Failure) -> &'static str {
    match failure.forge() {
        Some(ForgeError::Unauthorized { .. }) => "unauthorized",
        Some(ForgeError::Forbidden { .. }) => "forbidden",
        Some(ForgeError::NotFound { .. }) => "not-found",
        Some(ForgeError::Moved { .. }) => "moved",
        Some(ForgeError::RateLimited { .. }) => "rate-limited",
        Some(ForgeError::Server { .. }) => "server",
        Some(ForgeError::Unreachable { .. } | ForgeError::Lost { .. }) => "unreachable",
        Some(_) => "other",
        None => "not-forge",
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_stays_until_the_repository_answers() {
        let vitals = Vitals::default();
        let down = Failure::transient("the token is refused");
        vitals.note_repository("acme/widget", Err(&down));
        assert_eq!(vitals.problems().len(), 1);
        assert!(vitals.counts(VitalCounter::ForgeErrors).contains(&("not-forge", 1)));
        vitals.note_repository("acme/widget", Ok(()));
        assert!(vitals.problems().is_empty());
    }

    #[test]
    fn durations_are_counted_in_their_bucket_and_in_all() {
        let vitals = Vitals::default();
        vitals.record_run(Duration::from_secs(5));
        vitals.record_run(Duration::from_secs(100_000));
        let runs = vitals.runs();
        assert_eq!((runs.counts[1], runs.count), (1, 2));
    }
}
