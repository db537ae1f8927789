//! Points of a result that need a look of a person, worst first.

use std::collections::BTreeMap;

use engine::evidence::{Evidence, SensitiveChange};
use merge::account::{LookKind, judge_account};
use merge::contract::{Contract, ContractStatus};
use merge::test_names::TestAccount;
use serde::Serialize;

use super::conflict_row::{ConflictRow, Decider, conflict_rows};
use super::judge::Verdict;
use super::ran_tests::RanTests;
use super::security::fix::FixRecord;
use super::upstream_action::UpstreamActions;
use crate::flow::record::ForkRunRecord;

/// Something in the result that a person has to look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ReviewPoint {
    /// `None` if it is about the whole result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// A short sentence without the path.
    pub(crate) what: String,
    #[serde(skip)]
    pub(crate) kind: PointKind,
}

/// Kinds of points, gravest first. Only the first is always read one by one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PointKind {
    /// Something is lost, dropped, of the agent's own making or acts by itself; or it has to be decided by a person.
    #[default]
    Grave,
    /// A change in another form in or beside a conflict, or of empty lines.
    InConflict,
    /// A conflict that the agent decided, of which there is nothing else to say.
    Decided,
    /// Line ends, blanks or empty lines.
    Blank,
}

/// The points of a run's result, gravest first; none if there is no result.
pub(crate) fn review_points(record: &ForkRunRecord) -> Vec<ReviewPoint> {
    let mut points = Points::default();
    if record.evidence.is_none() {
        return points.found;
    }
    if let Some(what) = record.fix.as_ref().and_then(FixRecord::look) {
        points.add(None, what);
    }
    if let Some(what) = record.evidence.as_ref().and_then(acting_files) {
        points.add(None, what);
    }
    let judgement = record.account.as_ref().map(judge_account).unwrap_or_default();
    for reason in judgement.upstream_dropped.into_iter().chain(judgement.fork_dropped) {
        points.add(None, reason);
    }
    if let Some(contract) = &record.contract {
        add_contract(&mut points, contract, ContractStatus::Lost);
    }
    for change in record.evidence.iter().flat_map(|evidence| &evidence.sensitive) {
        let what = format!("{} as neither side has it", change.kind.description());
        points.add(Some(change.path.clone()), what);
    }
    for line in record.tests.iter().flat_map(TestAccount::looks) {
        points.add(None, line);
    }
    for line in record.ran_tests.iter().flat_map(RanTests::looks) {
        points.add(None, line);
    }
    if let Some(changed) = &record.check_changed {
        for path in &changed.files {
            points.add(
                Some(path.to_string()),
                "changed by the agent, and it defines the check".to_owned(),
            );
        }
        for path in &changed.allowed {
            let what = "changed by the agent, and it defines the check; a person allowed it";
            points.add(Some(path.to_string()), what.to_owned());
        }
        for path in &changed.named {
            let what =
                "changed by the agent outside of the conflicts, and the check's files name it";
            points.add(Some(path.to_string()), what.to_owned());
        }
    }
    if let Some(what) = record.upstream_actions.as_ref().and_then(UpstreamActions::point) {
        points.add(None, what);
    }
    // Both act as soon as the result is merged.
    for what in &record.message_points {
        points.add(None, what.clone());
    }
    for look in judgement.looks {
        points.add_of(kind_of(look.kind), Some(look.path.to_string()), look.what);
    }
    for row in conflict_rows(record) {
        if let Some((kind, what)) = decision_of(&row) {
            points.add_of(kind, Some(row.path), what);
        }
    }
    // Without an account of both sides, files are known only as being as neither side has them.
    if record.account.is_none() {
        points.add(None, "the changes of both sides were not compared with the result".to_owned());
        add_contract_changes(&mut points, record);
        for path in record.evidence.iter().flat_map(|evidence| &evidence.files_made) {
            points.add_unless_known(path, "as neither side has it");
        }
    }
    for who in record.evidence.iter().flat_map(|evidence| &evidence.foreign_identities) {
        if !is_in_verdict(record, who) {
            points.add(None, format!("commit not by the box's own identity: {who}"));
        }
    }
    points.found.sort_by_key(|point| point.kind);
    points.found
}

