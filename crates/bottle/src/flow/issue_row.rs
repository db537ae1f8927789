//! The database row of an issue that has a bottle.

use engine::workspace::AGENT_IDENTITY;
use model::exit::BottleExit;
use orchestrator_db::{BottleStep, ForgeState, ForgeStateStore, IssueKey, SqliteForgeStateStore};

use super::bottle::Record;
use super::home::Home;
use crate::exit::{Failure, OrExit, OrGeneral};
use crate::rules::forge_env::ForgeEnv;

pub(crate) fn open_store(home: &Home) -> Result<SqliteForgeStateStore, Failure> {
    SqliteForgeStateStore::open(&home.database).or_general()
}

pub(crate) fn issue_key(env: &ForgeEnv) -> IssueKey {
    IssueKey { owner: env.owner.clone(), repo: env.repo.clone(), issue_number: env.issue }
}

/// Inserts the row of a new bottle. An issue with a bottle is refused: two would overwrite each other's work.
pub(crate) fn insert(home: &Home, env: &ForgeEnv, record: &Record) -> Result<(), Failure> {
    let store = open_store(home)?;
    let key = issue_key(env);
    if let Some(known) = store.get(&key).or_general()? {
        orchestrator_db::next_status(known.status, BottleStep::Start).map_err(|error| {
            Failure::not_found(format!(
                "{error}: the bottle '{}' works on issue #{}; go on with: bot-bottle orchestrate resume --slug {}",
                known.slug, env.issue, known.slug
            ))
        })?;
    }
    let row = ForgeState {
        key,
        slug: record.slug.to_string(),
        agent_name: record.agent.clone(),
        bottle_names: record.bottles.clone(),
        backend_name: record.backend.to_string(),
        agent_git_user: format!("{} <{}>", AGENT_IDENTITY.0, AGENT_IDENTITY.1),
        pr_number: record.pull,
        status: orchestrator_db::BottleState::Running,
        last_checkin_at: host::clock::now(),
    };
    store.upsert(&row).or_general()
}

/// Takes a step of the bottle's state. A row of another bottle stays unchanged.
pub(crate) fn step(home: &Home, record: &Record, step: BottleStep) -> Result<(), Failure> {
    let Some(env) = &record.forge else { return Ok(()) };
    let store = open_store(home)?;
    let key = issue_key(env);
    match store.get(&key).or_general()? {
        Some(known) if known.slug == record.slug.as_str() => {}
        _ => return Ok(()),
    }
    store.step(&key, step).or_exit(BottleExit::NotFound)?;
    check_in(&store, &key, record)
}

/// Updates the time of the last sign of life, and the pull request.
pub(crate) fn touch(home: &Home, record: &Record) -> Result<(), Failure> {
    let Some(env) = &record.forge else { return Ok(()) };
    check_in(&open_store(home)?, &issue_key(env), record)
}

fn check_in(store: &SqliteForgeStateStore, key: &IssueKey, record: &Record) -> Result<(), Failure> {
    if let Some(known) = store.get(key).or_general()? {
        let fresh = ForgeState {
            last_checkin_at: host::clock::now(),
            pr_number: record.pull.or(known.pr_number),
            ..known
        };
        store.upsert(&fresh).or_general()?;
    }
    Ok(())
}
