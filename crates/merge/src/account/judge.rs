//! Decides from the account. Pure.

use std::collections::{BTreeMap, BTreeSet};

use model::sensitive_path::{SensitiveKind, sensitive_path};

use super::{
    ConflictResolution, Departure, DepartureKind, DepartureRank, MergeAccount, MergeSide,
    SideAccount, SideChange, SideStatus,
};
use crate::path::TreePath;

/// Changes of a side that a result may drop without being refused. They are named first.
const FEW_CHANGES: usize = 4;

/// Paths of a side for which one more change may be dropped, up to twice as many.
const PATHS_PER_CHANGE: usize = 50;

/// Lines that each of those changes may have on average.
pub(crate) const LINES_PER_CHANGE: usize = 50;

/// Lines that each of them may have on average for twice as many to be still few.
const LINES_PER_SMALL_CHANGE: usize = 5;

/// Meaning of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeJudgement {
    /// Reasons why upstream counts as dropped; none if it does not.
    pub upstream_dropped: Vec<String>,
    /// The same for the fork. Whole files and commits of the fork are the contract's matter.
    pub fork_dropped: Vec<String>,
    /// Points for a person to look at, worst first.
    pub looks: Vec<Look>,
}

/// Something that a person has to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    pub path: TreePath,
    /// Short sentence without the path.
    pub what: String,
    /// The gravest of what is said.
    pub kind: LookKind,
}

/// Kinds of points, gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LookKind {
    /// A side's change is dropped.
    Dropped,
    /// The result has what neither side has, and no conflict explains it.
    OfNeither,
    /// A side's change is there in part or in another form, although git could merge it.
    Adapted,
    /// In or beside a conflict: a change in another form, or lines that neither side has as they are, made of their words and signs. Or
    /// a change of empty lines alone.
    InConflict,
    /// Line ends, blanks or empty lines differ.
    Blank,
}

/// Most changes that count as few, for a side that changed so many paths.
pub(crate) fn few_changes(paths: usize) -> usize {
    FEW_CHANGES + (paths / PATHS_PER_CHANGE).min(FEW_CHANGES)
}

pub fn judge_account(account: &MergeAccount) -> MergeJudgement {
    MergeJudgement {
        upstream_dropped: upstream_dropped(account),
        fork_dropped: many_clean_drops(&account.fork, MergeSide::Fork).into_iter().collect(),
        looks: looks(account),
    }
}

fn upstream_dropped(account: &MergeAccount) -> Vec<String> {
    if account.whole == Some(MergeSide::Fork) && !is_all_by_rule(account) {
        return vec!["the result is the fork's tree, so nothing of upstream is in it".to_owned()];
    }
    let mut reasons: Vec<String> =
        many_clean_drops(&account.upstream, MergeSide::Upstream).into_iter().collect();
    let gutted: Vec<_> = account.departures.iter().filter(|departure| departure.gutted).collect();
    if !gutted.is_empty() {
        let paths = names(gutted.iter().map(|departure| &departure.path));
        reasons.push(format!("almost nothing is left of what both sides have in {paths}"));
    }
    reasons.extend(most_conflicts_ours(account));
    if reasons.is_empty() {
        reasons.extend(most_files_missing(account));
    }
    reasons
}

/// More than a few changes of a side that are dropped although git could merge them, wherever they stand.
fn many_clean_drops(side: &SideAccount, of: MergeSide) -> Option<String> {
    let few = few_changes(side.paths);
    let is_counted =
        |change: &&SideChange| change.dropped_clean > 0 && !is_ci(change.path.as_bytes());
    let paths = || dropped_of(side).filter(is_counted);
    // A file of the fork that is lost as a whole is one loss. One of which a part is lost is not worse.
    let clean: usize = match of {
        MergeSide::Upstream => paths().map(changes_of).sum(),
        MergeSide::Fork => paths().map(|change| changes_of(change).min(losses_of(change))).sum(),
    };
    let told: usize = paths().map(changes_of).sum();
    let lines: usize = paths().map(lines_of).sum();
    let is_few = clean <= few || (clean <= 2 * few && lines <= few * LINES_PER_SMALL_CHANGE);
    (!is_few || lines > few * LINES_PER_CHANGE).then(|| {
        let whose = of.as_str();
        let paths = names(paths().map(|change| &change.path));
        format!(
            "{told} changes of {whose} are dropped although git could merge them ({lines} lines; {paths})"
        )
    })
}

/// Returns whether a path is of CI. That of upstream is seldom the fork's; it is named like any other.
pub(super) fn is_ci(path: &[u8]) -> bool {
    sensitive_path(path) == Some(SensitiveKind::Ci) || path.starts_with(b".github/")
}

/// A few drops are named because they are few among many. Where upstream changed few files, the same number is most of it.
fn most_files_missing(account: &MergeAccount) -> Option<String> {
    let is_missing =
        |change: &&SideChange| !is_ci(change.path.as_bytes()) && is_mostly_missing(change);
    let missing: Vec<_> = dropped_of(&account.upstream).filter(is_missing).collect();
    let (count, of) = (missing.len(), account.expected_paths);
    (of > 0 && 2 * count > of).then(|| {
        let paths = names(missing.iter().map(|change| &change.path));
        let files = if of == 1 { "file" } else { "files" };
        format!(
            "most of upstream's work is missing: its changes in {count} of {of} {files} ({paths})"
        )
    })
}

