//! Search for the longest clean batch in a window of upstream's commits.
//!
//! A merge can begin or cease to conflict only at commits that touch what the fork changed: the candidates. A conflict may
//! appear, be undone upstream, and appear again, so every candidate is tried: halving would pass over such a conflict. One call
//! of git tries many of them.

use std::collections::BTreeMap;

/// Most candidates that are tried at once.
const MOST_AT_ONCE: usize = 40;

/// The same where the first conflict is enough.
const MOST_TO_FIRST: usize = 16;

/// Extent of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchExtent {
    /// The longest clean batch.
    Whole,
    /// The first conflict, for a window that is an estimate anyway.
    FirstConflict,
}

/// Result of a search, as positions in upstream's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// Last commit of the longest clean batch; `None` if the window begins with a conflict that is not undone in it.
    pub(crate) batch_end: Option<usize>,
    pub(crate) first_conflict: Option<usize>,
    /// Commits of the batch that conflict alone.
    pub(crate) passes: Vec<usize>,
}

/// A search over the commits `start..end`.
#[derive(Debug, Clone)]
pub(crate) struct WindowSearch {
    start: usize,
    end: usize,
    extent: SearchExtent,
    candidates: Vec<usize>,
    /// Known candidates by index, with whether they are clean.
    known: BTreeMap<usize, bool>,
}

impl WindowSearch {
    /// Starts a search. `candidates` are the positions at which the result can change, in order.
    pub(crate) fn new(
        (start, end): (usize, usize),
        candidates: Vec<usize>,
        extent: SearchExtent,
    ) -> Self {
        Self { start, end, extent, candidates, known: BTreeMap::new() }
    }

    /// Positions to try next; none when the search is done.
    pub(crate) fn next_trials(&self) -> Vec<usize> {
        // They are tried in order, so that their number says which come next.
        let tried = self.known.len();
        let next = match self.extent {
            SearchExtent::Whole => MOST_AT_ONCE,
            SearchExtent::FirstConflict if self.known.values().any(|clean| !clean) => 0,
            SearchExtent::FirstConflict => (tried + 1).min(MOST_TO_FIRST),
        };
        self.candidates.iter().skip(tried).take(next).copied().collect()
    }

    pub(crate) fn learn(&mut self, position: usize, is_clean: bool) {
        if let Ok(index) = self.candidates.binary_search(&position) {
            self.known.insert(index, is_clean);
        }
    }

    /// The result, when the search is done.
    pub(crate) fn found(&self) -> Window {
        let conflicts = || self.known.iter().filter(|(_, clean)| !**clean);
        let position = |(index, _): (&usize, &bool)| self.candidates[*index];
        let last_clean = self.known.iter().rev().find(|(_, clean)| **clean);
        let batch_end = match last_clean {
            // Up to the commit before the next candidate, which conflicts.
            Some((index, _)) => self.candidates.get(index + 1).copied().unwrap_or(self.end),
            None => self.candidates.first().copied().unwrap_or(self.end),
        };
        let batch_end = batch_end.checked_sub(1).filter(|end| *end >= self.start);
        let in_batch = |position: &usize| batch_end.is_some_and(|end| *position <= end);
        Window {
            batch_end,
            first_conflict: conflicts().map(position).next(),
            passes: conflicts().map(position).filter(in_batch).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a search; returns what it found and the number of trials.
    fn run(
        start: usize,
        end: usize,
        candidates: &[usize],
        clean: impl Fn(usize) -> bool,
    ) -> (Window, usize) {
        run_to(SearchExtent::Whole, (start, end), candidates, clean)
    }

    fn run_to(
        extent: SearchExtent,
        range: (usize, usize),
        candidates: &[usize],
        clean: impl Fn(usize) -> bool,
    ) -> (Window, usize) {
        let mut search = WindowSearch::new(range, candidates.to_vec(), extent);
        let mut trials = 0;
        loop {
            let next = search.next_trials();
            if next.is_empty() {
                return (search.found(), trials);
            }
            trials += next.len();
            assert!(trials <= 1000, "it does not end");
            next.into_iter().for_each(|position| search.learn(position, clean(position)));
        }
    }

    #[test]
    fn commits_that_touch_nothing_of_the_forks_need_no_trial() {
        let (window, trials) = run(3, 10, &[], |_| true);
        assert_eq!((window.batch_end, window.first_conflict, trials), (Some(9), None, 0));
    }

    #[test]
    fn a_batch_ends_before_the_commit_that_conflicts() {
        let (window, _) = run(0, 10, &[2, 5, 8], |at| at < 5);
        assert_eq!((window.batch_end, window.first_conflict), (Some(4), Some(5)));
        let (window, _) = run(5, 10, &[5, 8], |_| false);
        assert_eq!((window.batch_end, window.first_conflict), (None, Some(5)));
        let (window, _) = run(5, 10, &[6, 8], |_| false);
        assert_eq!((window.batch_end, window.first_conflict), (Some(5), Some(6)));
    }

    #[test]
    fn a_conflict_that_upstream_undid_is_passed_and_named() {
        let (window, _) = run(0, 200, &[20, 60, 140, 190], |at| at != 60);
        assert_eq!((window.batch_end, window.first_conflict), (Some(199), Some(60)));
        assert_eq!(window.passes, [60]);
        let (window, _) = run(0, 200, &[20, 60, 140, 190], |at| at != 60 && at < 190);
        assert_eq!((window.batch_end, window.passes), (Some(189), vec![60]));
    }

    #[test]
    fn a_conflict_among_many_candidates_that_upstream_undid_is_found() {
        let all: Vec<usize> = (0..150).collect();
        let (window, trials) = run(0, 150, &all, |at| !(5..8).contains(&at));
        assert_eq!((window.batch_end, window.first_conflict), (Some(149), Some(5)));
        assert_eq!((window.passes, trials), (vec![5, 6, 7], 150));
    }

    #[test]
    fn an_estimate_ends_at_the_first_conflict() {
        let all: Vec<usize> = (0..30).collect();
        for first in [0, 1, 9, 29] {
            let extent = SearchExtent::FirstConflict;
            let (window, trials) = run_to(extent, (0, 30), &all, |at| at < first);
            assert_eq!(window.first_conflict, Some(first));
            assert_eq!(window.batch_end, first.checked_sub(1));
            assert!(trials <= 2 * first + 1, "{trials} trials");
        }
        let (window, _) = run_to(SearchExtent::FirstConflict, (0, 30), &all, |_| true);
        assert_eq!((window.batch_end, window.first_conflict), (Some(29), None));
    }

    /// A small generator, so that every run tests the same cases.
    fn next_random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn the_first_conflict_is_never_later_than_that_of_an_exhaustive_search() {
        let mut state = 0x9e37_79b9_7f4a_7c15;
        for _ in 0..2000 {
            let end = 1 + usize::try_from(next_random(&mut state) % 150).expect("small");
            let share = 1 + next_random(&mut state) % 8;
            let candidates: Vec<usize> =
                (0..end).filter(|_| next_random(&mut state) % 8 < share).collect();
            let conflicting: Vec<bool> =
                (0..end).map(|_| next_random(&mut state).is_multiple_of(3)).collect();
            let is_clean = |at: usize| {
                candidates.iter().rev().find(|it| **it <= at).is_none_or(|it| !conflicting[*it])
            };
            let (window, _) = run(0, end, &candidates, is_clean);
            assert_eq!(window.first_conflict, (0..end).find(|at| !is_clean(*at)));
            assert_eq!(window.batch_end, (0..end).rev().find(|at| is_clean(*at)));
        }
    }
}
