//! State of each change of the fork: whole, changed, gone, or taken by upstream. The decision is pure.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{GitError, SealedRepo};
use model::id::Sha;
use serde::Serialize;

use super::change::{Ground, LineAssignment};
use super::compose::compose;
use super::taken::{Twin, find_twins};
use super::{Delta, DeltaFile, LineCount, LineOrigin};
use crate::contract::{LineId, patches_of};
use crate::entry::read_small;
use crate::likeness::Likeness;

/// Share of a change's new lines from which upstream counts as having them, and up to which its removed ones count as gone.
const HAS_ADDED: f64 = 0.9;
const GONE: f64 = 0.2;

/// Telling lines of a change below which a likeness says nothing.
const LEAST_LINES: usize = 4;

/// Share of the lines that a change's commits wrote from which it counts as whole.
const WHOLE: f64 = 0.9;

/// Largest file whose lines are compared, in bytes.
const FILE_BYTES: usize = 4 << 20;

/// Files that are compared at once.
const AT_ONCE: usize = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeState {
    /// Upstream has it, by what both histories record and by its lines.
    Superseded,
    /// Upstream seems to have it, by its lines alone or by a commit that it changed later.
    LikelySuperseded,
    /// Nothing of it is left in the fork's tree, and upstream has no commit of it.
    Gone,
    /// Part of what its commits wrote is left.
    Changed,
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
    pub likeness: Likeness,
    /// Telling lines that its commits wrote, and those of them that the fork's files have; `None` where they were not counted.
    pub written: Option<(usize, usize)>,
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
    let reverted = facts.twins.iter().find_map(|twin| twin.reverted_by.as_ref());
    let twin = facts.twins.first();
    let twin_words = || twin.map(|it| format!("{} in {}", it.sign.as_str(), it.commit.short()));
    let lines = facts.lines.total();
    if lines == 0 && facts.whole_files == 0 {
        return match (twin_words(), reverted) {
            (Some(words), None) => judged(ChangeState::Superseded, format!("merged: {words}")),
            _ => judged(ChangeState::Gone, "no line of it is in the fork's tree".to_owned()),
        };
    }
    let words = likeness_words(facts.likeness);
    let has_lines = has_lines(facts.likeness);
    // A file without lines has nothing to be compared by.
    let is_taken = lines > 0 && facts.whole_files == 0 && facts.twin_lines == lines;
    if let Some(by) = reverted {
        let why = format!("upstream took it and undid it in {}; {words}", by.short());
        return judged(held(facts), why);
    }
    match twin_words() {
        Some(twin) if is_taken && has_lines => {
            judged(ChangeState::Superseded, format!("{twin}; {words}"))
        }
        Some(twin) if is_taken || has_lines => {
            judged(ChangeState::LikelySuperseded, format!("{twin}; {words}"))
        }
        None if has_lines && facts.likeness.added >= LEAST_LINES && facts.whole_files == 0 => {
            judged(ChangeState::LikelySuperseded, format!("by its lines alone: {words}"))
        }
        Some(_) | None => judged(held(facts), held_words(facts)),
    }
}

/// Whole or changed, by the lines that the commits wrote.
fn held(facts: &ChangeFacts) -> ChangeState {
    match facts.written {
        Some((written, held)) if !is_share(held, written, WHOLE) => ChangeState::Changed,
        Some(_) | None => ChangeState::Whole,
    }
}

