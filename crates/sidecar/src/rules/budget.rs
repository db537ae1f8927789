//! Budget of a run's calls, so that a flood reaches the log and not the forge.

use crate::dispatcher::CallLimits;

/// Calls of a run so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CallsSpent {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
}

/// Part of the budget that a call counts towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallCost {
    Read,
    Write,
    /// Signalling that the work is done must always be possible.
    Free,
}

/// Counts a call; false if nothing is left for it.
pub(crate) fn spend(limits: &CallLimits, spent: &mut CallsSpent, cost: CallCost) -> bool {
    let (used, most) = match cost {
        CallCost::Read => (&mut spent.reads, limits.reads_max),
        CallCost::Write => (&mut spent.writes, limits.writes_max),
        CallCost::Free => return true,
    };
    let is_left = *used < most;
    *used += u64::from(is_left);
    is_left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_are_counted_apart_and_the_end_is_free() {
        let limits = CallLimits { reads_max: 2, writes_max: 1, ..CallLimits::default() };
        let mut spent = CallsSpent::default();
        let mut call = |cost| spend(&limits, &mut spent, cost);
        assert!(call(CallCost::Read) && call(CallCost::Read) && !call(CallCost::Read));
        assert!(call(CallCost::Write) && !call(CallCost::Write));
        assert!(call(CallCost::Free) && call(CallCost::Free));
        assert_eq!(spent, CallsSpent { reads: 2, writes: 1 });
    }
}