fn kind_of(look: LookKind) -> PointKind {
    match look {
        LookKind::Dropped | LookKind::OfNeither | LookKind::Adapted => PointKind::Grave,
        LookKind::InConflict => PointKind::InConflict,
        LookKind::Blank => PointKind::Blank,
    }
}

/// Files of upstream's that a point names.
const ACTING_SHOWN: usize = 5;

/// The sentence about files that upstream changes and that run by themselves once the branch is pushed or checked out.
fn acting_files(evidence: &Evidence) -> Option<String> {
    let taken = &evidence.sensitive_taken;
    let shown: Vec<String> =
        taken.iter().take(ACTING_SHOWN).map(SensitiveChange::message).collect();
    let more = match taken.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = "upstream changes files that run by themselves";
    (!shown.is_empty()).then(|| format!("{what}: {}{more}", shown.join(", ")))
}

/// Returns whether the verdict names it, so that a point would only repeat that.
fn is_in_verdict(record: &ForkRunRecord, text: &str) -> bool {
    match &record.verdict {
        Some(Verdict::Refused { reasons }) => reasons.iter().any(|reason| reason.contains(text)),
        _ => false,
    }
}

/// A decision of the agent's is a look; one of the fork's rules or its past is not.
fn decision_of(row: &ConflictRow) -> Option<(PointKind, String)> {
    let (kind, what) = match &row.decider {
        Decider::Agent => (PointKind::Decided, "conflict decided by the agent"),
        Decider::AgentOver(_) => {
            (PointKind::Grave, "conflict resolved without a model, then decided by the agent")
        }
        Decider::Unknown => (PointKind::Grave, "conflict decided, not known by whom"),
        Decider::Resolver(_) | Decider::Rebase => return None,
    };
    let what = match row.result {
        Some(result) => format!("{what} ({result})"),
        None => what.to_owned(),
    };
    Some((kind, what))
}

fn add_contract(points: &mut Points, contract: &Contract, state: ContractStatus) {
    let word = state.as_str();
    for path in contract.paths.iter().filter(|path| path.state == state) {
        let what = match path.detail.as_str() {
            "" => format!("the fork's change is {word}"),
            detail => format!("the fork's change is {word}: {detail}"),
        };
        points.add(Some(path.path.to_string()), what);
    }
    for commit in contract.commits.iter().filter(|commit| commit.state == state) {
        let what =
            format!("the fork's commit {} is {word}: {}", commit.sha.short(), commit.subject);
        points.add(None, what);
    }
}

fn add_contract_changes(points: &mut Points, record: &ForkRunRecord) {
    let paths = record.contract.iter().flat_map(|contract| &contract.paths);
    for path in paths.filter(|path| path.state == ContractStatus::Changed) {
        let what = format!("the fork's change is changed: {}", path.detail);
        points.add_unless_known(&path.path.to_string(), &what);
    }
}

/// Points in order, one for each path.
#[derive(Default)]
struct Points {
    found: Vec<ReviewPoint>,
    by_path: BTreeMap<String, usize>,
}

impl Points {
    fn add(&mut self, path: Option<String>, what: String) {
        self.add_of(PointKind::Grave, path, what);
    }

    /// Adds a sentence. A path of which several are said is of the gravest kind.
    fn add_of(&mut self, kind: PointKind, path: Option<String>, what: String) {
        let known = path.as_ref().and_then(|path| self.by_path.get(path));
        if let Some(point) = known.and_then(|at| self.found.get_mut(*at)) {
            point.kind = point.kind.min(kind);
            if !point.what.contains(&what) {
                point.what = format!("{}; {what}", point.what);
            }
            return;
        }
        if let Some(path) = &path {
            self.by_path.insert(path.clone(), self.found.len());
        }
        self.found.push(ReviewPoint { path, what, kind });
    }

    fn add_unless_known(&mut self, path: &str, what: &str) {
        if !self.by_path.contains_key(path) {
            self.add(Some(path.to_owned()), what.to_owned());
        }
    }
}
