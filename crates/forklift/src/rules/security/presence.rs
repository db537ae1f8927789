//! Decides whether a fork has a fix, by what was observed about each of its commits.
//!
//! A wrong "missing" costs people their trust in the list, so it needs three signs: the commit is not in the fork's history,
//! no commit of the fork makes the same change, and the fork's files are as they were before the fix. What has fewer is
//! listed as unclear, with the reason.

use merge::likeness::Likeness;
use model::id::Sha;
use serde::Serialize;

/// Share of a fix's new lines from which the fork counts as having it, and up to which as lacking it.
const HAS_ADDED: f64 = 0.9;
const LACKS_ADDED: f64 = 0.34;

/// Share of the lines that a fix removes up to which they count as gone, and from which as still there.
const GONE: f64 = 0.2;
const STILL_THERE: f64 = 0.66;

/// The same where next to none of the new lines is there.
const LACKS_ALL: f64 = 0.1;
pub(crate) const HALF_THERE: f64 = 0.5;

/// Result of applying a commit alone to the fork, in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(crate) enum Applies {
    Cleanly,
    /// Applying it changes nothing.
    Nothing,
    Conflicts {
        paths: Vec<String>,
    },
}

/// Facts about one commit of a fix.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FixFacts {
    pub(crate) commit: Sha,
    /// The commit is in the fork's history, and the fork did not revert it.
    pub(crate) reachable: bool,
    /// A commit of the fork that reverts it.
    pub(crate) reverted_by: Option<Sha>,
    /// A commit of the fork with the same patch id.
    pub(crate) same_patch: Option<Sha>,
    /// A commit of the fork whose message says that it brings this one.
    pub(crate) said_by: Option<Sha>,
    /// Files with code that it changes, and how many of them the fork has.
    pub(crate) code_files: usize,
    pub(crate) code_files_there: usize,
    pub(crate) likeness: Likeness,
    /// The same lines in the state of upstream that the fork has taken; looked at where the fork's history has the fix and its
    /// files seem not to.
    pub(crate) upstream_likeness: Option<Likeness>,
    pub(crate) applies: Option<Applies>,
}

impl FixFacts {
    /// A commit about which nothing is known.
    pub(crate) fn unknown(commit: &Sha) -> Self {
        Self {
            commit: commit.clone(),
            reachable: false,
            reverted_by: None,
            same_patch: None,
            said_by: None,
            code_files: 0,
            code_files_there: 0,
            likeness: Likeness::default(),
            upstream_likeness: None,
            applies: None,
        }
    }

    /// Returns whether the files seem not to have the fix, whatever the history says.
    pub(crate) fn seems_lost(&self) -> bool {
        self.code_files_there > 0 && what_is_left(self.likeness) != Remainder::Whole
    }
}

/// Rest of a fix that the fork's history has, in its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remainder {
    /// All of it, or nothing that could be looked for.
    Whole,
    Part,
    /// Other code stands there.
    Replaced,
    /// The files are as they were before the fix.
    Undone,
}

fn what_is_left(lines: Likeness) -> Remainder {
    let old_back = lines.removed_share().map(|share| share >= STILL_THERE);
    let old_gone = lines.removed_share().is_none_or(|share| share <= GONE);
    match (lines.added_share(), old_back) {
        (None, None) => Remainder::Whole,
        (None, Some(true)) => Remainder::Undone,
        (None, Some(false)) => {
            if old_gone {
                Remainder::Whole
            } else {
                Remainder::Part
            }
        }
        (Some(new), _) if new >= HAS_ADDED && old_gone => Remainder::Whole,
        (Some(new), Some(true)) if new <= LACKS_ADDED => Remainder::Undone,
        // A single line may have been adapted; several are gone.
        (Some(new), None) if new <= LACKS_ADDED && lines.added >= 2 => Remainder::Undone,
        (Some(new), _) if new <= LACKS_ADDED => Remainder::Replaced,
        (Some(_), _) => Remainder::Part,
    }
}