/// A generated file that was written anew lacks hunks of both sides.
fn is_mostly_missing(change: &SideChange) -> bool {
    let is_whole = change.dropped >= change.hunks;
    is_whole || (!change.is_generated && 2 * change.dropped > change.hunks)
}

fn changes_of(change: &SideChange) -> usize {
    if change.is_generated { 1 } else { change.dropped_clean }
}

/// Losses of the usual size that the dropped lines of a file are.
fn losses_of(change: &SideChange) -> usize {
    lines_of(change).div_ceil(LINES_PER_CHANGE).max(1)
}

/// Lines of the changes that git could have merged. What is there in another form, or lost a conflict, is not among them.
fn lines_of(change: &SideChange) -> usize {
    let lines = change.lines_dropped_clean.unwrap_or(change.lines);
    if change.is_generated { lines.min(LINES_PER_CHANGE) } else { lines }
}

/// Returns whether rules of the fork explain why no change of upstream's is there that the fork did not have.
fn is_all_by_rule(account: &MergeAccount) -> bool {
    let side = &account.upstream;
    let is_ruled = |change: &SideChange| {
        change.status == SideStatus::DroppedByRule
            && change.reason.as_ref().is_some_and(|reason| !reason.is_habit)
    };
    side.changes.len() + account.present_paths >= side.paths && side.changes.iter().all(is_ruled)
}

/// A side that loses most conflicts was not merged. Rules of the fork explain a file; habits do not explain most files.
fn most_conflicts_ours(account: &MergeAccount) -> Option<String> {
    let by_rule: BTreeSet<&TreePath> = account
        .upstream
        .changes
        .iter()
        .filter(|change| change.reason.as_ref().is_some_and(|reason| !reason.is_habit))
        .map(|change| &change.path)
        .collect();
    let dropped: BTreeSet<&TreePath> = account
        .upstream
        .changes
        .iter()
        .filter(|change| {
            change.status >= SideStatus::DroppedByRule && change.dropped == change.hunks
        })
        .map(|change| &change.path)
        .collect();
    let open: Vec<_> =
        account.conflicts.iter().filter(|conflict| !by_rule.contains(&conflict.path)).collect();
    let ours: Vec<_> = open
        .iter()
        .filter(|conflict| {
            let is_ours = matches!(
                conflict.resolution,
                ConflictResolution::Ours | ConflictResolution::Deleted
            );
            is_ours && dropped.contains(&conflict.path)
        })
        .collect();
    (ours.len() > FEW_CHANGES && 2 * ours.len() > open.len()).then(|| {
        format!(
            "upstream's side of {} of {} files in conflict is dropped ({})",
            ours.len(),
            open.len(),
            names(ours.iter().map(|conflict| &conflict.path))
        )
    })
}

fn dropped_of(side: &SideAccount) -> impl Iterator<Item = &SideChange> {
    side.changes.iter().filter(|change| change.status == SideStatus::Dropped)
}

/// The first paths, and how many more there are.
fn names<'a>(paths: impl Iterator<Item = &'a TreePath>) -> String {
    const SHOWN: usize = 3;
    let paths: Vec<String> = paths.map(ToString::to_string).collect();
    let more = paths.len().saturating_sub(SHOWN);
    let shown = paths.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// Kind and weight, least first, and sentences of each path.
type Found<'a> = BTreeMap<&'a TreePath, ((LookKind, usize), Vec<String>)>;

fn say<'a>(found: &mut Found<'a>, path: &'a TreePath, weight: (LookKind, usize), what: String) {
    let entry = found.entry(path).or_insert((weight, Vec::new()));
    entry.0 = entry.0.min(weight);
    entry.1.push(what);
}

fn weight_of(departure: &Departure) -> (LookKind, usize) {
    match (departure.rank, departure.kind) {
        (DepartureRank::Blank, DepartureKind::Content) => (LookKind::Blank, 0),
        (DepartureRank::InConflict, DepartureKind::Content) => (LookKind::InConflict, 0),
        (DepartureRank::Suspicious, _) => (LookKind::OfNeither, 0),
        (_, DepartureKind::Removed | DepartureKind::Renamed) => (LookKind::OfNeither, 0),
        (_, DepartureKind::Mode) => (LookKind::OfNeither, 1),
        (_, DepartureKind::Content) => (LookKind::OfNeither, 2),
        (_, DepartureKind::Added) => (LookKind::OfNeither, 3),
    }
}

fn adapted_kind(change: &SideChange) -> LookKind {
    let is_expected = change.adapted_in_conflict >= change.adapted;
    if is_expected { LookKind::InConflict } else { LookKind::Adapted }
}

fn departure_words(departure: &Departure, in_conflict: bool) -> String {
    match departure.detail.as_str() {
        "" => "not as git merges it".to_owned(),
        detail if in_conflict => detail.to_owned(),
        detail => format!("not as git merges it: {detail}"),
    }
}