fn held_words(facts: &ChangeFacts) -> String {
    match facts.written {
        Some((0, _)) | None => "its lines are in the fork's tree".to_owned(),
        Some((written, held)) => {
            format!("{held} of {written} lines that its commits wrote are in the fork's tree")
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of lines are small")]
fn is_share(part: usize, whole: usize, least: f64) -> bool {
    part as f64 >= whole as f64 * least
}

/// Returns whether upstream's files have what the change adds and lack what it removes. A change without telling lines says
/// nothing.
fn has_lines(likeness: Likeness) -> bool {
    let (added, removed) = (likeness.added_share(), likeness.removed_share());
    let has_any = added.is_some() || removed.is_some();
    has_any
        && added.is_none_or(|share| share >= HAS_ADDED)
        && removed.is_none_or(|share| share <= GONE)
}

fn likeness_words(likeness: Likeness) -> String {
    let Likeness { added, added_found, removed, removed_found } = likeness;
    match (added, removed) {
        (0, 0) => "no line of it can be compared".to_owned(),
        (_, 0) => format!("upstream's files have {added_found} of its {added} lines"),
        (0, _) => format!(
            "upstream's files still have {removed_found} of {removed} lines that it removes"
        ),
        (_, _) => format!(
            "upstream's files have {added_found} of its {added} lines, and still {removed_found} of {removed} that it removes"
        ),
    }
}

/// Gathers the facts about all changes. `since` is where the fork began.
pub async fn observe_states(
    repo: &SealedRepo,
    delta: &Delta,
    assignment: &LineAssignment,
    (target, since): (&Sha, &Sha),
) -> Result<Vec<ChangeFacts>, GitError> {
    let mut facts: Vec<ChangeFacts> = assignment
        .changes
        .iter()
        .map(|change| ChangeFacts { lines: change.lines, ..ChangeFacts::default() })
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
    let numbers: Vec<usize> = (0..delta.files.len()).collect();
    for chunk in numbers.chunks(AT_ONCE) {
        compare_files(repo, delta, assignment, chunk, target, &mut facts).await?;
    }
    count_written(repo, delta, assignment, &mut facts).await?;
    Ok(facts)
}

/// Compares the lines of each change with upstream's files, as if it were the only change of the fork.
async fn compare_files(
    repo: &SealedRepo,
    delta: &Delta,
    assignment: &LineAssignment,
    numbers: &[usize],
    target: &Sha,
    facts: &mut [ChangeFacts],
) -> Result<(), GitError> {
    let files: Vec<(usize, &DeltaFile)> = numbers
        .iter()
        .map(|&number| (number, &delta.files[number]))
        .filter(|(_, file)| !file.hunks().is_empty())
        .collect();
    let asked: Vec<&[u8]> = files
        .iter()
        .flat_map(|(_, file)| [Some(&file.path), file.was.as_ref()])
        .flatten()
        .map(crate::path::TreePath::as_bytes)
        .collect();
    let there = repo.entries_at(target, &asked).await?;
    let of = |file: &DeltaFile| {
        let names = [Some(&file.path), file.was.as_ref()].into_iter().flatten();
        names.filter_map(|path| there.get(path.as_bytes())).map(|entry| entry.id.clone()).next()
    };
    let theirs: BTreeMap<usize, Sha> =
        files.iter().filter_map(|(number, file)| Some((*number, of(file)?))).collect();
    let ends = files.iter().flat_map(|(_, file)| [&file.old, &file.new]).flatten();
    let ids: BTreeSet<&Sha> = ends.map(|entry| &entry.id).chain(theirs.values()).collect();
    let texts = read_small(repo, ids, FILE_BYTES).await?;
    let empty = Vec::new();
    for (number, file) in files {
        let text = |entry: &Option<host::git::TreeEntry>| match entry {
            Some(entry) => texts.get(&entry.id),
            None => Some(&empty),
        };
        let (Some(before), Some(after)) = (text(&file.old), text(&file.new)) else { continue };
        let other = theirs.get(&number).map_or(Some(&empty), |id| texts.get(id));
        let Some(other) = other else { continue };
        let changes: BTreeSet<usize> =
            file.origins().into_keys().filter_map(|it| assignment.change_of(number, it)).collect();
        for change in changes {
            let is_its = |origin| assignment.change_of(number, origin) == Some(change);
            let with = compose(file.hunks(), before, after, is_its);
            facts[change].likeness += Likeness::measure(before, &with, other);
        }
    }
    Ok(())
}

/// Counts what the commits of a change wrote and what the fork's files have of it. Changes that are named by paths have only
/// some of the lines of their commits, so for them it says nothing.
async fn count_written(
    repo: &SealedRepo,
    delta: &Delta,
    assignment: &LineAssignment,
    facts: &mut [ChangeFacts],
) -> Result<(), GitError> {
    let is_counted = |number: usize| {
        matches!(assignment.changes[number].ground, Ground::Commit | Ground::Trailer)
    };
    let ids: BTreeSet<&Sha> =
        delta.files.iter().filter_map(|file| file.new.as_ref()).map(|entry| &entry.id).collect();
    let mut held: BTreeSet<LineId> = BTreeSet::new();
    for text in read_small(repo, ids, FILE_BYTES).await?.values() {
        held.extend(text.split(|&byte| byte == b'\n').filter_map(LineId::of));
    }
    let mut owners: BTreeMap<Sha, usize> = BTreeMap::new();
    for (number, change) in assignment.changes.iter().enumerate().filter(|(it, _)| is_counted(*it))
    {
        for &place in change.commits.iter().filter(|&&place| !delta.history.is_merge(place)) {
            owners.insert(delta.history.commits[place].sha.clone(), number);
        }
    }
    let commits: Vec<Sha> = owners.keys().cloned().collect();
    for chunk in commits.chunks(AT_ONCE) {
        // What git cannot read is not counted.
        let Ok(patches) = patches_of(repo, chunk, 48 << 20).await else { continue };
        for (sha, patch) in patches {
            let Some(&number) = owners.get(&sha) else { continue };
            let lines: Vec<LineId> = patch.added.iter().filter_map(|it| LineId::of(it)).collect();
            let (written, kept) = facts[number].written.unwrap_or_default();
            let found = lines.iter().filter(|line| held.contains(line)).count();
            facts[number].written = Some((written + lines.len(), kept + found));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::taken::Sign;
    use super::*;

    fn twin(reverted: bool) -> Twin {
        let sha = |fill: &str| Sha::parse(&fill.repeat(40)).expect("an id");
        let reverted_by = reverted.then(|| sha("b"));
        Twin { commit: sha("a"), sign: Sign::SamePatch, reverted_by }
    }

    fn likeness(added_found: usize, removed_found: usize) -> Likeness {
        Likeness { added: 10, added_found, removed: 5, removed_found }
    }

    fn facts(twins: Vec<Twin>, likeness: Likeness) -> ChangeFacts {
        let lines = LineCount { added: 10, removed: 5 };
        let twin_lines = if twins.is_empty() { 0 } else { 15 };
        ChangeFacts { lines, twins, twin_lines, likeness, ..ChangeFacts::default() }
    }

    #[track_caller]
    fn check(facts: &ChangeFacts, expected: ChangeState) {
        assert_eq!(judge_change(facts).state, expected, "{facts:?}");
    }

    #[test]
    fn only_a_recorded_twin_whose_lines_are_there_supersedes() {
        use ChangeState::{LikelySuperseded, Superseded, Whole};
        let (all, none) = (likeness(10, 0), likeness(0, 5));
        check(&facts(vec![twin(false)], all), Superseded);
        check(&facts(vec![twin(false)], none), LikelySuperseded);
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
    fn what_is_left_of_its_lines_tells_whole_from_changed_and_gone() {
        let none = likeness(0, 5);
        let part = ChangeFacts { written: Some((10, 5)), ..facts(Vec::new(), none) };
        check(&part, ChangeState::Changed);
        let whole = ChangeFacts { written: Some((10, 9)), ..facts(Vec::new(), none) };
        check(&whole, ChangeState::Whole);
        check(&ChangeFacts::default(), ChangeState::Gone);
        let merged = ChangeFacts { twins: vec![twin(false)], ..ChangeFacts::default() };
        check(&merged, ChangeState::Superseded);
        let undone = ChangeFacts { twins: vec![twin(true)], ..ChangeFacts::default() };
        check(&undone, ChangeState::Gone);
    }
}
