//! State of each change of the fork: whole, changed, gone, or taken by upstream. The decision is pure.

use std::collections::BTreeSet;

use host::git::{GitError, SealedRepo};
use model::id::Sha;
use serde::Serialize;

use super::change::LineAssignment;
use super::compare::{UpstreamComparison, compare_changes};
use super::effect::{ChangeEffect, observe_effects};
use super::taken::{Twin, find_twins};
use super::{Delta, LineCount, LineOrigin};
use crate::likeness::Likeness;

/// Share of a change's new lines from which upstream seems to have them, and up to which it has none of them; of the lines that it
/// removes the other way round.
const HAS_ADDED: f64 = 0.9;
const HAS_NONE: f64 = 0.2;

/// Telling lines of a change below which a likeness says nothing.
const LEAST_LINES: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeState {
    /// Upstream has all that it does, each line in its place.
    Superseded,
    /// Upstream seems to have it, by a commit or by most of its lines.
    LikelySuperseded,
    /// Nothing that its commits did is so in the fork's tree.
    Gone,
    /// Only a part of what its commits did is so in the fork's tree.
    Changed,
    /// All of it is.
    Whole,
}

impl ChangeState {
    pub const ALL: [Self; 5] =
        [Self::Superseded, Self::LikelySuperseded, Self::Gone, Self::Changed, Self::Whole];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Superseded => "superseded",
            Self::LikelySuperseded => "likely superseded",
            Self::Gone => "gone",
            Self::Changed => "changed",
            Self::Whole => "whole",
        }
    }
}

/// Facts about one change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeFacts {
    /// Its lines in the fork's tree.
    pub lines: LineCount,
    /// Files without lines, such as binary ones.
    pub whole_files: usize,
    /// Its lines that come from a commit with a twin at upstream.
    pub twin_lines: usize,
    /// The twins of its commits.
    pub twins: Vec<Twin>,
    /// The change beside upstream's files.
    pub comparison: UpstreamComparison,
    /// Effect of its commits, and where it is so.
    pub effect: ChangeEffect,
}

/// A state and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JudgedChange {
    pub state: ChangeState,
    pub why: String,
}

/// Decides about a change.
pub fn judge_change(facts: &ChangeFacts) -> JudgedChange {
    let judged = |state, why: String| JudgedChange { state, why };
    let lines = facts.lines.total();
    if lines == 0 && facts.whole_files == 0 {
        return judge_without_own(facts);
    }
    let words = comparison_words(&facts.comparison);
    let twin = facts.twins.first();
    let twin_words = twin.map(|it| format!("{} in {}", it.sign.as_str(), it.commit.short()));
    if facts.comparison.is_exact() && facts.effect.parts_of_fork == 0 {
        let files = match facts.comparison.files {
            1 => "upstream's file has all of it in its place".to_owned(),
            count => format!("upstream's {count} files have all of it in its place"),
        };
        let twin = twin_words.map(|words| format!("; {words}")).unwrap_or_default();
        return judged(ChangeState::Superseded, files + &twin);
    }
    if let Some(by) = facts.twins.iter().find_map(|twin| twin.reverted_by.as_ref()) {
        let why = format!("upstream took it and undid it in {}; {words}", by.short());
        return judged(held(facts), why);
    }
    let all = facts.comparison.all;
    // A file without lines has nothing to be compared by.
    let is_taken = lines > 0 && facts.whole_files == 0 && facts.twin_lines == lines;
    let is_there = has_lines(all);
    match twin_words {
        Some(twin) if has_nothing(all) => {
            judged(held(facts), format!("{twin}, but nothing of it is there now; {words}"))
        }
        Some(twin) if is_taken || is_there => {
            judged(ChangeState::LikelySuperseded, format!("{twin}; {words}"))
        }
        None if is_there && facts.comparison.telling.added >= LEAST_LINES => {
            judged(ChangeState::LikelySuperseded, format!("by its lines alone: {words}"))
        }
        Some(_) | None => judged(held(facts), held_words(facts.effect)),
    }
}

/// Decides about a change of which nothing is the fork's own: it is lost, it is upstream's by now, or other commits stand where it
/// did.
fn judge_without_own(facts: &ChangeFacts) -> JudgedChange {
    let judged = |state, why: String| JudgedChange { state, why };
    let ChangeEffect { lines, parts, .. } = facts.effect;
    let mut all = lines;
    all += parts;
    if all.written == 0 {
        let why = "no line of the fork's own, and no commit that did anything else, belongs to it";
        return judged(ChangeState::Gone, why.to_owned());
    }
    let words = held_words(facts.effect);
    match (all.in_fork, all.in_upstream) {
        (0, _) => judged(ChangeState::Gone, words),
        (held, upstream) if held == all.written && upstream == all.written => judged(
            ChangeState::Superseded,
            format!(
                "merged: {words}, and so they are in upstream's; nothing of it is the fork's own"
            ),
        ),
        _ => judged(held(facts), words),
    }
}

