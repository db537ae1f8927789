//! Spending of one day, and the budgets that it is held against.

use jiff::civil::Date;
use orchestrator_db::{Amount, BudgetScope, BudgetUnit, IssueKey, IssueSpending};
use serde::Serialize;
use utoipa::ToSchema;

use super::super::Web;
use super::super::problem::Problem;
use crate::flow::spending::unlimited_runs;
use crate::rules::agent_manifest::SpendTable;
use crate::rules::budget::{BudgetSettings, name_scope, organisation_of};

/// Spending of one day, in UTC. A run counts on the day on which it was reserved, however long it takes.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct SpendingReport {
    /// The day.
    #[schema(value_type = String, format = Date)]
    pub(crate) day: Date,
    /// Budgets of that day, and how much of each is used.
    pub(crate) budgets: Vec<BudgetUse>,
    /// Issues with runs on that day.
    pub(crate) issues: Vec<IssueUse>,
}

/// A budget of one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct BudgetUse {
    /// Runs that it covers.
    pub(crate) of: String,
    /// Unit of its numbers.
    pub(crate) unit: SpendingUnit,
    /// Its limit.
    pub(crate) limit: u64,
    /// Spent and counted.
    pub(crate) spent: u64,
    /// Reserved by runs that have not ended, or that nobody counted.
    pub(crate) reserved: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SpendingUnit {
    Tokens,
    /// Millionths of a dollar.
    MicroUsd,
}

impl SpendingUnit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::MicroUsd => "micro_usd",
        }
    }
}

/// Spending of an issue on one day.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct IssueUse {
    /// The repository's owner.
    pub(crate) owner: String,
    /// The repository.
    pub(crate) repo: String,
    /// The number of the issue.
    pub(crate) number: u64,
    /// Runs on that day.
    pub(crate) runs: u64,
    /// Tokens that were counted.
    pub(crate) tokens: u64,
    /// Millionths of dollars that were counted.
    pub(crate) micro_usd: u64,
    /// Tokens that are reserved by runs that have not ended, or that nobody counted.
    pub(crate) reserved_tokens: u64,
    /// Millionths of dollars that are reserved likewise.
    pub(crate) reserved_micro_usd: u64,
    /// Runs that have ended and that nobody counted.
    pub(crate) uncounted: u64,
}

pub(crate) fn load_spending(web: &Web, day: Date) -> Result<SpendingReport, Problem> {
    let settings = web.service.settings();
    let mut rows = web.service.store.spending_on(day)?;
    add_unlimited(web, day, settings.budget.most(&SpendTable::default()), &mut rows)?;
    let budgets = used_budgets(&settings.budget, &settings.repos(), &rows);
    let issues = rows.into_iter().map(|row| {
        let IssueSpending { key, runs, tokens, micro_usd, .. } = row;
        let IssueKey { owner, repo, issue_number: number } = key;
        IssueUse {
            owner,
            repo,
            number,
            runs,
            tokens,
            micro_usd,
            reserved_tokens: row.reserved_tokens,
            reserved_micro_usd: row.reserved_micro_usd,
            uncounted: row.uncounted,
        }
    });
    Ok(SpendingReport { day, budgets, issues: issues.collect() })
}

/// Adds what runs hold that reserved nothing, because a limit was set after they began: as for a claim, each counts as the
/// most of a run, or as what it has spent if that is more.
fn add_unlimited(
    web: &Web,
    day: Date,
    most: Amount,
    rows: &mut [IssueSpending],
) -> Result<(), Problem> {
    if most == Amount::default() {
        return Ok(());
    }
    let service = &web.service;
    let settings = service.settings();
    let unlimited =
        unlimited_runs(&service.home, &service.host, &*service.store, &settings.budget)?;
    for row in rows {
        let at_work = unlimited.iter().any(|run| run.key == row.key);
        if !at_work && row.uncounted == 0 {
            continue;
        }
        let spending = service.store.spending_of(&row.key)?;
        for run in spending.iter().filter(|run| run.day == day && run.run.is_some()) {
            let held = |unit: BudgetUnit| match (run.reserved.of(unit), most.of(unit), &run.spent) {
                (Some(_), _, _) | (_, None, _) => 0,
                (None, Some(most), Some(spent)) => spent.of(unit).map_or(most, |_| 0),
                (None, Some(most), None) => {
                    let this = unlimited.iter().find(|it| it.seq == run.seq);
                    most.max(this.and_then(|it| it.spent.of(unit)).unwrap_or_default())
                }
            };
            row.reserved_tokens = row.reserved_tokens.saturating_add(held(BudgetUnit::Tokens));
            row.reserved_micro_usd =
                row.reserved_micro_usd.saturating_add(held(BudgetUnit::MicroUsd));
        }
    }
    Ok(())
}

