//! The end of a lease on the clock of its holder. Pure.

use std::time::Duration;

/// Reason why a run ends whose lease was lost.
pub(crate) const LEASE_LOST: &str =
    "the lease on its issue was lost; whoever holds it now goes on with it";

/// Longest time by which a holder stops before its lease ends in the store.
const MARGIN_MAX: Duration = Duration::from_secs(10);

/// Time on the holder's clock from which on it writes nothing, for a lease that it asked for at `asked_at`. The store counts
/// from when it was asked or later, so the lease ends there at the same time or later.
pub(crate) fn deadline(asked_at: Duration, lease: Duration) -> Duration {
    asked_at + lease - MARGIN_MAX.min(lease / 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_stops_before_its_lease_ends() {
        for (lease, end) in [(60, 150.0), (600, 690.0), (6, 105.0), (3, 102.5)] {
            let asked_at = Duration::from_secs(100);
            let at = deadline(asked_at, Duration::from_secs(lease));
            assert_eq!(at, Duration::from_secs_f64(end), "{lease}");
            assert!(at < asked_at + Duration::from_secs(lease));
        }
    }
}
