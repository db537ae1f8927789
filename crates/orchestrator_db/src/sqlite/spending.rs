//! Reservations: a run holds its most from the claim on, and settles with what it spent. Each row counts in one day.

use jiff::civil::Date;
use rusqlite::{OptionalExtension, Row, Transaction, params, params_from_iter, types::Value};

use super::{OF_ISSUE, SqliteStore, key_values, parse_time, parsed, read_key};
use crate::error::DbError;
use crate::fence::Writer;
use crate::forge_state::IssueKey;
use crate::spending::{
    Amount, BudgetRefusal, BudgetScope, BudgetUnit, IssueSpending, RunReservation, Spending,
};
use crate::store::SpendingStore;

const COLUMNS: &str = "seq, owner, repo, issue_number, agent, run, day, reserved_at, \
                       reserved_tokens, reserved_micro_usd, settled_at IS NOT NULL, tokens, micro_usd, host";

impl SpendingStore for SqliteStore {
    fn reserve_run(
        &self,
        key: &IssueKey,
        run: &str,
        request: &RunReservation,
        writer: Writer<'_>,
    ) -> Result<Option<BudgetRefusal>, DbError> {
        self.change("reserve a run's spending", |transaction| {
            self.writable_state(transaction, key, writer)?;
            self.release_unstarted(transaction, key)?;
            self.reserve(transaction, key, (Some(run), Some(writer.host)), request)
        })
    }

    fn settle_spending(&self, seq: u64, spent: &Amount) -> Result<(), DbError> {
        let sql = "UPDATE spending SET settled_at = ?2, tokens = ?3, micro_usd = ?4 \
                   WHERE seq = ?1 AND settled_at IS NULL";
        let now = host::clock::now().to_string();
        let values = params![seq, now, spent.tokens, spent.micro_usd];
        self.execute("settle a run's spending", sql, values).map(drop)
    }

    fn release_spending(&self, seq: u64) -> Result<(), DbError> {
        let sql = "DELETE FROM spending WHERE seq = ?1 AND settled_at IS NULL";
        self.execute("release a reservation", sql, params![seq]).map(drop)
    }

    fn unsettled_spending(&self) -> Result<Vec<Spending>, DbError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM spending WHERE settled_at IS NULL AND run IS NOT NULL ORDER BY seq"
        );
        self.select("read the spending", &sql, [], read_row)
    }

    fn spending_of(&self, key: &IssueKey) -> Result<Vec<Spending>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM spending {OF_ISSUE} ORDER BY seq");
        self.select("read the spending", &sql, key_values(key), read_row)
    }

    fn spending_on(&self, day: Date) -> Result<Vec<IssueSpending>, DbError> {
        let sql = "SELECT owner, repo, issue_number, count(run), \
             total(tokens), total(micro_usd), \
             total(CASE WHEN tokens IS NULL THEN reserved_tokens END), \
             total(CASE WHEN micro_usd IS NULL THEN reserved_micro_usd END), \
             count(CASE WHEN settled_at IS NOT NULL AND tokens IS NULL THEN 1 END) \
             FROM spending WHERE day = ?1 \
             GROUP BY owner, repo, issue_number ORDER BY owner, repo, issue_number";
        self.select("read the spending", sql, params![day.to_string()], |row| {
            Ok(IssueSpending {
                key: read_key(row, 0)?,
                runs: row.get(3)?,
                tokens: whole(row.get(4)?),
                micro_usd: whole(row.get(5)?),
                reserved_tokens: whole(row.get(6)?),
                reserved_micro_usd: whole(row.get(7)?),
                uncounted: row.get(8)?,
            })
        })
    }
}

impl SqliteStore {
    /// Deletes the reservation of a claim that has started no run.
    pub(super) fn release_unstarted(
        &self,
        transaction: &Transaction<'_>,
        key: &IssueKey,
    ) -> Result<(), DbError> {
        let sql = format!("DELETE FROM spending {OF_ISSUE} AND run IS NULL");
        let deleted = transaction.execute(&sql, key_values(key));
        deleted.map_err(self.failed("release a reservation")).map(drop)
    }