/// The budgets of the served repositories, from the widest to the narrowest, each once.
fn used_budgets(budget: &BudgetSettings, repos: &[&str], rows: &[IssueSpending]) -> Vec<BudgetUse> {
    let mut found: Vec<(BudgetScope, BudgetUse)> = Vec::new();
    for repo in repos {
        let (owner, name) = repo.rsplit_once('/').unwrap_or(("", repo));
        let key = IssueKey { owner: owner.to_owned(), repo: name.to_owned(), issue_number: 0 };
        let limits = budget.limits(owner, name);
        for limit in limits.iter().filter(|limit| limit.scope != BudgetScope::Issue) {
            let of = name_scope(limit.scope, &key);
            let covered = rows.iter().filter(|row| is_covered(limit.scope, &key, &row.key));
            let covered: Vec<&IssueSpending> = covered.collect();
            for unit in BudgetUnit::ALL {
                let Some(most) = limit.most.of(unit) else { continue };
                let used = sum_up(of.clone(), unit, most, &covered);
                if !found.iter().any(|(_, known)| *known == used) {
                    found.push((limit.scope, used));
                }
            }
        }
    }
    found.sort_by(|(one, _), (other, _)| other.cmp(one));
    found.into_iter().map(|(_, used)| used).collect()
}

fn is_covered(scope: BudgetScope, budget: &IssueKey, row: &IssueKey) -> bool {
    match scope {
        BudgetScope::Issue => budget == row,
        BudgetScope::Repository => budget.owner == row.owner && budget.repo == row.repo,
        BudgetScope::Organisation => organisation_of(&budget.owner) == organisation_of(&row.owner),
        BudgetScope::Host => true,
    }
}

fn sum_up(of: String, unit: BudgetUnit, limit: u64, rows: &[&IssueSpending]) -> BudgetUse {
    let sum = |part: fn(&IssueSpending) -> u64| rows.iter().map(|row| part(row)).sum();
    match unit {
        BudgetUnit::Tokens => {
            let (spent, reserved) = (sum(|row| row.tokens), sum(|row| row.reserved_tokens));
            BudgetUse { of, unit: SpendingUnit::Tokens, limit, spent, reserved }
        }
        BudgetUnit::MicroUsd => {
            let (spent, reserved) = (sum(|row| row.micro_usd), sum(|row| row.reserved_micro_usd));
            BudgetUse { of, unit: SpendingUnit::MicroUsd, limit, spent, reserved }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::agent_manifest::parse_toml;

    fn row(owner: &str, repo: &str, tokens: u64, reserved_tokens: u64) -> IssueSpending {
        IssueSpending {
            key: IssueKey { owner: owner.to_owned(), repo: repo.to_owned(), issue_number: 1 },
            runs: 1,
            tokens,
            micro_usd: 0,
            reserved_tokens,
            reserved_micro_usd: 0,
            uncounted: 0,
        }
    }

    #[test]
    fn each_budget_is_listed_once_with_what_it_covers() {
        let budget: BudgetSettings = parse_toml(
            "run = { tokens = 1 }\nissue = { tokens = 5 }\nrepository = { tokens = 10 }\n\
             organisation = { tokens = 20 }\nhost = { tokens = 30 }\n",
        )
        .expect("settings");
        let rows = [row("acme", "a", 1, 2), row("acme/x", "b", 4, 0), row("other", "c", 8, 0)];
        let used = used_budgets(&budget, &["acme/a", "acme/x/b", "other/c"], &rows);
        let short: Vec<_> =
            used.iter().map(|it| (it.of.as_str(), it.limit, it.spent, it.reserved)).collect();
        assert_eq!(
            short,
            [
                ("this host", 30, 13, 2),
                ("organisation acme", 20, 5, 2),
                ("organisation other", 20, 8, 0),
                ("repository acme/a", 10, 1, 2),
                ("repository acme/x/b", 10, 4, 0),
                ("repository other/c", 10, 8, 0),
            ]
        );
    }
}
