//! Proposals of a check of the inventory: the changes that upstream has taken, how to drop them, and what would remain. Pure.

use std::collections::BTreeMap;

use merge::delta::LineCount;
use merge::delta::change::{Ground, UpstreamState};
use merge::delta::state::ChangeState;
use model::exit::ForkliftExit;
use model::id::Sha;
use serde::Serialize;

use super::report::{ChangeRow, DeltaReport};

/// A change that can be dropped, because upstream has it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ProposedDrop {
    pub(crate) name: String,
    pub(crate) lines: LineCount,
    /// Commits whose reverts, in this order, take away the change and nothing else, as tried in memory. Without them its lines
    /// become upstream's with the next merge.
    pub(crate) reverts: Vec<String>,
}

/// The proposal of a check.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DropProposal {
    pub(crate) drops: Vec<ProposedDrop>,
    /// Lines of the fork after the reverts, and after the next merge as well.
    pub(crate) after_reverts: LineCount,
    pub(crate) remaining: LineCount,
    /// Changes that upstream only seems to have: to be looked at, never to be dropped for that.
    pub(crate) look_at: Vec<String>,
}

/// Returns whether upstream has a change of which something is the fork's own.
pub(crate) fn is_droppable(change: &ChangeRow) -> bool {
    change.state() == Some(ChangeState::Superseded) && !change.files.is_empty()
}

/// Makes the proposal; `reverts` has the commits by the numbers of the changes.
pub(crate) fn propose_drops(
    report: &DeltaReport,
    reverts: &BTreeMap<usize, Vec<Sha>>,
) -> DropProposal {
    let mut after_reverts = report.lines;
    let mut remaining = report.lines;
    let mut drops = Vec::new();
    let less = |lines: &mut LineCount, part: LineCount| {
        lines.added -= part.added;
        lines.removed -= part.removed;
    };
    for (number, change) in report.changes.iter().enumerate().filter(|(_, it)| is_droppable(it)) {
        less(&mut remaining, change.lines);
        let commits = reverts.get(&number);
        if commits.is_some() {
            less(&mut after_reverts, change.lines);
        }
        let reverts = commits.into_iter().flatten().map(|sha| sha.short().to_owned()).collect();
        drops.push(ProposedDrop { name: change.name.clone(), lines: change.lines, reverts });
    }
    let is_likely = |change: &&ChangeRow| change.state() == Some(ChangeState::LikelySuperseded);
    let look_at = report.changes.iter().filter(is_likely).map(|it| it.name.clone()).collect();
    DropProposal { drops, after_reverts, remaining, look_at }
}

/// The status: a declared change that is gone outranks one that upstream has taken. One that the fork declares as merged may be
/// gone.
pub(crate) fn check_status(report: &DeltaReport) -> ForkliftExit {
    let has = |state| report.changes.iter().any(|change| change.state() == Some(state));
    if report.changes.iter().any(is_lost) {
        ForkliftExit::NotIntegrated
    } else if has(ChangeState::Superseded) {
        ForkliftExit::Superseded
    } else {
        ForkliftExit::Success
    }
}

/// Returns whether a change that the fork declares is gone from its tree.
pub(crate) fn is_lost(change: &ChangeRow) -> bool {
    change.state() == Some(ChangeState::Gone)
        && change.ground == Ground::Declared
        && !matches!(change.upstream, Some(UpstreamState::Merged(_)))
}

impl ChangeRow {
    pub(crate) fn state(&self) -> Option<ChangeState> {
        self.judged.as_ref().map(|judged| judged.state)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use merge::delta::state::JudgedChange;
    use merge::path::TreePath;

    use super::super::report::{CommitRow, DeltaFileRow, NoCommitLines};
    use super::*;

    fn sha(fill: char) -> Sha {
        Sha::parse(&fill.to_string().repeat(40)).expect("an id")
    }

    pub(crate) fn change(
        name: &str,
        ground: Ground,
        state: ChangeState,
        commit: char,
    ) -> ChangeRow {
        let added = if state == ChangeState::Gone { 0 } else { 3 };
        ChangeRow {
            name: name.to_owned(),
            ground,
            intent: None,
            upstream: None,
            retire_when: None,
            lines: LineCount { added, removed: 0 },
            files: vec![DeltaFileRow {
                path: TreePath::new("a.c".as_bytes()),
                lines: LineCount { added, removed: 0 },
            }],
            commits: vec![CommitRow { sha: sha(commit), subject: name.to_owned(), merge: false }],
            conflicts: 0,
            oldest_days: None,
            newest_days: None,
            judged: Some(JudgedChange { state, why: "because".to_owned() }),
            twins: Vec::new(),
            effect: None,
        }
    }

    pub(crate) fn report(changes: Vec<ChangeRow>) -> DeltaReport {
        let added = changes.iter().map(|change| change.lines.added).sum();
        DeltaReport {
            tip: sha('a'),
            parted: sha('b'),
            commits: changes.len(),
            merges: 0,
            without_lines: 0,
            files: 0,
            unread: 0,
            lines: LineCount { added, removed: 0 },
            by_ground: BTreeMap::new(),
            without_commit: NoCommitLines::default(),
            past_merges: 0,
            conflict_paths: Vec::new(),
            changes,
        }
    }

    #[test]
    fn only_what_upstream_surely_has_is_proposed_for_dropping() {
        use ChangeState::{LikelySuperseded, Superseded, Whole};
        let report = report(vec![
            change("one", Ground::Commit, Superseded, '1'),
            change("two", Ground::Commit, LikelySuperseded, '2'),
            change("three", Ground::Declared, Whole, '3'),
        ]);
        let reverts = BTreeMap::from([(0, vec![sha('1')])]);
        let proposal = propose_drops(&report, &reverts);
        let names: Vec<&str> = proposal.drops.iter().map(|drop| drop.name.as_str()).collect();
        assert_eq!(names, ["one"]);
        assert_eq!(proposal.drops[0].reverts, [sha('1').short()]);
        assert_eq!(proposal.look_at, ["two"]);
        assert_eq!(proposal.remaining, LineCount { added: 6, removed: 0 });
        assert_eq!(check_status(&report), ForkliftExit::Superseded);
    }

    #[test]
    fn what_no_revert_takes_away_remains_until_the_next_merge() {
        let report = report(vec![change("one", Ground::Commit, ChangeState::Superseded, '1')]);
        let proposal = propose_drops(&report, &BTreeMap::new());
        assert!(proposal.drops[0].reverts.is_empty());
        assert_eq!(proposal.after_reverts, LineCount { added: 3, removed: 0 });
        assert_eq!(proposal.remaining, LineCount::default());
    }

    #[test]
    fn a_declared_change_that_is_gone_outranks_the_rest() {
        let superseded = || change("one", Ground::Commit, ChangeState::Superseded, '1');
        let mut gone = change("two", Ground::Declared, ChangeState::Gone, '2');
        let lost = report(vec![superseded(), gone]);
        assert_eq!(check_status(&lost), ForkliftExit::NotIntegrated);
        gone = change("two", Ground::Declared, ChangeState::Gone, '2');
        gone.upstream = Some(UpstreamState::Merged("2.0".to_owned()));
        assert_eq!(check_status(&report(vec![gone])), ForkliftExit::Success);
        let whole = change("three", Ground::Commit, ChangeState::Whole, '3');
        assert_eq!(check_status(&report(vec![whole])), ForkliftExit::Success);
    }
}
