//! Proposals of a check of the inventory: the changes that upstream has taken, how to drop them, and what would remain. Pure.

use merge::delta::LineCount;
use merge::delta::change::{Ground, UpstreamState};
use merge::delta::state::ChangeState;
use model::exit::ForkliftExit;
use serde::Serialize;

use super::report::{ChangeRow, DeltaReport};

/// A change that can be dropped, because upstream has it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ProposedDrop {
    pub(crate) name: String,
    pub(crate) lines: LineCount,
    /// Reverts that drop it, the newest first. A commit may have lines in other changes as well; then it is not here.
    pub(crate) reverts: Vec<String>,
}

/// The proposal of a check.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DropProposal {
    pub(crate) drops: Vec<ProposedDrop>,
    /// Lines of the fork without them.
    pub(crate) remaining: LineCount,
}

pub(crate) fn propose_drops(report: &DeltaReport) -> DropProposal {
    let is_superseded = |change: &&ChangeRow| {
        change.state() == Some(ChangeState::Superseded) && change.lines.total() > 0
    };
    let mut remaining = report.lines;
    let mut drops = Vec::new();
    for change in report.changes.iter().filter(is_superseded) {
        remaining.added -= change.lines.added;
        remaining.removed -= change.lines.removed;
        let is_elsewhere = |sha: &model::id::Sha| {
            let others = report.changes.iter().filter(|other| other.name != change.name);
            others.flat_map(|other| &other.commits).any(|commit| commit.sha == *sha)
        };
        let plain = change.commits.iter().filter(|commit| !commit.merge);
        let reverts = plain
            .filter(|commit| !is_elsewhere(&commit.sha))
            .map(|commit| commit.sha.short().to_owned())
            .collect();
        drops.push(ProposedDrop { name: change.name.clone(), lines: change.lines, reverts });
    }
    DropProposal { drops, remaining }
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
    use std::collections::BTreeMap;

    use merge::delta::state::JudgedChange;
    use model::id::Sha;

    use super::super::report::{CommitRow, NoCommitLines};
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
            files: Vec::new(),
            commits: vec![CommitRow { sha: sha(commit), subject: name.to_owned(), merge: false }],
            conflicts: 0,
            oldest_days: None,
            newest_days: None,
            judged: Some(JudgedChange { state, why: "because".to_owned() }),
            twins: Vec::new(),
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
        let proposal = propose_drops(&report);
        let names: Vec<&str> = proposal.drops.iter().map(|drop| drop.name.as_str()).collect();
        assert_eq!(names, ["one"]);
        assert_eq!(proposal.drops[0].reverts, [sha('1').short()]);
        assert_eq!(proposal.remaining, LineCount { added: 6, removed: 0 });
        assert_eq!(check_status(&report), ForkliftExit::Superseded);
    }

    #[test]
    fn a_commit_with_lines_in_another_change_is_not_reverted() {
        let report = report(vec![
            change("one", Ground::Commit, ChangeState::Superseded, '1'),
            change("two", Ground::Declared, ChangeState::Whole, '1'),
        ]);
        assert!(propose_drops(&report).drops[0].reverts.is_empty());
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
