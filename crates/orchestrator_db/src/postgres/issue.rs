//! The bottle of each issue.

use super::value::Cells;
use super::{OF_ISSUE, PostgresStore, Tx, key_values, of_key};
use crate::error::DbError;
use crate::fence::Writer;
use crate::forge_state::{ForgeState, IssueKey, saved_state};
use crate::rules::status::{BottleState, BottleStep, next_status};
use crate::store::IssueStore;

const COLUMNS: &str = "owner, repo, issue_number, slug, agent_name, bottle_names, backend_name, \
                       agent_git_user, pr_number, status, last_checkin_at, host, saved, saved_at";

impl IssueStore for PostgresStore {
    fn add_forge_state(&self, state: &ForgeState, writer: Writer<'_>) -> Result<(), DbError> {
        let ForgeState { key, slug, agent_name, backend_name, agent_git_user, .. } = state;
        let values = of_key(
            key,
            [
                slug.into(),
                agent_name.into(),
                serde_json::json!(state.bottle_names).to_string().into(),
                backend_name.into(),
                agent_git_user.into(),
                state.pr_number.into(),
                state.status.name().into(),
                state.last_checkin_at.into(),
                (&state.host).into(),
                state.saved.as_ref().map(|it| it.name.clone()).into(),
                state.saved.as_ref().map(|it| it.at).into(),
            ],
        );
        self.change("store a state", |tx| {
            tx.check_writer(key, writer)?;
            let sql = format!(
                "INSERT INTO forge_state ({COLUMNS}) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) \
                 ON CONFLICT (owner, repo, issue_number) DO NOTHING"
            );
            if tx.execute("store a state", &sql, &values)? > 0 {
                return Ok(());
            }
            if let Some(known) = tx.state_for_update(key, writer)? {
                known.check_replaceable()?;
            }
            let sql = format!(
                "UPDATE forge_state SET summary = NULL, slug = $4, agent_name = $5, bottle_names = $6, \
                 backend_name = $7, agent_git_user = $8, pr_number = $9, status = $10, \
                 last_checkin_at = $11, host = $12, saved = $13, saved_at = $14 {OF_ISSUE}"
            );
            tx.execute("store a state", &sql, &values).map(drop)
        })
    }

    fn forge_state(&self, key: &IssueKey) -> Result<Option<ForgeState>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM forge_state {OF_ISSUE}");
        Ok(self.select("read a state", &sql, &key_values(key), read_row)?.pop())
    }

    fn forge_states(&self) -> Result<Vec<ForgeState>, DbError> {
        let order = r#"owner COLLATE "C", repo COLLATE "C", issue_number"#;
        let sql = format!("SELECT {COLUMNS} FROM forge_state ORDER BY {order}");
        self.select("read the states", &sql, &[], read_row)
    }

    fn check_in(
        &self,
        key: &IssueKey,
        slug: &str,
        pull: Option<u64>,
        writer: Writer<'_>,
    ) -> Result<(), DbError> {
        self.change("store a sign of life", |tx| {
            if tx.writable_bottle(key, slug, writer)?.is_none() {
                return Ok(());
            }
            let sql = format!(
                "UPDATE forge_state SET last_checkin_at = clock_timestamp(), \
                 pr_number = COALESCE($4, pr_number), host = $5 {OF_ISSUE}"
            );
            let values = of_key(key, [pull.into(), writer.host.into()]);
            tx.execute("store a sign of life", &sql, &values).map(drop)
        })
    }

    fn save_summary(
        &self,
        key: &IssueKey,
        slug: &str,
        summary: &str,
        writer: Writer<'_>,
    ) -> Result<(), DbError> {
        self.change("store a summary", |tx| {
            if tx.writable_bottle(key, slug, writer)?.is_none() {
                return Ok(());
            }
            let sql = format!("UPDATE forge_state SET summary = $4 {OF_ISSUE}");
            tx.execute("store a summary", &sql, &of_key(key, [summary.into()])).map(drop)
        })
    }

    fn bottle_summary(&self, key: &IssueKey) -> Result<Option<String>, DbError> {
        let sql = format!("SELECT summary FROM forge_state {OF_ISSUE}");
        let found = self.select("read a summary", &sql, &key_values(key), |row| row.get(0))?.pop();
        Ok(found.flatten())
    }

    fn step_bottle(
        &self,
        key: &IssueKey,
        slug: &str,
        step: BottleStep,
        writer: Writer<'_>,
    ) -> Result<Option<BottleState>, DbError> {
        self.change("store a state", |tx| {
            let Some(known) = tx.writable_bottle(key, slug, writer)? else { return Ok(None) };
            let next = next_status(known.status, step)?;
            let sql = format!("UPDATE forge_state SET status = $4, host = $5 {OF_ISSUE}");
            let values = of_key(key, [next.name().into(), writer.host.into()]);
            tx.execute("store a state", &sql, &values)?;
            Ok(Some(next))
        })
    }

    fn delete_forge_state(
        &self,
        key: &IssueKey,
        slug: &str,
        writer: Writer<'_>,
    ) -> Result<(), DbError> {
        self.change("delete a state", |tx| {
            if tx.writable_bottle(key, slug, writer)?.is_none() {
                return Ok(());
            }
            let sql = format!("DELETE FROM forge_state {OF_ISSUE}");
            tx.execute("delete a state", &sql, &key_values(key)).map(drop)
        })
    }
}

impl Tx<'_> {
    /// The row of a bottle that the writer may change; `None` if the row is another bottle's.
    pub(super) fn writable_bottle(
        &mut self,
        key: &IssueKey,
        slug: &str,
        writer: Writer<'_>,
    ) -> Result<Option<ForgeState>, DbError> {
        self.check_writer(key, writer)?;
        Ok(self.state_for_update(key, writer)?.filter(|known| known.slug == slug))
    }

    pub(super) fn check_writer(
        &mut self,
        key: &IssueKey,
        writer: Writer<'_>,
    ) -> Result<(), DbError> {
        match writer.claim {
            Some(claim) => self.check_fence(key, claim),
            None => Ok(()),
        }
    }

    /// The row of an issue, locked, if the host may change it. The row of its work is locked before it, everywhere.
    pub(super) fn state_for_update(
        &mut self,
        key: &IssueKey,
        writer: Writer<'_>,
    ) -> Result<Option<ForgeState>, DbError> {
        let known = self.locked_state(key)?;
        if let Some(known) = &known {
            known.check_host(writer.host)?;
        }
        Ok(known)
    }

    pub(super) fn locked_state(&mut self, key: &IssueKey) -> Result<Option<ForgeState>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM forge_state {OF_ISSUE} FOR UPDATE");
        Ok(self.rows("read a state", &sql, &key_values(key), read_row)?.pop())
    }
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Cells<'_>) -> Result<ForgeState, DbError> {
    Ok(ForgeState {
        key: row.key(0)?,
        slug: row.get(3)?,
        agent_name: row.get(4)?,
        bottle_names: row.parsed(5, |text| serde_json::from_str(text).ok())?,
        backend_name: row.get(6)?,
        agent_git_user: row.get(7)?,
        pr_number: row.number_option(8)?,
        status: row.parsed(9, BottleState::parse)?,
        last_checkin_at: row.get(10)?,
        host: row.get(11)?,
        saved: saved_state(row.get(12)?, row.get(13)?),
    })
}
