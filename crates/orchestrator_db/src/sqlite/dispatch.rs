//! Dispatches, the marks of schedules, and the repositories that were found in organisations.

use jiff::Timestamp;
use rusqlite::{Row, Transaction, params};

use super::{SqliteStore, key_values, parse_time, parsed, parsed_option};
use crate::delivery::DeliveryInsert;
use crate::dispatch::{Dispatch, DispatchRequest, DispatchState, ScheduleMark};
use crate::error::DbError;
use crate::forge_state::IssueKey;
use crate::store::DispatchStore;

const COLUMNS: &str = "id, origin, schedule, owner, repo, agent, bottles, assignee, title, prompt, \
                       created_at, state, issue_number, attempts, not_before, problem";

impl DispatchStore for SqliteStore {
    fn add_dispatch(&self, dispatch: &Dispatch) -> Result<DeliveryInsert, DbError> {
        self.change("store a dispatch", |transaction| self.insert_dispatch(transaction, dispatch))
    }

    fn dispatch(&self, id: &str) -> Result<Option<Dispatch>, DbError> {
        Ok(self.read_dispatches("WHERE id = ?1", params![id])?.pop())
    }

    fn open_dispatches(&self, limit: usize) -> Result<Vec<Dispatch>, DbError> {
        let rest = "WHERE state IN ('pending', 'opening') ORDER BY created_at, id LIMIT ?1";
        self.read_dispatches(rest, params![limit])
    }

    fn last_dispatches(&self, limit: usize) -> Result<Vec<Dispatch>, DbError> {
        self.read_dispatches("ORDER BY created_at DESC, id LIMIT ?1", params![limit])
    }

    fn last_dispatch_of(&self, schedule: &str) -> Result<Option<Dispatch>, DbError> {
        let rest = "WHERE schedule = ?1 ORDER BY created_at DESC, id LIMIT 1";
        Ok(self.read_dispatches(rest, params![schedule])?.pop())
    }

    fn dispatch_of_issue(&self, key: &IssueKey) -> Result<Option<Dispatch>, DbError> {
        let rest = "WHERE owner = ?1 AND repo = ?2 AND issue_number = ?3";
        Ok(self.read_dispatches(rest, key_values(key))?.pop())
    }

    fn save_dispatch(&self, dispatch: &Dispatch) -> Result<(), DbError> {
        let sql = "UPDATE dispatch SET state = ?2, issue_number = ?3, attempts = ?4, \
                   not_before = ?5, problem = ?6, owner = ?7, repo = ?8 WHERE id = ?1";
        let Dispatch { id, state, issue_number, attempts, problem, request, .. } = dispatch;
        let not_before = dispatch.not_before.map(|at| at.to_string());
        let values = params![
            id,
            state.name(),
            issue_number,
            attempts,
            not_before,
            problem,
            request.owner,
            request.repo
        ];
        self.execute("store a dispatch", sql, values).map(drop)
    }

    fn schedule_marks(&self) -> Result<Vec<ScheduleMark>, DbError> {
        let sql = "SELECT name, definition, last_due FROM schedule ORDER BY name";
        self.select("read the schedules", sql, [], |row| {
            let (name, definition) = (row.get(0)?, row.get(1)?);
            Ok(ScheduleMark { name, definition, last_due: parsed(row, 2, parse_time)? })
        })
    }

    fn mark_schedule(
        &self,
        mark: &ScheduleMark,
        dispatch: Option<&Dispatch>,
    ) -> Result<(), DbError> {
        self.change("mark a schedule", |transaction| {
            let sql = "INSERT OR REPLACE INTO schedule (name, definition, last_due) \
                       VALUES (?1, ?2, ?3)";
            let ScheduleMark { name, definition, last_due } = mark;
            transaction
                .execute(sql, params![name, definition, last_due.to_string()])
                .map_err(self.failed("mark a schedule"))?;
            if let Some(dispatch) = dispatch {
                self.insert_dispatch(transaction, dispatch)?;
            }
            Ok(())
        })
    }

    fn found_repositories(&self, source: &str) -> Result<Vec<String>, DbError> {
        let sql = "SELECT full_name FROM found_repository WHERE source = ?1 ORDER BY full_name";
        self.select("read the repositories", sql, params![source], |row| row.get(0))
    }

    fn save_found_repositories(&self, source: &str, names: &[String]) -> Result<(), DbError> {
        self.change("store the repositories", |transaction| {
            let failed = || self.failed("store the repositories");
            transaction
                .execute("DELETE FROM found_repository WHERE source = ?1", params![source])
                .map_err(failed())?;
            let sql = "INSERT OR IGNORE INTO found_repository (source, full_name) VALUES (?1, ?2)";
            for name in names {
                transaction.execute(sql, params![source, name]).map_err(failed())?;
            }
            Ok(())
        })
    }
}

impl SqliteStore {
    fn insert_dispatch(
        &self,
        transaction: &Transaction<'_>,
        dispatch: &Dispatch,
    ) -> Result<DeliveryInsert, DbError> {
        let sql = format!(
            "INSERT INTO dispatch ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
             ?11, ?12, ?13, ?14, ?15, ?16) ON CONFLICT (id) DO NOTHING"
        );
        let request = &dispatch.request;
        let values = params![
            dispatch.id,
            request.origin,
            request.schedule,
            request.owner,
            request.repo,
            request.agent,
            serde_json::json!(request.bottles).to_string(),
            request.assignee,
            request.title,
            request.prompt,
            dispatch.created_at.to_string(),
            dispatch.state.name(),
            dispatch.issue_number,
            dispatch.attempts,
            dispatch.not_before.map(|at| at.to_string()),
            dispatch.problem,
        ];
        let rows = transaction.execute(&sql, values).map_err(self.failed("store a dispatch"))?;
        Ok(if rows == 0 { DeliveryInsert::Duplicate } else { DeliveryInsert::New })
    }

    fn read_dispatches(
        &self,
        rest: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<Dispatch>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM dispatch {rest}");
        self.select("read the dispatches", &sql, values, read_row)
    }
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Row<'_>) -> rusqlite::Result<Dispatch> {
    Ok(Dispatch {
        id: row.get(0)?,
        request: DispatchRequest {
            origin: row.get(1)?,
            schedule: row.get(2)?,
            owner: row.get(3)?,
            repo: row.get(4)?,
            agent: row.get(5)?,
            bottles: parsed(row, 6, |text| serde_json::from_str(text).ok())?,
            assignee: row.get(7)?,
            title: row.get(8)?,
            prompt: row.get(9)?,
        },
        created_at: parsed(row, 10, |text| text.parse::<Timestamp>().ok())?,
        state: parsed(row, 11, DispatchState::parse)?,
        issue_number: row.get(12)?,
        attempts: row.get(13)?,
        not_before: parsed_option(row, 14, parse_time)?,
        problem: row.get(15)?,
    })
}