/// Decides about a fix that the fork's history has: a later change may have taken it away again, as a merge with the
/// strategy `ours` does. Code that upstream itself changed later says nothing.
fn judge_kept(facts: &FixFacts, why: &str) -> Presence {
    use Sureness::{Certain, Likely};
    let is_as_upstream = facts.upstream_likeness.is_some_and(|upstream| {
        let own = facts.likeness;
        own.added_found >= upstream.added_found && own.removed_found <= upstream.removed_found
    });
    let words = render_lines(facts.likeness);
    let left = match facts.seems_lost() && !is_as_upstream {
        true => what_is_left(facts.likeness),
        false => Remainder::Whole,
    };
    match left {
        Remainder::Whole => Presence::new(State::Present, Certain, why),
        Remainder::Part => Presence::new(State::Present, Likely, format!("{why}; {words}")),
        Remainder::Replaced => {
            Presence::unclear(format!("{why}, and a later change has other code there: {words}"))
        }
        Remainder::Undone => {
            let why = format!("{why}, but it was lost by a later change: {words}");
            Presence::new(State::Missing, Likely, why)
        }
    }
}

/// State of a fix in a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    Missing,
    Unclear,
    Present,
    NotAffected,
}

/// Sureness of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Sureness {
    /// By what git records: history, patch ids, or a change that changes nothing.
    Certain,
    /// By the lines of the files.
    Likely,
    /// Nobody can tell without looking.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Presence {
    pub(crate) state: State,
    pub(crate) sureness: Sureness,
    /// The reason, in words.
    pub(crate) why: String,
}

impl Presence {
    pub(crate) fn new(state: State, sureness: Sureness, why: impl Into<String>) -> Self {
        Self { state, sureness, why: why.into() }
    }

    pub(crate) fn unclear(why: impl Into<String>) -> Self {
        Self::new(State::Unclear, Sureness::Unknown, why)
    }
}

/// Decides about one commit.
pub(crate) fn judge_commit(facts: &FixFacts) -> Presence {
    use State::{Missing, NotAffected, Present};
    use Sureness::{Certain, Likely};
    if facts.reachable {
        return judge_kept(facts, "its commit is in the fork's history");
    }
    if facts.applies == Some(Applies::Nothing) {
        return Presence::new(Present, Certain, "applying it changes nothing in the fork");
    }
    if let Some(same) = facts.same_patch.as_ref().filter(|_| facts.reverted_by.is_none()) {
        return judge_kept(facts, &format!("the fork's {} makes the same change", same.short()));
    }
    let lines = facts.likeness;
    let (added, removed) = (lines.added_share(), lines.removed_share());
    let has_new = added.is_some_and(|share| share >= HAS_ADDED);
    let lacks_new = added.is_none_or(|share| share <= LACKS_ADDED);
    let old_gone = removed.is_none_or(|share| share <= GONE);
    let lacks_all = added.is_none_or(|share| share <= LACKS_ALL);
    let least = if lacks_all { HALF_THERE } else { STILL_THERE };
    let old_there = removed.is_some_and(|share| share >= least);
    let words = render_lines(lines);
    if has_new && old_gone && lines.added >= 2 {
        return Presence::new(Present, Likely, format!("the fork has its lines: {words}"));
    }
    if let Some(said) = &facts.said_by {
        let why = format!("the fork's {} says that it brings it, but {words}", said.short());
        return match facts.reverted_by {
            None => Presence::new(Present, Likely, why),
            Some(_) => Presence::unclear(why),
        };
    }
    if facts.applies.is_none() {
        return Presence::unclear("it changes too much to be compared");
    }
    if facts.code_files == 0 {
        return Presence::unclear("it changes no code: tests, documents or other files alone");
    }
    if facts.code_files_there == 0 {
        return Presence::new(
            NotAffected,
            Likely,
            "the fork has none of the files that it changes",
        );
    }
    if lines.added + lines.removed == 0 {
        return Presence::unclear("it changes no line that can be looked for");
    }
    let fits = facts.applies == Some(Applies::Cleanly);
    if lacks_new && (old_there || (fits && removed.is_none())) {
        let why = match &facts.reverted_by {
            Some(revert) => format!("the fork's {} reverts it; {words}", revert.short()),
            None => words,
        };
        return Presence::new(Missing, Likely, why);
    }
    if lacks_new && removed.is_some_and(|share| share <= GONE) {
        return Presence::unclear(format!("the fork has other code there: {words}"));
    }
    if lacks_new {
        return Presence::unclear(format!(
            "it does not apply, and may have to be adapted: {words}"
        ));
    }
    Presence::unclear(format!("the fork has part of it: {words}"))
}

