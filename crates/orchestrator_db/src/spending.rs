//! Spending of runs, and the budgets that it is held against. Amounts are whole numbers, so that sums have no rest.

use jiff::Timestamp;
use jiff::civil::Date;

use crate::error::DbError;
use crate::forge_state::IssueKey;

/// Tokens and millionths of a dollar; `None` is an amount that nobody knows or limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    pub tokens: Option<u64>,
    pub micro_usd: Option<u64>,
}

impl Amount {
    pub const ZERO: Self = Self { tokens: Some(0), micro_usd: Some(0) };

    pub fn of(&self, unit: BudgetUnit) -> Option<u64> {
        match unit {
            BudgetUnit::Tokens => self.tokens,
            BudgetUnit::MicroUsd => self.micro_usd,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetUnit {
    Tokens,
    MicroUsd,
}

impl BudgetUnit {
    pub const ALL: [Self; 2] = [Self::Tokens, Self::MicroUsd];

    /// Name of the columns with this unit.
    pub(crate) fn column(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::MicroUsd => "micro_usd",
        }
    }
}

/// Runs that a budget covers: those of an issue on all days, and those of one day for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetScope {
    Issue,
    Repository,
    /// The owner of the repository; of groups within groups the outermost one.
    Organisation,
    Host,
}

/// Budget of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetLimit {
    pub scope: BudgetScope,
    pub most: Amount,
}

/// Request for the reservation of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunReservation {
    pub agent: String,
    /// The most that the run can spend.
    pub most: Amount,
    pub limits: Vec<BudgetLimit>,
    /// Day that the run counts in, however long it takes.
    pub day: Date,
}

impl RunReservation {
    /// The first budget that has no room for the run. `sum` returns the spent and the reserved amounts of a scope, where what
    /// nobody counted and nobody reserved counts as the amount that it is given.
    pub(crate) fn find_refusal(
        &self,
        mut sum: impl FnMut(BudgetScope, BudgetUnit, u64) -> Result<(u64, u64), DbError>,
    ) -> Result<Option<BudgetRefusal>, DbError> {
        for BudgetLimit { scope, most } in self.limits.iter().copied() {
            for unit in BudgetUnit::ALL {
                let (Some(limit), Some(wanted)) = (most.of(unit), self.most.of(unit)) else {
                    continue;
                };
                let (spent, reserved) = sum(scope, unit, wanted)?;
                if spent.saturating_add(reserved).saturating_add(wanted) > limit {
                    return Ok(Some(BudgetRefusal { scope, unit, limit, spent, reserved, wanted }));
                }
            }
        }
        Ok(None)
    }
}

/// Budget into which a run does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetRefusal {
    pub scope: BudgetScope,
    pub unit: BudgetUnit,
    pub limit: u64,
    /// Spent by runs that have ended.
    pub spent: u64,
    /// Reserved by runs that have not.
    pub reserved: u64,
    /// Most of the run that is refused.
    pub wanted: u64,
}

/// Outcome of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkClaim {
    Claimed(Box<crate::work::WorkItem>),
    /// A budget has no room for its run.
    Refused(BudgetRefusal),
    /// It is not to be claimed any more.
    Gone,
}

/// Spending of one run, or a reservation for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spending {
    pub seq: u64,
    pub key: IssueKey,
    pub agent: String,
    /// The run; `None` as long as a claim has not started it.
    pub run: Option<String>,
    /// The host that started it; `None` in rows of versions that knew one host only.
    pub host: Option<String>,
    pub day: Date,
    pub reserved_at: Timestamp,
    pub reserved: Amount,
    /// Spent amount, once the run has ended. What nobody counted is `None` and counts as reserved.
    pub spent: Option<Amount>,
}

/// Sums of the spending of an issue on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueSpending {
    pub key: IssueKey,
    pub runs: u64,
    /// Spent by runs that have ended, as far as it was counted.
    pub tokens: u64,
    pub micro_usd: u64,
    /// Reserved by runs that have not ended, or that nobody counted.
    pub reserved_tokens: u64,
    pub reserved_micro_usd: u64,
    /// Runs that have ended and that nobody counted.
    pub uncounted: u64,
}