/// One entry for each path, with all that is to be said about it.
fn looks(account: &MergeAccount) -> Vec<Look> {
    let mut found = Found::new();
    for (side, changes) in
        [(MergeSide::Upstream, &account.upstream), (MergeSide::Fork, &account.fork)]
    {
        for change in &changes.changes {
            let (kind, word) = match change.status {
                SideStatus::Dropped => (LookKind::Dropped, "is dropped"),
                SideStatus::Adapted => {
                    (adapted_kind(change), "is there in part or in another form")
                }
                SideStatus::Taken | SideStatus::DroppedByRule => continue,
            };
            say(
                &mut found,
                &change.path,
                (kind, 0),
                format!("{}'s change {word}: {}", side.as_str(), change.detail),
            );
        }
    }
    let in_conflict: BTreeSet<&TreePath> =
        account.conflicts.iter().map(|conflict| &conflict.path).collect();
    for departure in &account.departures {
        let is_said = found.contains_key(&departure.path)
            && (departure.detail.is_empty() || departure.kind == DepartureKind::Removed);
        if !is_said {
            say(
                &mut found,
                &departure.path,
                weight_of(departure),
                departure_words(departure, in_conflict.contains(&departure.path)),
            );
        }
    }
    let mut looks: Vec<_> = found.into_iter().collect();
    looks.sort_by_key(|(_, (weight, _))| *weight);
    let look = |(path, ((kind, _), what)): (&TreePath, ((LookKind, usize), Vec<String>))| Look {
        path: path.clone(),
        what: what.join("; "),
        kind,
    };
    looks.into_iter().map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(path: &str, hunks: usize, lines: usize) -> SideChange {
        SideChange {
            path: TreePath::new(path),
            status: SideStatus::Dropped,
            hunks,
            adapted: 0,
            adapted_in_conflict: 0,
            dropped: hunks,
            dropped_clean: hunks,
            lines,
            lines_dropped_clean: Some(lines),
            reason: None,
            is_generated: path.ends_with(".lock") || path == "go.sum",
            detail: String::new(),
        }
    }

    fn is_refused(changes: Vec<SideChange>) -> bool {
        is_refused_of(20, changes)
    }

    fn is_refused_of(paths: usize, changes: Vec<SideChange>) -> bool {
        let upstream = SideAccount { paths, changes };
        let account = MergeAccount { upstream, ..MergeAccount::default() };
        let judged = judge_account(&account);
        assert_eq!(judged.looks.len(), account.upstream.changes.len(), "each is named");
        !judged.upstream_dropped.is_empty()
    }

    #[test]
    fn small_changes_are_few_by_the_size_of_the_merge() {
        let small = |count: usize, lines: usize| -> Vec<SideChange> {
            (0..count).map(|at| dropped(&format!("i18n/{at}.ts"), 1, lines)).collect()
        };
        assert!(!is_refused_of(600, small(12, 3)) && is_refused_of(600, small(12, 4)));
        assert!(is_refused_of(600, small(17, 1)), "more than twice as many as are few");
        assert!(!is_refused_of(20, small(8, 2)) && is_refused_of(20, small(8, 3)));
    }

    #[test]
    fn lines_in_another_form_or_in_a_conflict_are_not_dropped() {
        let with = |lines_dropped_clean| {
            vec![SideChange { lines_dropped_clean, ..dropped("a.ts", 2, 900) }]
        };
        assert!(!is_refused(with(Some(3))) && is_refused(with(Some(300))));
        assert!(is_refused(with(None)), "a record of an earlier version has only the sum");
    }

    #[test]
    fn a_file_of_the_fork_of_which_a_part_is_lost_is_no_worse_than_a_lost_one() {
        let is_refused_of_fork = |changes: Vec<SideChange>| {
            let fork = SideAccount { paths: 400, changes };
            let account = MergeAccount { fork, ..MergeAccount::default() };
            !judge_account(&account).fork_dropped.is_empty()
        };
        assert!(!is_refused_of_fork(vec![dropped("faucet.go", 55, 270)]));
        assert!(is_refused_of_fork(vec![dropped("faucet.go", 55, 401)]), "more than few losses");
        let many = |count: usize| (0..count).map(|at| dropped(&format!("{at}.go"), 3, 9)).collect();
        assert!(!is_refused_of_fork(many(8)) && is_refused_of_fork(many(9)));
        assert!(is_refused_of(400, vec![dropped("faucet.go", 55, 270)]), "upstream's by hunks");
    }

    #[test]
    fn a_lock_file_that_was_written_anew_is_one_change() {
        assert!(!is_refused(vec![dropped("web/bun.lock", 90, 4000)]));
        assert!(is_refused(vec![dropped("web/bun.json", 90, 4000)]));
        let locks = |count: usize| {
            let names = ["Cargo.lock", "go.sum", "yarn.lock", "uv.lock", "poetry.lock"];
            names[..count].iter().map(|name| dropped(name, 9, 900)).collect()
        };
        assert!(!is_refused(locks(4)) && is_refused(locks(5)));
    }
}