fn render_lines(lines: Likeness) -> String {
    let Likeness { added, added_found, removed, removed_found } = lines;
    let new = format!("{added_found} of {added} new lines are there");
    match removed {
        0 => new,
        _ => format!("{removed_found} of {removed} old lines are still there, {new}"),
    }
}

/// Joins the states of the commits of one fix: it is there with all of them, and missing when none of them is there.
pub(crate) fn join_commits(commits: &[Presence]) -> Presence {
    let all = |state: State| commits.iter().all(|it| it.state == state);
    match commits {
        [] => Presence::unclear("no commit of upstream is known as its fix"),
        [one] => one.clone(),
        [first, ..] if all(first.state) => {
            let sureness = commits.iter().map(|it| it.sureness).max().unwrap_or(first.sureness);
            Presence::new(first.state, sureness, first.why.clone())
        }
        _ => {
            let count = |state| commits.iter().filter(|it| it.state == state).count();
            let parts = [
                (count(State::Present), "there"),
                (count(State::Missing), "missing"),
                (count(State::NotAffected), "not needed"),
                (count(State::Unclear), "unclear"),
            ];
            let parts: Vec<String> = parts
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, word)| format!("{count} {word}"))
                .collect();
            Presence::unclear(format!("of its {} commits {}", commits.len(), parts.join(", ")))
        }
    }
}

/// Joins alternatives, such as the fixes of several branches: one that is there is enough. Returns the one that decides.
pub(crate) fn join_alternatives(
    found: impl IntoIterator<Item = Presence>,
) -> Option<(usize, Presence)> {
    let rank = |state: State| match state {
        State::Present => 0,
        State::Missing => 1,
        State::Unclear => 2,
        State::NotAffected => 3,
    };
    found.into_iter().enumerate().min_by_key(|(_, it)| (rank(it.state), it.sureness))
}

