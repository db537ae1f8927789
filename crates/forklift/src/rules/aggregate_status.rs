//! Exit status of several forks: the worst one.

use model::exit::ForkliftExit;

/// Statuses, worst first. After a signal nothing else counts: forks were not begun. Problems that affect every later run come before those of one run; among the latter, those further
/// from a pull request come first. A question of the agent is the mildest.
pub(crate) const WORST_FIRST: [ForkliftExit; 14] = [
    ForkliftExit::Terminated,
    ForkliftExit::Interrupted,
    ForkliftExit::HungUp,
    ForkliftExit::Internal,
    ForkliftExit::Usage,
    ForkliftExit::Machine,
    ForkliftExit::PublishFailed,
    ForkliftExit::NotIntegrated,
    ForkliftExit::AgentFailed,
    ForkliftExit::OutOfTime,
    ForkliftExit::Stuck,
    ForkliftExit::FixesMissing,
    ForkliftExit::Superseded,
    ForkliftExit::Success,
];

/// The worst status; success for an empty list.
pub(crate) fn aggregate_status(statuses: impl IntoIterator<Item = ForkliftExit>) -> ForkliftExit {
    let seen: Vec<ForkliftExit> = statuses.into_iter().collect();
    let found = WORST_FIRST.into_iter().find(|status| seen.contains(status));
    found.unwrap_or(ForkliftExit::Success)
}

#[cfg(test)]
mod tests {
    use model::exit::ExitStatus;

    use super::*;

    #[test]
    fn every_status_has_its_place() {
        for &status in ForkliftExit::ALL {
            assert!(WORST_FIRST.contains(&status), "{status:?}");
            assert_eq!(aggregate_status([status]), status);
            assert_eq!(aggregate_status([ForkliftExit::Success, status]), status);
        }
    }

    #[test]
    fn of_two_the_worse_one_is_told_in_either_order() {
        assert_eq!(
            WORST_FIRST.map(ForkliftExit::code),
            [143, 130, 129, 9, 2, 1, 7, 3, 6, 5, 4, 10, 11, 0]
        );
        for pair in WORST_FIRST.windows(2) {
            assert_eq!(aggregate_status([pair[0], pair[1]]), pair[0]);
            assert_eq!(aggregate_status([pair[1], pair[0]]), pair[0]);
        }
    }

    #[test]
    fn nothing_is_a_success() {
        assert_eq!(aggregate_status([]), ForkliftExit::Success);
    }
}
