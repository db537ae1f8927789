//! Which bottle works on which issue, in the forge state: guarded steps, and the last time that anything was heard.

use engine::workspace::AGENT_IDENTITY;
use model::exit::BottleExit;
use orchestrator_db::{BottleStep, ForgeState, ForgeStateStore, IssueKey, SqliteForgeStateStore};

use super::bottle::Record;
use super::home::Home;
use crate::exit::{Failure, OrExit};
use crate::rules::forge_env::ForgeEnv;

pub(crate) fn open_state(home: &Home) -> Result<SqliteForgeStateStore, Failure> {
    SqliteForgeStateStore::open(&home.database()).or_general()
}

/// The issue of an assignment.
pub(crate) fn key_of(env: &ForgeEnv) -> IssueKey {
    IssueKey { owner: env.owner.clone(), repo: env.repo.clone(), issue_number: env.issue }
}

/// Says that a new bottle works on an issue. An issue that has one is refused: two would write over one another.
pub(crate) fn begin(home: &Home, env: &ForgeEnv, record: &Record) -> Result<(), Failure> {
    let store = open_state(home)?;
    let key = key_of(env);
    if let Some(known) = store.get(&key).or_general()? {
        orchestrator_db::next_status(known.status, BottleStep::Start).map_err(|error| {
            Failure::not_found(format!(
                "{error}: the bottle '{}' works on issue #{}; go on with: bot-bottle orchestrate resume --slug {}",
                known.slug, env.issue, known.slug
            ))
        })?;
    }
    store.upsert(&row(key, record)).or_general()
}

fn row(key: IssueKey, record: &Record) -> ForgeState {
    ForgeState {
        key,
        slug: record.slug.to_string(),
        agent_name: record.agent.clone(),
        bottle_names: record.bottles.clone(),
        backend_name: record.backend.to_string(),
        agent_git_user: format!("{} <{}>", AGENT_IDENTITY.0, AGENT_IDENTITY.1),
        pr_number: record.pull,
        status: orchestrator_db::BottleState::Running,
        last_checkin_at: host::clock::now(),
    }
}

/// Takes a step with the bottle of an issue. An issue that another bottle has by now is left alone.
pub(crate) fn step(home: &Home, record: &Record, step: BottleStep) -> Result<(), Failure> {
    let Some(env) = &record.forge else { return Ok(()) };
    let store = open_state(home)?;
    let key = key_of(env);
    match store.get(&key).or_general()? {
        Some(known) if known.slug == record.slug.as_str() => {}
        _ => return Ok(()),
    }
    store.step(&key, step).or_exit(BottleExit::NotFound)?;
    touch(home, record)
}

/// Writes down that something was heard of the bottle, and which pull request it has.
pub(crate) fn touch(home: &Home, record: &Record) -> Result<(), Failure> {
    let Some(env) = &record.forge else { return Ok(()) };
    let store = open_state(home)?;
    if let Some(known) = store.get(&key_of(env)).or_general()? {
        let fresh = ForgeState {
            last_checkin_at: host::clock::now(),
            pr_number: record.pull.or(known.pr_number),
            ..known
        };
        store.upsert(&fresh).or_general()?;
    }
    Ok(())
}
