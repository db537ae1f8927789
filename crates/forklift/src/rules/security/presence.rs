//! Decides whether a fork has a fix, by what was observed about each of its commits.
//!
//! A wrong "missing" costs people their trust in the list, so it needs three signs: the commit is not in the fork's history,
//! no commit of the fork makes the same change, and the fork's files are as they were before the fix. What has fewer is
//! listed as unclear, with the reason.
//!
//! A wrong "present" or "not affected" costs more, and is certain only where every file is, to the byte, one of upstream's: lines
//! that stand in a file that the fork has changed may be switched off, and what a history has may be lost. Otherwise it is
//! likely, and stays in the list.

use merge::likeness::Likeness;
use model::id::Sha;
use serde::Serialize;

use super::code_place::FileFacts;

/// Share of a fix's new lines from which the fork counts as having it, and up to which as lacking it.
const HAS_ADDED: f64 = 0.9;
const LACKS_ADDED: f64 = 0.34;

/// Share of the lines that a fix removes up to which they count as gone, and from which as still there.
const GONE: f64 = 0.2;
const STILL_THERE: f64 = 0.66;

/// The same where next to none of the new lines is there.
pub(crate) const LACKS_ALL: f64 = 0.1;
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
    /// It does not apply to the other commits of the fix, such as that of another branch.
    Excludes,
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
    /// It has no difference to its parent at all.
    pub(crate) changes_nothing: bool,
    pub(crate) files: FileFacts,
    /// The same lines in the state of upstream that the fork has taken, if that has the commit.
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
            changes_nothing: false,
            files: FileFacts::default(),
            upstream_likeness: None,
            applies: None,
        }
    }

    /// Returns whether the files seem not to have the fix, whatever the history says.
    pub(crate) fn seems_lost(&self) -> bool {
        self.files.code_files_there > 0 && what_is_left(self.files.likeness) != Remainder::Whole
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
/// strategy `ours` does, or may have switched it off.
fn judge_kept(facts: &FixFacts, why: &str) -> Presence {
    use Sureness::{Certain, Likely};
    let files = &facts.files;
    let likely = |why: String| Presence::new(State::Present, Likely, why);
    let words = render_lines(files);
    if files.is_upstreams(facts.upstream_likeness.is_some()) {
        return match what_is_left(files.likeness) {
            Remainder::Whole => Presence::new(State::Present, Certain, why),
            Remainder::Part | Remainder::Replaced | Remainder::Undone => {
                likely(format!("{why}, and upstream changed its lines since: {words}"))
            }
        };
    }
    if files.code_files == 0 || files.code_files_there == 0 {
        return likely(format!(
            "{why}, but the fork has no file with code in which to look for it"
        ));
    }
    let is_as_upstream = facts.upstream_likeness.is_some_and(|upstream| {
        let own = files.likeness;
        own.added_found >= upstream.added_found && own.removed_found <= upstream.removed_found
    });
    match what_is_left(files.likeness) {
        Remainder::Whole => {
            let lines = match files.likeness.added + files.likeness.removed {
                0 => "it changes no line that can be looked for".to_owned(),
                _ => words,
            };
            likely(format!("{why}; {lines}, in files that the fork has changed"))
        }
        _ if is_as_upstream && files.moved.is_empty() => {
            likely(format!("{why}, and upstream changed its lines since: {words}"))
        }
        Remainder::Part => likely(format!("{why}; {words}")),
        Remainder::Replaced => {
            Presence::unclear(format!("{why}, and a later change has other code there: {words}"))
        }
        Remainder::Undone if files.moved.is_empty() || files.is_moved_whole() => {
            let why = format!("{why}, but it was lost by a later change: {words}");
            Presence::new(State::Missing, Likely, why)
        }
        Remainder::Undone => {
            Presence::unclear(format!("{why}, but other code looks like that before it: {words}"))
        }
    }
}

/// Decides about a fix whose application changes nothing: the fork has its result, or none of its files.
fn judge_empty(facts: &FixFacts) -> Option<Presence> {
    let (files, why) = (&facts.files, "applying it changes nothing in the fork");
    let sureness = if files.is_upstreams(false) { Sureness::Certain } else { Sureness::Likely };
    match what_is_left(files.likeness) {
        _ if files.unsearched > 0 => Some(Presence::unclear(format!(
            "{why}, and it could not be seen whether its code stands in other files"
        ))),
        Remainder::Undone => None,
        Remainder::Whole if files.moved.is_empty() => {
            Some(Presence::new(State::Present, sureness, why))
        }
        Remainder::Whole | Remainder::Part | Remainder::Replaced => {
            let why = format!("{why}: {}", render_lines(files));
            Some(Presence::new(State::Present, Sureness::Likely, why))
        }
    }
}

/// Decides about a fix of which a message of the fork says that it was brought: that is worth as much as the lines show.
fn judge_said(facts: &FixFacts, said: &Sha) -> Presence {
    let words = render_lines(&facts.files);
    let why = format!("the fork's {} says that it brings it, but {words}", said.short());
    let most = facts.files.likeness.added_share().is_some_and(|share| share >= HALF_THERE);
    match facts.reverted_by {
        None if most => Presence::new(State::Present, Sureness::Likely, why),
        None | Some(_) => Presence::unclear(why),
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
    use Sureness::Likely;
    let files = &facts.files;
    if facts.reachable {
        return judge_kept(facts, "its commit is in the fork's history");
    }
    if facts.changes_nothing {
        return Presence::unclear("it changes no file, and so is not the fix itself");
    }
    if facts.applies == Some(Applies::Nothing)
        && let Some(presence) = judge_empty(facts)
    {
        return presence;
    }
    if let Some(same) = facts.same_patch.as_ref().filter(|_| facts.reverted_by.is_none()) {
        return judge_kept(facts, &format!("the fork's {} makes the same change", same.short()));
    }
    let lines = files.likeness;
    let (added, removed) = (lines.added_share(), lines.removed_share());
    let has_new = added.is_some_and(|share| share >= HAS_ADDED);
    let lacks_new = added.is_none_or(|share| share <= LACKS_ADDED);
    let old_gone = removed.is_none_or(|share| share <= GONE);
    let lacks_all = added.is_none_or(|share| share <= LACKS_ALL);
    let least = if lacks_all { HALF_THERE } else { STILL_THERE };
    let old_there = removed.is_some_and(|share| share >= least);
    let words = render_lines(files);
    if has_new && old_gone && lines.added >= 2 {
        return Presence::new(Present, Likely, format!("the fork has its lines: {words}"));
    }
    let fits = facts.applies == Some(Applies::Cleanly);
    let is_missing = lacks_new
        && match files.moved.is_empty() {
            true => old_there || (fits && removed.is_none() && files.code_files_there > 0),
            false => files.is_moved_whole() && removed.is_none_or(|_| old_there),
        };
    if let Some(said) = facts.said_by.as_ref().filter(|_| !is_missing || lines.added == 0) {
        return judge_said(facts, said);
    }
    if facts.applies.is_none() {
        return Presence::unclear("it changes too much to be compared");
    }
    if files.code_files == 0 {
        return Presence::unclear("it changes no code: tests, documents or other files alone");
    }
    if files.code_files_there == 0 {
        let why = "the fork has none of the files that it changes";
        return match files.unsearched {
            0 => Presence::new(NotAffected, Likely, format!("{why}, and their code in no other")),
            _ => Presence::unclear(format!(
                "{why}, and it could not be seen whether their code stands in others"
            )),
        };
    }
    if lines.added + lines.removed == 0 {
        return Presence::unclear("it changes no line that can be looked for");
    }
    if is_missing {
        let why = match (&facts.reverted_by, &facts.said_by) {
            (Some(revert), _) => {
                format!("{} in the fork's history reverts it; {words}", revert.short())
            }
            (None, Some(said)) => {
                format!("the fork's {} says that it brings it, but {words}", said.short())
            }
            (None, None) => words,
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

fn render_lines(files: &FileFacts) -> String {
    let Likeness { added, added_found, removed, removed_found } = files.likeness;
    let new = format!("{added_found} of {added} new lines are there");
    let words = match removed {
        0 => new,
        _ => format!("{removed_found} of {removed} old lines are still there, {new}"),
    };
    words + &files.moved_words()
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
    found.into_iter().enumerate().min_by_key(|(_, it)| weakness(it.state, it.sureness))
}

/// Order of what counts where all have to be good: the open ones first, and what is only likely before what is certain.
pub(crate) fn weakness(state: State, sureness: Sureness) -> (State, bool, State) {
    match state {
        State::Missing | State::Unclear => (state, sureness != Sureness::Certain, state),
        State::Present | State::NotAffected => {
            (State::Present, sureness == Sureness::Certain, state)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::code_place::MovedCode;
    use super::*;

    fn facts(added: (usize, usize), removed: (usize, usize)) -> FixFacts {
        let likeness = Likeness {
            added_found: added.0,
            added: added.1,
            removed_found: removed.0,
            removed: removed.1,
        };
        let files =
            FileFacts { code_files: 1, code_files_there: 1, likeness, ..FileFacts::default() };
        FixFacts {
            files,
            applies: Some(Applies::Cleanly),
            ..FixFacts::unknown(&Sha::parse(&"a".repeat(40)).unwrap())
        }
    }

    /// The same with files that are upstream's to the byte.
    fn upstreams(facts: FixFacts) -> FixFacts {
        FixFacts { files: FileFacts { as_new: 1, ..facts.files }, ..facts }
    }

    fn moved(facts: FixFacts, is_whole: bool) -> FixFacts {
        let moved = vec![MovedCode { path: "big.c".to_owned(), is_whole }];
        FixFacts { files: FileFacts { moved, ..facts.files }, ..facts }
    }

    #[track_caller]
    fn check(facts: &FixFacts, state: State, sureness: Sureness) {
        let found = judge_commit(facts);
        assert_eq!((found.state, found.sureness), (state, sureness), "{facts:?}: {}", found.why);
    }

    #[test]
    fn what_git_records_is_certain_where_every_file_is_upstreams() {
        let other = Some(Sha::parse(&"b".repeat(40)).unwrap());
        let lacking = facts((0, 3), (2, 2));
        let having = facts((3, 3), (0, 2));
        let same = FixFacts { same_patch: other.clone(), ..lacking.clone() };
        for way in [
            FixFacts { reachable: true, ..having.clone() },
            FixFacts { same_patch: other.clone(), ..having.clone() },
            FixFacts { applies: Some(Applies::Nothing), ..having },
        ] {
            check(&upstreams(way.clone()), State::Present, Sureness::Certain);
            check(&way, State::Present, Sureness::Likely);
        }
        let undone = FixFacts { reverted_by: other, ..same };
        check(&undone, State::Missing, Sureness::Likely);
    }

    #[test]
    fn a_fix_of_the_history_that_the_files_lost_is_not_present() {
        let kept = |added, removed| FixFacts { reachable: true, ..facts(added, removed) };
        for (added, removed, state, sureness) in [
            ((3, 3), (0, 2), State::Present, Sureness::Likely),
            ((0, 0), (0, 0), State::Present, Sureness::Likely),
            ((2, 3), (0, 2), State::Present, Sureness::Likely),
            ((0, 3), (2, 2), State::Missing, Sureness::Likely),
            ((0, 3), (0, 0), State::Missing, Sureness::Likely),
            ((0, 0), (2, 2), State::Missing, Sureness::Likely),
            ((0, 0), (0, 2), State::Present, Sureness::Likely),
            ((0, 3), (0, 2), State::Unclear, Sureness::Unknown),
            ((0, 1), (0, 0), State::Unclear, Sureness::Unknown),
        ] {
            check(&kept(added, removed), state, sureness);
        }
        let same =
            FixFacts { same_patch: Some(facts((0, 1), (0, 0)).commit), ..facts((0, 3), (2, 2)) };
        check(&same, State::Missing, Sureness::Likely);
        let lost = kept((0, 3), (2, 2));
        check(&moved(lost.clone(), true), State::Missing, Sureness::Likely);
        check(&moved(lost.clone(), false), State::Unclear, Sureness::Unknown);
        let gone = FixFacts { files: FileFacts { code_files_there: 0, ..lost.files }, ..lost };
        check(&gone, State::Present, Sureness::Likely);
    }

    #[test]
    fn code_that_upstream_changed_after_its_fix_is_not_lost_by_the_fork() {
        let kept = FixFacts { reachable: true, ..facts((0, 3), (2, 2)) };
        let upstream = |added: (usize, usize), removed: (usize, usize)| FixFacts {
            upstream_likeness: Some(facts(added, removed).files.likeness),
            ..kept.clone()
        };
        check(&upstream((0, 3), (2, 2)), State::Present, Sureness::Likely);
        check(&upstream((3, 3), (0, 2)), State::Missing, Sureness::Likely);
    }

    #[test]
    fn a_commit_without_a_change_is_no_fix() {
        let empty = FixFacts {
            changes_nothing: true,
            applies: Some(Applies::Nothing),
            files: FileFacts::default(),
            ..facts((0, 0), (0, 0))
        };
        check(&empty, State::Unclear, Sureness::Unknown);
        check(&FixFacts { reachable: true, ..empty }, State::Present, Sureness::Likely);
    }

    #[test]
    fn a_fix_that_changes_nothing_is_not_present_while_its_code_stands_elsewhere() {
        let removal = FixFacts { applies: Some(Applies::Nothing), ..facts((0, 0), (9, 9)) };
        check(&moved(removal.clone(), true), State::Missing, Sureness::Likely);
        check(&moved(removal.clone(), false), State::Unclear, Sureness::Unknown);
        let files = FileFacts { unsearched: 1, ..facts((0, 0), (0, 0)).files };
        check(&FixFacts { files, ..removal }, State::Unclear, Sureness::Unknown);
    }

    #[test]
    fn a_message_that_says_it_brings_a_fix_is_worth_what_the_lines_show() {
        let said = |added, removed| FixFacts {
            said_by: Some(Sha::parse(&"b".repeat(40)).unwrap()),
            ..facts(added, removed)
        };
        check(&said((3, 4), (0, 2)), State::Present, Sureness::Likely);
        check(&said((1, 4), (0, 2)), State::Unclear, Sureness::Unknown);
        check(&said((0, 4), (2, 2)), State::Missing, Sureness::Likely);
        let conflicts = Some(Applies::Conflicts { paths: Vec::new() });
        let stuck = FixFacts { applies: conflicts, ..said((0, 4), (0, 0)) };
        check(&stuck, State::Unclear, Sureness::Unknown);
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
        let none = FileFacts { code_files: 1, ..FileFacts::default() };
        let gone = |files| FixFacts { files, ..facts((0, 0), (0, 0)) };
        check(&gone(none.clone()), State::NotAffected, Sureness::Likely);
        let unsearched = FileFacts { unsearched: 1, ..none };
        check(&gone(unsearched), State::Unclear, Sureness::Unknown);
        check(&gone(FileFacts::default()), State::Unclear, Sureness::Unknown);
        check(&moved(facts((0, 3), (2, 2)), true), State::Missing, Sureness::Likely);
        check(&moved(facts((0, 3), (0, 0)), true), State::Missing, Sureness::Likely);
        check(&moved(facts((0, 3), (2, 2)), false), State::Unclear, Sureness::Unknown);
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
        // One beginning that is certainly closed says nothing about another one.
        let certain = Presence::new(State::Present, Sureness::Certain, "x");
        let joined = join_beginnings([certain, one(State::NotAffected)]).unwrap();
        assert_eq!((joined.0, joined.1.sureness), (1, Sureness::Likely));
    }
}
