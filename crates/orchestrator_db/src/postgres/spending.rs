//! Reservations: a run holds its most from the claim on, and settles with what it spent. Each row counts in one day.

use jiff::civil::Date;

use super::value::{Cells, Value};
use super::{OF_ISSUE, PostgresStore, Tx, key_values, of_key};
use crate::error::DbError;
use crate::fence::Writer;
use crate::forge_state::IssueKey;
use crate::spending::{
    Amount, BudgetRefusal, BudgetScope, BudgetUnit, IssueSpending, RunReservation, Spending,
};
use crate::store::SpendingStore;

const COLUMNS: &str = "seq, owner, repo, issue_number, agent, run, day, reserved_at, \
                       reserved_tokens, reserved_micro_usd, settled_at IS NOT NULL, tokens, micro_usd, host";

/// Key of the lock under which budgets are summed and reserved: two claims at once would both see the room of one.
const BUDGET_LOCK: &str = "SELECT pg_advisory_xact_lock(4702111234474983746)";

impl SpendingStore for PostgresStore {
    fn reserve_run(
        &self,
        key: &IssueKey,
        run: &str,
        request: &RunReservation,
        writer: Writer<'_>,
    ) -> Result<Option<BudgetRefusal>, DbError> {
        self.change("reserve a run's spending", |tx| {
            tx.check_writer(key, writer)?;
            tx.state_for_update(key, writer)?;
            tx.release_unstarted(key)?;
            tx.reserve(key, (Some(run), Some(writer.host)), request)
        })
    }

    fn settle_spending(&self, seq: u64, spent: &Amount) -> Result<(), DbError> {
        let sql = "UPDATE spending SET settled_at = clock_timestamp(), tokens = $2, \
                   micro_usd = $3 WHERE seq = $1 AND settled_at IS NULL";
        let values = [seq.into(), spent.tokens.into(), spent.micro_usd.into()];
        self.execute("settle a run's spending", sql, &values).map(drop)
    }

    fn release_spending(&self, seq: u64) -> Result<(), DbError> {
        let sql = "DELETE FROM spending WHERE seq = $1 AND settled_at IS NULL";
        self.execute("release a reservation", sql, &[seq.into()]).map(drop)
    }

    fn unsettled_spending(&self) -> Result<Vec<Spending>, DbError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM spending WHERE settled_at IS NULL AND run IS NOT NULL ORDER BY seq"
        );
        self.select("read the spending", &sql, &[], read_row)
    }

    fn spending_of(&self, key: &IssueKey) -> Result<Vec<Spending>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM spending {OF_ISSUE} ORDER BY seq");
        self.select("read the spending", &sql, &key_values(key), read_row)
    }

    fn spending_on(&self, day: Date) -> Result<Vec<IssueSpending>, DbError> {
        let sql = format!(
            "SELECT owner, repo, issue_number, count(run), {}, {}, {}, {}, \
             count(CASE WHEN settled_at IS NOT NULL AND tokens IS NULL THEN 1 END) \
             FROM spending WHERE day = $1 GROUP BY owner, repo, issue_number \
             ORDER BY owner COLLATE \"C\", repo COLLATE \"C\", issue_number",
            total("tokens"),
            total("micro_usd"),
            total("CASE WHEN tokens IS NULL THEN reserved_tokens END"),
            total("CASE WHEN micro_usd IS NULL THEN reserved_micro_usd END"),
        );
        self.select("read the spending", &sql, &[day.into()], |row| {
            Ok(IssueSpending {
                key: row.key(0)?,
                runs: row.number(3)?,
                tokens: row.number(4)?,
                micro_usd: row.number(5)?,
                reserved_tokens: row.number(6)?,
                reserved_micro_usd: row.number(7)?,
                uncounted: row.number(8)?,
            })
        })
    }
}