    /// Makes a reservation, with its run and its host, if every budget has room for it. The transaction keeps others from passing at the same time.
    pub(super) fn reserve(
        &self,
        transaction: &Transaction<'_>,
        key: &IssueKey,
        (run, host): (Option<&str>, Option<&str>),
        request: &RunReservation,
    ) -> Result<Option<BudgetRefusal>, DbError> {
        let refusal = request.find_refusal(|scope, unit, most| {
            self.sum(transaction, key, scope, unit, request.day, most)
        })?;
        if refusal.is_some() {
            return Ok(refusal);
        }
        let sql = "INSERT INTO spending (owner, repo, issue_number, agent, run, day, reserved_at, \
                   reserved_tokens, reserved_micro_usd, host) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let values = params![
            key.owner,
            key.repo,
            key.issue_number,
            request.agent,
            run,
            request.day.to_string(),
            host::clock::now().to_string(),
            request.most.tokens,
            request.most.micro_usd,
            host,
        ];
        transaction.execute(sql, values).map_err(self.failed("reserve a run's spending"))?;
        Ok(None)
    }

    /// Spent and reserved amounts of a scope. What nobody counted counts as its reservation, and without one as `most`.
    fn sum(
        &self,
        transaction: &Transaction<'_>,
        key: &IssueKey,
        scope: BudgetScope,
        unit: BudgetUnit,
        day: Date,
        most: u64,
    ) -> Result<(u64, u64), DbError> {
        let organisation = key.owner.split('/').next().unwrap_or_default();
        let text = |text: &str| Value::Text(text.to_owned());
        let number = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let day = text(&day.to_string());
        let (rows, mut values) = match scope {
            BudgetScope::Issue => (
                "owner = ?2 AND repo = ?3 AND issue_number = ?4",
                vec![text(&key.owner), text(&key.repo), number(key.issue_number)],
            ),
            BudgetScope::Repository => (
                "owner = ?2 AND repo = ?3 AND day = ?4",
                vec![text(&key.owner), text(&key.repo), day],
            ),
            BudgetScope::Organisation => (
                "(owner = ?2 OR substr(owner, 1, length(?2) + 1) = ?2 || '/') AND day = ?3",
                vec![text(organisation), day],
            ),
            BudgetScope::Host => ("day = ?2", vec![day]),
        };
        values.insert(0, number(most));
        let column = unit.column();
        let sql = format!(
            "SELECT \
             total(CASE WHEN settled_at IS NOT NULL THEN coalesce({column}, reserved_{column}, ?1) END), \
             total(CASE WHEN settled_at IS NULL THEN coalesce(reserved_{column}, ?1) END) \
             FROM spending WHERE {rows}"
        );
        let sums = transaction
            .query_row(&sql, params_from_iter(values), |row| {
                Ok((whole(row.get(0)?), whole(row.get(1)?)))
            })
            .optional()
            .map_err(self.failed("sum the spending"))?;
        Ok(sums.unwrap_or_default())
    }
}

/// A sum as a whole number. `total` gives a float, which does not overflow as `sum` does.
#[expect(clippy::cast_possible_truncation, reason = "a cast from a float saturates")]
#[expect(clippy::cast_sign_loss, reason = "no amount is negative")]
fn whole(sum: f64) -> u64 {
    sum as u64
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Row<'_>) -> rusqlite::Result<Spending> {
    let is_settled: bool = row.get(10)?;
    let spent = Amount { tokens: row.get(11)?, micro_usd: row.get(12)? };
    Ok(Spending {
        seq: row.get(0)?,
        key: read_key(row, 1)?,
        agent: row.get(4)?,
        run: row.get(5)?,
        host: row.get(13)?,
        day: parsed(row, 6, |text| text.parse().ok())?,
        reserved_at: parsed(row, 7, parse_time)?,
        reserved: Amount { tokens: row.get(8)?, micro_usd: row.get(9)? },
        spent: is_settled.then_some(spent),
    })
}