/// Whole or changed, by what the commits did.
fn held(facts: &ChangeFacts) -> ChangeState {
    let ChangeEffect { lines, parts, .. } = facts.effect;
    match lines.in_fork == lines.written && parts.in_fork == parts.written {
        true => ChangeState::Whole,
        false => ChangeState::Changed,
    }
}

fn held_words(effect: ChangeEffect) -> String {
    let ChangeEffect { lines, parts, .. } = effect;
    let lines = (lines.written > 0).then(|| {
        format!("{} of {} lines that its commits added or removed", lines.in_fork, lines.written)
    });
    let parts = (parts.written > 0).then(|| {
        format!("{} of {} modes, names and files without lines", parts.in_fork, parts.written)
    });
    let all: Vec<String> = [lines, parts].into_iter().flatten().collect();
    match all.is_empty() {
        true => "its lines are in the fork's tree".to_owned(),
        false => format!("{} are so in the fork's tree", all.join(" and ")),
    }
}

/// Returns whether upstream's files have most of what the change adds and lack most of what it removes. A change without lines
/// says nothing.
fn has_lines(likeness: Likeness) -> bool {
    let (added, removed) = (likeness.added_share(), likeness.removed_share());
    let has_any = added.is_some() || removed.is_some();
    has_any
        && added.is_none_or(|share| share >= HAS_ADDED)
        && removed.is_none_or(|share| share <= HAS_NONE)
}

/// Returns whether upstream's files have next to nothing of what the change does.
fn has_nothing(likeness: Likeness) -> bool {
    let (added, removed) = (likeness.added_share(), likeness.removed_share());
    let has_any = added.is_some() || removed.is_some();
    has_any
        && added.is_none_or(|share| share <= HAS_NONE)
        && removed.is_none_or(|share| share >= HAS_ADDED)
}

fn comparison_words(comparison: &UpstreamComparison) -> String {
    let Likeness { added, added_found, removed, removed_found } = comparison.all;
    let words = match (added, removed) {
        (0, 0) => "no line of it can be compared".to_owned(),
        (_, 0) => format!("upstream's files have {added_found} of its {added} lines"),
        (0, _) => format!(
            "upstream's files still have {removed_found} of {removed} lines that it removes"
        ),
        (_, _) => format!(
            "upstream's files have {added_found} of its {added} lines, and still {removed_found} of {removed} that it removes"
        ),
    };
    match &comparison.differs {
        Some((path, difference)) => {
            format!("{words}, blanks and places not counted; {path}: {}", difference.as_str())
        }
        None => words,
    }
}

/// Where changes are compared with upstream.
#[derive(Clone, Copy, Debug)]
pub struct StateEnds<'a> {
    /// Upstream's commit, and the one that the fork began with.
    pub target: &'a Sha,
    pub since: &'a Sha,
    /// Commits that declared changes name, by their numbers, and that upstream's history has.
    pub merged: &'a [(usize, Sha)],
}

