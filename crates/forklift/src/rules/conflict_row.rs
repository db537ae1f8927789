//! Conflicts of a merge, one row each: who decided, what the result has, and how sure the resolver was.

use std::collections::BTreeSet;

use merge::account::ConflictAccount;
use merge::clean::ConflictKind;
use merge::resolver::answer_class::ResolveStrategy;
use merge::resolver::receipt::{FileAction, Receipt, ReceiptStep};
use model::inert::inert_cell;

use super::strategy::Strategy;
use crate::flow::record::ForkRunRecord;

/// Earlier merges that are named beside an answer.
const MERGES_NAMED: usize = 3;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConflictRow {
    pub(crate) path: String,
    pub(crate) kind: String,
    pub(crate) decider: Decider,
    /// Side that the result has: ours, theirs, both, new or deleted; unknown in records of earlier versions.
    pub(crate) result: Option<&'static str>,
    /// The resolver's confidence, where it decided.
    pub(crate) confidence: Option<f64>,
    /// The versions of both sides and the result; empty if there are no lines.
    pub(crate) hunk: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decider {
    /// The resolver, by these strategies, as Markdown.
    Resolver(String),
    Agent,
    /// The agent, although the resolver had decided.
    AgentOver(String),
    /// Git, which rebased commit by commit where a merge conflicts.
    Rebase,
    /// Neither the resolver nor an agent left a trace of it.
    Unknown,
}

impl Decider {
    /// The decider as Markdown for a table.
    pub(crate) fn render(&self) -> String {
        match self {
            Self::Resolver(strategies) => strategies.clone(),
            Self::Agent => "agent".to_owned(),
            Self::AgentOver(strategies) => format!("agent, over {strategies}"),
            Self::Rebase => "git, by the rebase".to_owned(),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}

/// The conflicts that git's own merge has, whoever tried it, and those that the run met on its way.
pub(crate) fn conflict_rows(record: &ForkRunRecord) -> Vec<ConflictRow> {
    let mut rows: Vec<ConflictRow> = match &record.account {
        Some(account) => account.conflicts.iter().map(|it| row_of_account(record, it)).collect(),
        None => Vec::new(),
    };
    let mut known: BTreeSet<String> = rows.iter().map(|row| row.path.clone()).collect();
    // Records of earlier versions have no account, and a rebase meets conflicts that a merge has not.
    for line in &record.conflicts {
        let (path, kind) = split_conflict(line);
        if known.insert(path.to_owned()) {
            rows.push(row(record, path.to_owned(), kind.to_owned()));
        }
    }
    rows
}

fn row_of_account(record: &ForkRunRecord, conflict: &ConflictAccount) -> ConflictRow {
    let row = row(record, conflict.path.to_string(), conflict.kind.as_str().to_owned());
    let result = Some(conflict.resolution.as_str());
    ConflictRow { result, hunk: conflict.hunk.clone(), ..row }
}

/// A row without its hunk; the result is known only where the resolver decided.
fn row(record: &ForkRunRecord, path: String, kind: String) -> ConflictRow {
    let receipt = receipt_of(record, &path);
    let decider = decider_of(record, receipt, &path);
    let receipt = receipt.filter(|_| matches!(decider, Decider::Resolver(_)));
    let result = receipt.map(|receipt| result_of(receipt.action));
    let confidence = receipt.map(|receipt| receipt.confidence);
    ConflictRow { path, kind, decider, result, confidence, hunk: String::new() }
}

/// `path (kind)`, as the record has it.
fn split_conflict(line: &str) -> (&str, &str) {
    let parts = line.strip_suffix(')').and_then(|line| line.rsplit_once(" ("));
    parts.unwrap_or((line, ConflictKind::Other.as_str()))
}

fn receipt_of<'a>(record: &'a ForkRunRecord, path: &str) -> Option<&'a Receipt> {
    let resolver = record.resolver.as_ref()?;
    let is_open = resolver.rest.iter().any(|open| open.to_string() == path);
    let mut receipts = resolver.receipts.iter();
    receipts.find(|receipt| receipt.path.to_string() == path).filter(|_| !is_open)
}

fn decider_of(record: &ForkRunRecord, receipt: Option<&Receipt>, path: &str) -> Decider {
    let changed = record.resolver.iter().flat_map(|resolver| &resolver.changed_after);
    let is_changed = changed.into_iter().any(|changed| changed.to_string() == path);
    let agent_ran = record.agent_box.is_some() && !record.merged_alone;
    match receipt.map(render_strategies) {
        Some(strategies) if is_changed => Decider::AgentOver(strategies),
        Some(strategies) => Decider::Resolver(strategies),
        None if agent_ran => Decider::Agent,
        None if record.settings.strategy == Strategy::Rebase => Decider::Rebase,
        None => Decider::Unknown,
    }
}

fn result_of(action: FileAction) -> &'static str {
    match action {
        FileAction::TookOurs => "ours",
        FileAction::TookTheirs => "theirs",
        FileAction::Deleted => "deleted",
        FileAction::Merged => "both",
        FileAction::Regenerated => "new",
    }
}

/// The strategies of a receipt, each once, with the merges they were learned from and the programs they used.
fn render_strategies(receipt: &Receipt) -> String {
    let steps = || receipt.steps.iter();
    let names: BTreeSet<&str> = steps().map(strategy_name).collect();
    let merges: BTreeSet<String> = steps()
        .filter_map(|step| step.learned_from.as_ref())
        .map(|merge| format!("`{}`", merge.short()))
        .collect();
    let programs: BTreeSet<String> =
        steps().filter_map(|step| step.program.as_deref()).map(program_cell).collect();
    let mut text = names.into_iter().collect::<Vec<_>>().join(", ");
    for part in merges.into_iter().take(MERGES_NAMED).chain(programs) {
        text = format!("{text} {part}");
    }
    text
}

fn program_cell(program: &str) -> String {
    const SHOWN_CHARS: usize = 100;
    let line = program.split_whitespace().collect::<Vec<_>>().join(" ");
    inert_cell(&line.chars().take(SHOWN_CHARS).collect::<String>())
}

fn strategy_name(step: &ReceiptStep) -> &'static str {
    match step.strategy {
        ResolveStrategy::Policy if step.answer_class.contains(" ruled ") => "rule",
        ResolveStrategy::Policy | ResolveStrategy::Memory => "earlier merge",
        ResolveStrategy::Same => "same text",
        ResolveStrategy::Token => "token merge",
        ResolveStrategy::Structure => "structure",
        ResolveStrategy::Regenerate => "rule, regenerated by",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_contain_parentheses() {
        assert_eq!(split_conflict("a (b).txt (content)"), ("a (b).txt", "content"));
        assert_eq!(split_conflict("a"), ("a", "other"));
    }

    #[test]
    fn a_rule_of_the_owner_and_a_habit_are_told_apart() {
        let step = |strategy, answer_class: &str| ReceiptStep {
            strategy,
            version: 1,
            answer_class: answer_class.to_owned(),
            confidence: 1.0,
            learned_from: None,
            program: None,
        };
        let ruled = step(ResolveStrategy::Policy, "policy/1 ruled by the owner");
        assert_eq!(strategy_name(&ruled), "rule");
        let habit = step(ResolveStrategy::Policy, "policy/1 path <50");
        assert_eq!(strategy_name(&habit), "earlier merge");
    }
}
