//! Search for the first commit in a list that conflicts.
//!
//! A short list is tried one by one, which is exact: a conflict may appear, be reverted upstream and appear again. A long list
//! is bisected, which finds a commit that conflicts after one that does not.

/// Longest list that is tried one by one.
pub(crate) const MOST_ONE_BY_ONE: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchMethod {
    OneByOne,
    Halving,
}

/// A search over the commits `0..count`, of which the last is known to conflict.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    method: SearchMethod,
    /// Commits before this one do not conflict, as far as the method shows.
    clean: usize,
    conflicting: usize,
}

impl Search {
    /// Starts a search; `None` without commits.
    pub(crate) fn new(count: usize) -> Option<Self> {
        let method =
            if count <= MOST_ONE_BY_ONE { SearchMethod::OneByOne } else { SearchMethod::Halving };
        Some(Self { method, clean: 0, conflicting: count.checked_sub(1)? })
    }

    pub(crate) fn method(&self) -> SearchMethod {
        self.method
    }

    /// Commit to try next; `None` when the search is done.
    pub(crate) fn next_trial(&self) -> Option<usize> {
        (self.clean < self.conflicting).then(|| match self.method {
            SearchMethod::OneByOne => self.clean,
            SearchMethod::Halving => usize::midpoint(self.clean, self.conflicting),
        })
    }

    pub(crate) fn learn(&mut self, trial: usize, conflicts: bool) {
        if conflicts {
            self.conflicting = trial;
        } else {
            self.clean = trial + 1;
        }
    }

    /// First conflicting commit, when the search is done.
    pub(crate) fn found(&self) -> usize {
        self.conflicting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a search to its end; returns what it found and how many trials it took.
    fn run(count: usize, conflicts: impl Fn(usize) -> bool) -> (usize, usize) {
        let mut search = Search::new(count).expect("commits");
        let mut trials = 0;
        while let Some(trial) = search.next_trial() {
            search.learn(trial, conflicts(trial));
            trials += 1;
        }
        (search.found(), trials)
    }

    #[test]
    fn a_line_without_commits_needs_no_search() {
        assert!(Search::new(0).is_none());
        assert_eq!(run(1, |_| true), (0, 0), "the last is known to conflict");
    }

    #[test]
    fn a_short_line_is_searched_exactly_even_where_a_conflict_was_undone() {
        assert_eq!(run(10, |n| n == 2 || n >= 7), (2, 3));
        assert_eq!(run(10, |n| n >= 9), (9, 9));
        assert_eq!(run(10, |_| true), (0, 1));
    }

    #[test]
    fn a_long_line_is_halved() {
        for first in [0, 1, 499, 4999, 9999] {
            let (found, trials) = run(10_000, |n| n >= first);
            assert_eq!(found, first);
            assert!(trials <= 14, "{trials} trials");
        }
    }
}