/// Gathers the facts about all changes.
pub async fn observe_states(
    repo: &SealedRepo,
    delta: &Delta,
    assignment: &LineAssignment,
    ends: StateEnds<'_>,
) -> Result<Vec<ChangeFacts>, GitError> {
    let StateEnds { target, since, merged } = ends;
    let comparisons = compare_changes(repo, delta, assignment, target).await?;
    let effects = observe_effects(repo, delta, assignment, (target, merged)).await?;
    let changes = assignment.changes.iter().zip(comparisons).zip(effects);
    let mut facts: Vec<ChangeFacts> = changes
        .map(|((change, comparison), effect)| ChangeFacts {
            lines: change.lines,
            comparison,
            effect,
            ..ChangeFacts::default()
        })
        .collect();
    let places: BTreeSet<usize> =
        assignment.changes.iter().flat_map(|change| &change.commits).copied().collect();
    let plain: BTreeSet<usize> =
        places.into_iter().filter(|&place| !delta.history.is_merge(place)).collect();
    let twins = find_twins(repo, &delta.history, &plain, (target, since)).await?;
    for (number, change) in assignment.changes.iter().enumerate() {
        facts[number].twins =
            change.commits.iter().filter_map(|place| twins.get(place).cloned()).collect();
    }
    for (number, file) in delta.files.iter().enumerate() {
        for (origin, count) in file.origins() {
            let Some(change) = assignment.change_of(number, origin) else { continue };
            if let LineOrigin::Commit(place) = origin
                && twins.contains_key(&place)
            {
                facts[change].twin_lines += count.total();
            }
        }
        if file.hunks().is_empty()
            && let Some(change) = assignment.change_of(number, file.whole)
        {
            facts[change].whole_files += 1;
        }
    }
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::super::compare::Difference;
    use super::super::effect::EffectCount;
    use super::super::taken::Sign;
    use super::*;
    use crate::path::TreePath;

    fn twin(reverted: bool) -> Twin {
        let sha = |fill: &str| Sha::parse(&fill.repeat(40)).expect("an id");
        let reverted_by = reverted.then(|| sha("b"));
        Twin { commit: sha("a"), sign: Sign::SamePatch, reverted_by }
    }

    fn likeness(added_found: usize, removed_found: usize) -> Likeness {
        Likeness { added: 10, added_found, removed: 5, removed_found }
    }

    /// A change of two files, one of which upstream has exactly.
    fn facts(twins: Vec<Twin>, likeness: Likeness) -> ChangeFacts {
        let lines = LineCount { added: 10, removed: 5 };
        let twin_lines = if twins.is_empty() { 0 } else { 15 };
        let differs = Some((TreePath::new("a.c".as_bytes()), Difference::Lines));
        let comparison =
            UpstreamComparison { all: likeness, telling: likeness, files: 2, exact: 1, differs };
        let held = EffectCount { written: 15, in_fork: 15, in_upstream: 0 };
        let effect = ChangeEffect { lines: held, ..ChangeEffect::default() };
        ChangeFacts { lines, twins, twin_lines, comparison, effect, ..ChangeFacts::default() }
    }

    #[track_caller]
    fn check(facts: &ChangeFacts, expected: ChangeState) {
        assert_eq!(judge_change(facts).state, expected, "{facts:?}");
    }

    #[test]
    fn only_a_change_that_upstream_has_whole_and_in_its_place_is_superseded() {
        use ChangeState::{LikelySuperseded, Superseded, Whole};
        let (all, none) = (likeness(10, 0), likeness(0, 5));
        let exact = |mut facts: ChangeFacts| {
            facts.comparison.exact = 2;
            facts
        };
        check(&exact(facts(Vec::new(), all)), Superseded);
        // Upstream may have undone it and done it again.
        check(&exact(facts(vec![twin(true)], all)), Superseded);
        let mut moded = exact(facts(vec![twin(false)], all));
        moded.effect.parts_of_fork = 1;
        check(&moded, LikelySuperseded);
        check(&facts(vec![twin(false)], all), LikelySuperseded);
        check(&facts(vec![twin(false)], likeness(5, 2)), LikelySuperseded);
        check(&facts(vec![twin(false)], none), Whole);
        check(&facts(Vec::new(), all), LikelySuperseded);
        check(&facts(Vec::new(), none), Whole);
        check(&facts(vec![twin(true)], none), Whole);
        let part = ChangeFacts { twin_lines: 7, ..facts(vec![twin(false)], all) };
        check(&part, LikelySuperseded);
        let binary = ChangeFacts { whole_files: 1, ..facts(vec![twin(false)], all) };
        check(&binary, LikelySuperseded);
    }

    #[test]
    fn a_likeness_of_few_lines_says_nothing() {
        let few = Likeness { added: 3, added_found: 3, removed: 0, removed_found: 0 };
        check(&facts(Vec::new(), few), ChangeState::Whole);
        check(&facts(Vec::new(), Likeness::default()), ChangeState::Whole);
    }

    #[test]
    fn what_is_left_of_its_effect_tells_whole_from_changed() {
        let effect = |in_fork: usize, parts_in_fork: usize| ChangeEffect {
            lines: EffectCount { written: 10, in_fork, in_upstream: 0 },
            parts: EffectCount { written: 1, in_fork: parts_in_fork, in_upstream: 0 },
            parts_of_fork: parts_in_fork,
        };
        let with = |effect| ChangeFacts { effect, ..facts(Vec::new(), likeness(0, 5)) };
        check(&with(effect(10, 1)), ChangeState::Whole);
        check(&with(effect(9, 1)), ChangeState::Changed);
        check(&with(effect(10, 0)), ChangeState::Changed);
    }

    #[test]
    fn a_change_is_gone_only_if_nothing_of_its_effect_is_there() {
        let check = |in_fork, in_upstream, expected| {
            let lines = EffectCount { written: 10, in_fork, in_upstream };
            let effect = ChangeEffect { lines, ..ChangeEffect::default() };
            check(&ChangeFacts { effect, ..ChangeFacts::default() }, expected);
        };
        check(0, 0, ChangeState::Gone);
        check(0, 10, ChangeState::Gone);
        check(1, 0, ChangeState::Changed);
        check(10, 0, ChangeState::Whole);
        check(10, 9, ChangeState::Whole);
        check(10, 10, ChangeState::Superseded);
        self::check(&ChangeFacts::default(), ChangeState::Gone);
    }
}
