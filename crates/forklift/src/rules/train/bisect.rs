//! Search for a commit with which the check fails and before which it passes.

use std::collections::BTreeMap;

/// Result of the check after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    Green,
    Red,
    /// The commit cannot be checked: merging up to it conflicts.
    Unknown,
}

/// State of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bisection {
    /// Try the state after this many commits next; zero is the fork itself.
    Try(usize),
    /// The check fails with the commit at this position, from 1, and passes before it.
    Found(usize),
    /// One of these commits, because those between cannot be checked.
    OneOf(Vec<usize>),
    /// The check fails without any commit of upstream.
    RedBefore,
}

/// A search over the commits `1..=count`, with the last of which the check fails. Zero, the fork itself, is tried only
/// where every other trial was red: a green trial shows as well that the check can pass.
#[derive(Debug, Clone)]
pub(crate) struct Bisect {
    count: usize,
    known: BTreeMap<usize, Probe>,
}

impl Bisect {
    pub(crate) fn new(count: usize) -> Self {
        Self { count, known: BTreeMap::from([(count, Probe::Red)]) }
    }

    pub(crate) fn learn(&mut self, position: usize, probe: Probe) {
        self.known.insert(position, probe);
    }

    pub(crate) fn next(&self) -> Bisection {
        let red = self.known.iter().find(|(_, probe)| **probe == Probe::Red);
        let red = red.map_or(self.count, |(position, _)| *position);
        if red == 0 {
            return Bisection::RedBefore;
        }
        let green = self.known.range(..red).rev().find(|(_, probe)| **probe == Probe::Green);
        let green = green.map(|(position, _)| *position);
        let low = green.unwrap_or(0);
        if let Some(trial) = self.nearest_to_middle(low, red) {
            return Bisection::Try(trial);
        }
        match green {
            None => Bisection::Try(0),
            Some(green) if green + 1 == red => Bisection::Found(red),
            Some(green) => Bisection::OneOf((green + 1..=red).collect()),
        }
    }

    /// Returns whether every commit before this position was seen to be green: else an earlier one may break the check too, and
    /// a later one may mend it.
    pub(crate) fn is_first(&self, position: usize) -> bool {
        (1..position).all(|before| self.known.get(&before) == Some(&Probe::Green))
    }

    /// The position nearest to the middle that was not tried, between a green and a red one. The lower half is the smaller
    /// one, because the search ends one trial later there.
    fn nearest_to_middle(&self, low: usize, high: usize) -> Option<usize> {
        let middle = low + (high - low) / 2;
        let open = |position: &usize| !self.known.contains_key(position);
        let mut between: Vec<usize> = (low + 1..high).filter(open).collect();
        between.sort_by_key(|position| position.abs_diff(middle));
        between.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a search; returns its end and the number of trials.
    fn run(count: usize, probe: impl Fn(usize) -> Probe) -> (Bisection, usize) {
        let mut bisect = Bisect::new(count);
        let mut trials = 0;
        loop {
            match bisect.next() {
                Bisection::Try(position) => bisect.learn(position, probe(position)),
                end => return (end, trials),
            }
            trials += 1;
            assert!(trials <= count + 1, "it does not end");
        }
    }

    fn red_from(first: usize) -> impl Fn(usize) -> Probe {
        move |position| if position >= first { Probe::Red } else { Probe::Green }
    }

    #[test]
    fn any_of_300_commits_is_found_with_at_most_nine_checks_after_the_first() {
        for first in 1..=300 {
            let (end, trials) = run(300, red_from(first));
            assert_eq!(end, Bisection::Found(first));
            assert!(trials <= 9, "{trials} trials for {first}");
        }
    }

    #[test]
    fn a_commit_is_the_first_only_where_each_before_it_was_seen_to_be_green() {
        let mut bisect = Bisect::new(9);
        for (position, probe) in [(5, Probe::Green), (7, Probe::Green), (8, Probe::Green)] {
            bisect.learn(position, probe);
        }
        assert_eq!(bisect.next(), Bisection::Found(9));
        assert!(!bisect.is_first(9) && bisect.is_first(1));
        (1..9).for_each(|position| bisect.learn(position, Probe::Green));
        assert!(bisect.is_first(9));
        bisect.learn(3, Probe::Unknown);
        assert!(!bisect.is_first(9));
    }

    #[test]
    fn a_check_that_fails_on_the_fork_itself_blames_no_commit() {
        assert_eq!(run(7, red_from(0)).0, Bisection::RedBefore);
        assert_eq!(run(1, red_from(0)), (Bisection::RedBefore, 1));
        assert_eq!(run(1, red_from(1)), (Bisection::Found(1), 1));
    }

    #[test]
    fn commits_that_cannot_be_checked_are_passed_or_named_together() {
        let unknown = |skipped: &'static [usize], first: usize| {
            move |position: usize| match skipped.contains(&position) {
                true => Probe::Unknown,
                false => red_from(first)(position),
            }
        };
        assert_eq!(run(10, unknown(&[5, 6], 9)).0, Bisection::Found(9));
        assert_eq!(run(10, unknown(&[5, 6], 6)).0, Bisection::OneOf(vec![5, 6, 7]));
        assert_eq!(run(3, unknown(&[1, 2], 1)).0, Bisection::OneOf(vec![1, 2, 3]));
    }
}