impl Tx<'_> {
    /// Deletes the reservation of a claim that has started no run.
    pub(super) fn release_unstarted(&mut self, key: &IssueKey) -> Result<(), DbError> {
        let sql = format!("DELETE FROM spending {OF_ISSUE} AND run IS NULL");
        self.execute("release a reservation", &sql, &key_values(key)).map(drop)
    }

    /// Makes a reservation, with its run and its host, if every budget has room for it.
    pub(super) fn reserve(
        &mut self,
        key: &IssueKey,
        (run, host): (Option<&str>, Option<&str>),
        request: &RunReservation,
    ) -> Result<Option<BudgetRefusal>, DbError> {
        if !request.limits.is_empty() {
            self.batch("lock the budgets", BUDGET_LOCK)?;
        }
        let refusal = request
            .find_refusal(|scope, unit, most| self.sum(key, scope, unit, request.day, most))?;
        if refusal.is_some() {
            return Ok(refusal);
        }
        let sql = "INSERT INTO spending (owner, repo, issue_number, agent, run, day, reserved_at, \
                   reserved_tokens, reserved_micro_usd, host) \
                   VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp(), $7, $8, $9)";
        let values = of_key(
            key,
            [
                (&request.agent).into(),
                run.into(),
                request.day.into(),
                request.most.tokens.into(),
                request.most.micro_usd.into(),
                host.into(),
            ],
        );
        self.execute("reserve a run's spending", sql, &values)?;
        Ok(None)
    }

    /// Spent and reserved amounts of a scope. What nobody counted counts as its reservation, and without one as `most`.
    fn sum(
        &mut self,
        key: &IssueKey,
        scope: BudgetScope,
        unit: BudgetUnit,
        day: Date,
        most: u64,
    ) -> Result<(u64, u64), DbError> {
        let organisation = key.owner.split('/').next().unwrap_or_default();
        let (rows, more): (_, Vec<Value>) = match scope {
            BudgetScope::Issue => {
                ("owner = $2 AND repo = $3 AND issue_number = $4", key_values(key))
            }
            BudgetScope::Repository => (
                "owner = $2 AND repo = $3 AND day = $4",
                vec![(&key.owner).into(), (&key.repo).into(), day.into()],
            ),
            BudgetScope::Organisation => (
                "(owner = $2 OR starts_with(owner, $2 || '/')) AND day = $3",
                vec![organisation.into(), day.into()],
            ),
            BudgetScope::Host => ("day = $2", vec![day.into()]),
        };
        let mut values = vec![most.into()];
        values.extend(more);
        let column = unit.column();
        let spent = format!(
            "CASE WHEN settled_at IS NOT NULL THEN coalesce({column}, reserved_{column}, $1) END"
        );
        let reserved =
            format!("CASE WHEN settled_at IS NULL THEN coalesce(reserved_{column}, $1) END");
        let sql = format!(
            "SELECT {}, {} FROM spending_amount WHERE {rows}",
            total(&spent),
            total(&reserved)
        );
        let read = |row: &Cells<'_>| Ok((row.number(0)?, row.number(1)?));
        let sums = self.rows("sum the spending", &sql, &values, read)?.pop();
        Ok(sums.unwrap_or_default())
    }
}

/// A sum as a whole number in the range of a column.
fn total(values: &str) -> String {
    format!("least(coalesce(sum({values}), 0), 9223372036854775807)::bigint")
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Cells<'_>) -> Result<Spending, DbError> {
    let is_settled: bool = row.get(10)?;
    let spent = Amount { tokens: row.number_option(11)?, micro_usd: row.number_option(12)? };
    Ok(Spending {
        seq: row.number(0)?,
        key: row.key(1)?,
        agent: row.get(4)?,
        run: row.get(5)?,
        host: row.get(13)?,
        day: row.get(6)?,
        reserved_at: row.get(7)?,
        reserved: Amount { tokens: row.number_option(8)?, micro_usd: row.number_option(9)? },
        spent: is_settled.then_some(spent),
    })
}
