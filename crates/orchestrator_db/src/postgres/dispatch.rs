//! Dispatches, the marks of schedules, and the repositories that were found in organisations.

use super::value::{Cells, Value};
use super::{PostgresStore, Tx};
use crate::delivery::DeliveryInsert;
use crate::dispatch::{Dispatch, DispatchRequest, DispatchState, ScheduleMark};
use crate::error::DbError;
use crate::forge_state::IssueKey;
use crate::store::DispatchStore;

const COLUMNS: &str = "id, origin, schedule, owner, repo, agent, bottles, assignee, title, prompt, \
                       created_at, state, issue_number, attempts, not_before, problem";

impl DispatchStore for PostgresStore {
    fn add_dispatch(&self, dispatch: &Dispatch) -> Result<DeliveryInsert, DbError> {
        self.change("store a dispatch", |tx| tx.insert_dispatch(dispatch))
    }

    fn dispatch(&self, id: &str) -> Result<Option<Dispatch>, DbError> {
        Ok(self.read_dispatches("WHERE id = $1", &[id.into()])?.pop())
    }

    fn open_dispatches(&self, limit: usize) -> Result<Vec<Dispatch>, DbError> {
        let rest = "WHERE state IN ('pending', 'opening') ORDER BY created_at, id LIMIT $1";
        self.read_dispatches(rest, &[limit.into()])
    }

    fn last_dispatches(&self, limit: usize) -> Result<Vec<Dispatch>, DbError> {
        self.read_dispatches("ORDER BY created_at DESC, id LIMIT $1", &[limit.into()])
    }

    fn last_dispatch_of(&self, schedule: &str) -> Result<Option<Dispatch>, DbError> {
        let rest = "WHERE schedule = $1 ORDER BY created_at DESC, id LIMIT 1";
        Ok(self.read_dispatches(rest, &[schedule.into()])?.pop())
    }

    fn dispatch_of_issue(&self, key: &IssueKey) -> Result<Option<Dispatch>, DbError> {
        Ok(self.read_dispatches(super::OF_ISSUE, &super::key_values(key))?.pop())
    }

    fn save_dispatch(&self, dispatch: &Dispatch) -> Result<(), DbError> {
        let sql = "UPDATE dispatch SET state = $2, issue_number = $3, attempts = $4, \
                   not_before = $5, problem = $6, owner = $7, repo = $8 WHERE id = $1";
        let values = [
            (&dispatch.id).into(),
            dispatch.state.name().into(),
            dispatch.issue_number.into(),
            dispatch.attempts.into(),
            dispatch.not_before.into(),
            (&dispatch.problem).into(),
            (&dispatch.request.owner).into(),
            (&dispatch.request.repo).into(),
        ];
        self.execute("store a dispatch", sql, &values).map(drop)
    }

    fn schedule_marks(&self) -> Result<Vec<ScheduleMark>, DbError> {
        let sql = "SELECT name, definition, last_due FROM schedule ORDER BY name COLLATE \"C\"";
        self.select("read the schedules", sql, &[], |row| {
            let (name, definition) = (row.get(0)?, row.get(1)?);
            Ok(ScheduleMark { name, definition, last_due: row.get(2)? })
        })
    }

    fn mark_schedule(
        &self,
        mark: &ScheduleMark,
        dispatch: Option<&Dispatch>,
    ) -> Result<(), DbError> {
        self.change("mark a schedule", |tx| {
            let sql = "INSERT INTO schedule (name, definition, last_due) VALUES ($1, $2, $3) \
                       ON CONFLICT (name) DO UPDATE SET definition = $2, last_due = $3";
            let ScheduleMark { name, definition, last_due } = mark;
            let values = [name.into(), definition.into(), (*last_due).into()];
            tx.execute("mark a schedule", sql, &values)?;
            if let Some(dispatch) = dispatch {
                tx.insert_dispatch(dispatch)?;
            }
            Ok(())
        })
    }

    fn found_repositories(&self, source: &str) -> Result<Vec<String>, DbError> {
        let sql = "SELECT full_name FROM found_repository WHERE source = $1 \
                   ORDER BY full_name COLLATE \"C\"";
        self.select("read the repositories", sql, &[source.into()], |row| row.get(0))
    }

    fn save_found_repositories(&self, source: &str, names: &[String]) -> Result<(), DbError> {
        self.change("store the repositories", |tx| {
            let sql = "DELETE FROM found_repository WHERE source = $1";
            tx.execute("store the repositories", sql, &[source.into()])?;
            let sql = "INSERT INTO found_repository (source, full_name) \
                       SELECT $1, unnest($2) ON CONFLICT DO NOTHING";
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let values = [source.into(), names.into()];
            tx.execute("store the repositories", sql, &values).map(drop)
        })
    }
}

impl PostgresStore {
    fn read_dispatches(&self, rest: &str, values: &[Value]) -> Result<Vec<Dispatch>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM dispatch {rest}");
        self.select("read the dispatches", &sql, values, read_row)
    }
}

impl Tx<'_> {
    fn insert_dispatch(&mut self, dispatch: &Dispatch) -> Result<DeliveryInsert, DbError> {
        let sql = format!(
            "INSERT INTO dispatch ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, \
             $11, $12, $13, $14, $15, $16) ON CONFLICT (id) DO NOTHING"
        );
        let request = &dispatch.request;
        let values = [
            (&dispatch.id).into(),
            (&request.origin).into(),
            (&request.schedule).into(),
            (&request.owner).into(),
            (&request.repo).into(),
            (&request.agent).into(),
            serde_json::json!(request.bottles).to_string().into(),
            (&request.assignee).into(),
            (&request.title).into(),
            (&request.prompt).into(),
            dispatch.created_at.into(),
            dispatch.state.name().into(),
            dispatch.issue_number.into(),
            dispatch.attempts.into(),
            dispatch.not_before.into(),
            (&dispatch.problem).into(),
        ];
        Ok(match self.execute("store a dispatch", &sql, &values)? {
            0 => DeliveryInsert::Duplicate,
            _ => DeliveryInsert::New,
        })
    }
}

/// In the order of [`COLUMNS`].
fn read_row(row: &Cells<'_>) -> Result<Dispatch, DbError> {
    Ok(Dispatch {
        id: row.get(0)?,
        request: DispatchRequest {
            origin: row.get(1)?,
            schedule: row.get(2)?,
            owner: row.get(3)?,
            repo: row.get(4)?,
            agent: row.get(5)?,
            bottles: row.parsed(6, |text| serde_json::from_str(text).ok())?,
            assignee: row.get(7)?,
            title: row.get(8)?,
            prompt: row.get(9)?,
        },
        created_at: row.get(10)?,
        state: row.parsed(11, DispatchState::parse)?,
        issue_number: row.number_option(12)?,
        attempts: row.number(13)?,
        not_before: row.get(14)?,
        problem: row.get(15)?,
    })
}