/// Joins separate beginnings of one vulnerability: each that is open counts, the worst first.
pub(crate) fn join_beginnings(
    found: impl IntoIterator<Item = Presence>,
) -> Option<(usize, Presence)> {
    found.into_iter().enumerate().min_by_key(|(_, it)| (it.state, it.sureness))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(added: (usize, usize), removed: (usize, usize)) -> FixFacts {
        FixFacts {
            code_files: 1,
            code_files_there: 1,
            likeness: Likeness {
                added_found: added.0,
                added: added.1,
                removed_found: removed.0,
                removed: removed.1,
            },
            applies: Some(Applies::Cleanly),
            ..FixFacts::unknown(&Sha::parse(&"a".repeat(40)).unwrap())
        }
    }

    #[track_caller]
    fn check(facts: &FixFacts, state: State, sureness: Sureness) {
        let found = judge_commit(facts);
        assert_eq!((found.state, found.sureness), (state, sureness), "{facts:?}: {}", found.why);
    }

    #[test]
    fn what_git_records_is_certain() {
        let other = Some(Sha::parse(&"b".repeat(40)).unwrap());
        let lacking = facts((0, 3), (2, 2));
        let having = facts((3, 3), (0, 2));
        check(&FixFacts { reachable: true, ..having.clone() }, State::Present, Sureness::Certain);
        let same = FixFacts { same_patch: other.clone(), ..having };
        check(&same, State::Present, Sureness::Certain);
        let same = FixFacts { same_patch: other.clone(), ..lacking.clone() };
        let empty = FixFacts { applies: Some(Applies::Nothing), ..lacking.clone() };
        check(&empty, State::Present, Sureness::Certain);
        let undone = FixFacts { reverted_by: other, ..same };
        check(&undone, State::Missing, Sureness::Likely);
    }

    #[test]
    fn a_fix_of_the_history_that_the_files_lost_is_not_present() {
        let kept = |added, removed| FixFacts { reachable: true, ..facts(added, removed) };
        for (added, removed, state, sureness) in [
            ((3, 3), (0, 2), State::Present, Sureness::Certain),
            ((0, 0), (0, 0), State::Present, Sureness::Certain),
            ((2, 3), (0, 2), State::Present, Sureness::Likely),
            ((0, 3), (2, 2), State::Missing, Sureness::Likely),
            ((0, 3), (0, 0), State::Missing, Sureness::Likely),
            ((0, 0), (2, 2), State::Missing, Sureness::Likely),
            ((0, 0), (0, 2), State::Present, Sureness::Certain),
            ((0, 3), (0, 2), State::Unclear, Sureness::Unknown),
            ((0, 1), (0, 0), State::Unclear, Sureness::Unknown),
        ] {
            check(&kept(added, removed), state, sureness);
        }
        let same =
            FixFacts { same_patch: Some(facts((0, 1), (0, 0)).commit), ..facts((0, 3), (2, 2)) };
        check(&same, State::Missing, Sureness::Likely);
        let gone = FixFacts { code_files_there: 0, ..kept((0, 3), (2, 2)) };
        check(&gone, State::Present, Sureness::Certain);
    }

    #[test]
    fn code_that_upstream_changed_after_its_fix_is_not_lost_by_the_fork() {
        let kept = FixFacts { reachable: true, ..facts((0, 3), (2, 2)) };
        let upstream = |added: (usize, usize), removed: (usize, usize)| FixFacts {
            upstream_likeness: Some(facts(added, removed).likeness),
            ..kept.clone()
        };
        check(&upstream((0, 3), (2, 2)), State::Present, Sureness::Certain);
        check(&upstream((3, 3), (0, 2)), State::Missing, Sureness::Likely);
    }

    #[test]
    fn a_fix_is_missing_where_the_old_lines_stand_and_the_new_do_not() {
        check(&facts((0, 3), (2, 2)), State::Missing, Sureness::Likely);
        check(&facts((0, 3), (0, 0)), State::Missing, Sureness::Likely);
        check(&facts((0, 0), (2, 2)), State::Missing, Sureness::Likely);
        let conflicts = Some(Applies::Conflicts { paths: Vec::new() });
        let stuck = |facts| FixFacts { applies: conflicts.clone(), ..facts };
        check(&stuck(facts((0, 3), (2, 2))), State::Missing, Sureness::Likely);
        check(&stuck(facts((0, 3), (0, 0))), State::Unclear, Sureness::Unknown);
        check(&stuck(facts((0, 3), (0, 2))), State::Unclear, Sureness::Unknown);
    }

    #[test]
    fn the_lines_tell_a_fix_that_was_made_by_hand() {
        check(&facts((3, 3), (0, 2)), State::Present, Sureness::Likely);
        check(&facts((3, 3), (0, 0)), State::Present, Sureness::Likely);
        check(&facts((1, 1), (0, 0)), State::Unclear, Sureness::Unknown);
        check(&facts((2, 4), (1, 2)), State::Unclear, Sureness::Unknown);
    }

    #[test]
    fn a_fork_without_the_code_is_not_affected() {
        let gone = FixFacts { code_files_there: 0, ..facts((0, 3), (0, 2)) };
        check(&gone, State::NotAffected, Sureness::Likely);
        check(&FixFacts { code_files: 0, ..gone }, State::Unclear, Sureness::Unknown);
    }

    #[test]
    fn a_fix_of_several_commits_is_whole_or_unclear() {
        let one = |state| Presence::new(state, Sureness::Likely, "x");
        let joined = |states: &[State]| {
            join_commits(&states.iter().map(|state| one(*state)).collect::<Vec<_>>()).state
        };
        assert_eq!(joined(&[State::Missing, State::Missing]), State::Missing);
        assert_eq!(joined(&[State::Missing, State::Present]), State::Unclear);
        assert_eq!(joined(&[]), State::Unclear);
    }

    #[test]
    fn one_of_several_branches_fixes_is_enough() {
        let one = |state| Presence::new(state, Sureness::Likely, "x");
        let joined =
            |states: &[State]| join_alternatives(states.iter().map(|it| one(*it))).unwrap();
        assert_eq!(joined(&[State::Missing, State::Present]).0, 1);
        assert_eq!(joined(&[State::Unclear, State::Missing]).1.state, State::Missing);
        assert_eq!(join_alternatives([]), None);
        let joined = join_beginnings([one(State::NotAffected), one(State::Missing)]);
        assert_eq!(joined.unwrap().0, 1);
    }
}
