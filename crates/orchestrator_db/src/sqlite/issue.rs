//! The bottle of each issue.

use rusqlite::{Row, Transaction, params};

use super::{OF_ISSUE, SqliteStore, key_values, parse_time, parsed, parsed_option, read_key};
use crate::error::DbError;
use crate::fence::Writer;
use crate::forge_state::{ForgeState, IssueKey, saved_state};
use crate::rules::status::{BottleState, BottleStep, next_status};
use crate::store::IssueStore;

const COLUMNS: &str = "owner, repo, issue_number, slug, agent_name, bottle_names, backend_name, \
                       agent_git_user, pr_number, status, last_checkin_at, host, saved, saved_at";

impl IssueStore for SqliteStore {
    fn add_forge_state(&self, state: &ForgeState, writer: Writer<'_>) -> Result<(), DbError> {
        let ForgeState { key, slug, agent_name, backend_name, agent_git_user, .. } = state;
        self.change("store a state", |transaction| {
            if let Some(known) = self.writable_state(transaction, key, writer)? {
                known.check_replaceable()?;
            }
            let sql = format!(
                "INSERT OR REPLACE INTO forge_state ({COLUMNS}) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
            );
            let bottle_names = serde_json::json!(state.bottle_names).to_string();
            let values = params![
                key.owner,
                key.repo,
                key.issue_number,
                slug,
                agent_name,
                bottle_names,
                backend_name,
                agent_git_user,
                state.pr_number,
                state.status.name(),
                state.last_checkin_at.to_string(),
                state.host,
                state.saved.as_ref().map(|it| &it.name),
                state.saved.as_ref().map(|it| it.at.to_string()),
            ];
            transaction.execute(&sql, values).map_err(self.failed("store a state")).map(drop)
        })
    }

    fn forge_state(&self, key: &IssueKey) -> Result<Option<ForgeState>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM forge_state {OF_ISSUE}");
        Ok(self.select("read a state", &sql, key_values(key), read_row)?.pop())
    }

    fn forge_states(&self) -> Result<Vec<ForgeState>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM forge_state ORDER BY owner, repo, issue_number");
        self.select("read the states", &sql, [], read_row)
    }

    fn check_in(
        &self,
        key: &IssueKey,
        slug: &str,
        pull: Option<u64>,
        writer: Writer<'_>,
    ) -> Result<(), DbError> {
        self.change("store a sign of life", |transaction| {
            if self.writable_bottle(transaction, key, slug, writer)?.is_none() {
                return Ok(());
            }
            let sql = format!(
                "UPDATE forge_state SET last_checkin_at = ?4, \
                 pr_number = COALESCE(?5, pr_number), host = ?6 {OF_ISSUE}"
            );
            let IssueKey { owner, repo, issue_number } = key;
            let now = host::clock::now().to_string();
            let values = params![owner, repo, issue_number, now, pull, writer.host];
            transaction.execute(&sql, values).map_err(self.failed("store a sign of life")).map(drop)
        })
    }

    fn save_summary(
        &self,
        key: &IssueKey,
        slug: &str,
        summary: &str,
        writer: Writer<'_>,
    ) -> Result<(), DbError> {
        self.change("store a summary", |transaction| {
            if self.writable_bottle(transaction, key, slug, writer)?.is_none() {
                return Ok(());
            }
            let sql = format!("UPDATE forge_state SET summary = ?4 {OF_ISSUE}");
            let IssueKey { owner, repo, issue_number } = key;
            let saved = transaction.execute(&sql, params![owner, repo, issue_number, summary]);
            saved.map_err(self.failed("store a summary")).map(drop)
        })
    }

    fn bottle_summary(&self, key: &IssueKey) -> Result<Option<String>, DbError> {
        let sql = format!("SELECT summary FROM forge_state {OF_ISSUE}");
        let found = self.select("read a summary", &sql, key_values(key), |row| row.get(0))?.pop();
        Ok(found.flatten())
    }

    fn step_bottle(
        &self,
        key: &IssueKey,
        slug: &str,
        step: BottleStep,
        writer: Writer<'_>,
    ) -> Result<Option<BottleState>, DbError> {
        self.change("store a state", |transaction| {
            let Some(known) = self.writable_bottle(transaction, key, slug, writer)? else {
                return Ok(None);
            };
            let next = next_status(known.status, step)?;
            let sql = format!("UPDATE forge_state SET status = ?4, host = ?5 {OF_ISSUE}");
            let IssueKey { owner, repo, issue_number } = key;
            let values = params![owner, repo, issue_number, next.name(), writer.host];
            transaction.execute(&sql, values).map_err(self.failed("store a state"))?;
            Ok(Some(next))
        })
    }

    fn delete_forge_state(
        &self,
        key: &IssueKey,
        slug: &str,
        writer: Writer<'_>,
    ) -> Result<(), DbError> {
        self.change("delete a state", |transaction| {
            if self.writable_bottle(transaction, key, slug, writer)?.is_none() {
                return Ok(());
            }
            let sql = format!("DELETE FROM forge_state {OF_ISSUE}");
            let deleted = transaction.execute(&sql, key_values(key));
            deleted.map_err(self.failed("delete a state")).map(drop)
        })
    }
}

impl SqliteStore {
    /// The row of a bottle that the writer may change; `None` if the row is another bottle's.
    pub(super) fn writable_bottle(
        &self,
        transaction: &Transaction<'_>,
        key: &IssueKey,
        slug: &str,
        writer: Writer<'_>,
    ) -> Result<Option<ForgeState>, DbError> {
        let known = self.writable_state(transaction, key, writer)?;
        Ok(known.filter(|known| known.slug == slug))
    }

    /// The row of an issue, if the writer may change it.
    pub(super) fn writable_state(
        &self,
        transaction: &Transaction<'_>,
        key: &IssueKey,
        writer: Writer<'_>,
    ) -> Result<Option<ForgeState>, DbError> {
        if let Some(claim) = writer.claim {
            self.check_fence(transaction, key, claim)?;
        }
        let known = self.known_state(transaction, key)?;
        if let Some(known) = &known {
            known.check_host(writer.host)?;
        }
        Ok(known)
    }

    pub(super) fn known_state(
        &self,
        transaction: &Transaction<'_>,
        key: &IssueKey,
    ) -> Result<Option<ForgeState>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM forge_state {OF_ISSUE}");
        Ok(self.rows(transaction, "read a state", &sql, key_values(key), read_row)?.pop())
    }
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Row<'_>) -> rusqlite::Result<ForgeState> {
    Ok(ForgeState {
        key: read_key(row, 0)?,
        slug: row.get(3)?,
        agent_name: row.get(4)?,
        bottle_names: parsed(row, 5, |text| serde_json::from_str(text).ok())?,
        backend_name: row.get(6)?,
        agent_git_user: row.get(7)?,
        pr_number: row.get(8)?,
        status: parsed(row, 9, BottleState::parse)?,
        last_checkin_at: parsed(row, 10, parse_time)?,
        host: row.get(11)?,
        saved: saved_state(row.get(12)?, parsed_option(row, 13, parse_time)?),
    })
}
