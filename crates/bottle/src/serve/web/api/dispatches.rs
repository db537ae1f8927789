//! Dispatches: work without an issue.

use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use jiff::Timestamp;
use orchestrator_db::{Dispatch, DispatchRequest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::action::name_of;
use super::super::auth::Principal;
use super::super::problem::{Problem, Refusals};
use super::super::rules::action::PROMPT_MAX_CHARS;
use super::super::{WebState, query};
use super::bottles::{ActionRefusals, check_program};
use super::query::{NoQuery, StrictJson, StrictQuery};
use crate::rules::dispatch_text::{choose_title, is_dispatch_id};
use crate::rules::forge_env::is_name;
use crate::serve::settings::split_repo;

/// The newest dispatches.
const SHOWN_MAX: usize = 200;

/// Longest title that is read; it is cut for the issue.
const TITLE_MAX_CHARS: usize = 400;

/// Longest name of a repository.
const REPO_MAX_BYTES: usize = 200;

/// Longest name of an agent, of a bottle manifest and of an account.
const NAME_MAX_BYTES: usize = 64;

/// Work to give to an agent.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewDispatch)]
pub(crate) struct DispatchBody {
    /// The repository, as owner/name.
    #[schema(
        max_length = 200,
        pattern = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+$"
    )]
    repo: String,
    /// The agent's manifest.
    #[schema(max_length = 64, pattern = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*$")]
    agent: String,
    /// What is to be done.
    #[schema(min_length = 1, max_length = 20_000, pattern = r"\S")]
    prompt: String,
    /// Title of the issue; without it the first line of the prompt.
    #[serde(default)]
    #[schema(max_length = 400)]
    title: Option<String>,
    /// Bottle manifests in place of the agent's own.
    #[serde(default)]
    #[schema(max_items = 8, nullable = false)]
    bottles: Vec<BottleName>,
    /// Account to assign; without it that of the token.
    #[serde(default)]
    #[schema(max_length = 64, pattern = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*$")]
    assignee: Option<String>,
    /// Name of the request: a second one with the same name does nothing.
    #[serde(default)]
    #[schema(max_length = 128, pattern = r"^[A-Za-z0-9_.:@]+(-[A-Za-z0-9_.:@]+)*$")]
    key: Option<String>,
}

/// The name of a bottle manifest.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[schema(max_length = 64, pattern = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*$")]
struct BottleName(String);

/// Work that was given to an agent without an issue.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DispatchSummary {
    id: String,
    /// Who asked for it.
    origin: String,
    /// The repository, as owner/name.
    repo: String,
    agent: String,
    title: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// `pending`, `opening`, `opened` or `failed`.
    state: &'static str,
    /// The issue, once it is open.
    issue: Option<u64>,
    /// Reason of the last failure; empty without one.
    problem: String,
}

/// Dispatches, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DispatchList {
    dispatches: Vec<DispatchSummary>,
}

/// List the newest dispatches
#[utoipa::path(get, operation_id = "list_dispatches", path = "/dispatches", tag = "dispatches",
    responses((status = 200, description = "Some of them", body = DispatchList), Refusals))]
pub(crate) async fn list(
    State(web): State<WebState>,
    StrictQuery(NoQuery {}): StrictQuery<NoQuery>,
) -> Result<Json<DispatchList>, Problem> {
    let list = query(&web, |web| Ok(web.service.store.last_dispatches(SHOWN_MAX)?)).await?;
    Ok(Json(DispatchList { dispatches: list.into_iter().map(summary_of).collect() }))
}

/// Give an agent work without an issue
///
/// The issue is opened as soon as the forge can be reached; the answer comes once the request is on disk.
#[utoipa::path(post, operation_id = "dispatch", path = "/dispatches", tag = "dispatches",
    request_body = DispatchBody,
    responses((status = 202, description = "It is on disk", body = DispatchSummary), ActionRefusals, Refusals))]
pub(crate) async fn add(
    State(web): State<WebState>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
    StrictQuery(NoQuery {}): StrictQuery<NoQuery>,
    request: Request,
) -> Result<(StatusCode, Json<DispatchSummary>), Problem> {
    check_program(&web, &principal, &headers)?;
    let StrictJson(body) = StrictJson::<DispatchBody>::from_request(request, &web).await?;
    let dispatch = read_body(&body, &principal)?;
    let stored = query(&web, move |web| {
        let store = &web.service.store;
        store.add_dispatch(&dispatch)?;
        let gone = || Problem::failed(&"a dispatch was stored and is gone");
        store.dispatch(&dispatch.id)?.ok_or_else(gone)
    });
    let stored = stored.await?;
    tracing::info!(id = stored.id, by = name_of(&principal), "dispatch requested");
    Ok((StatusCode::ACCEPTED, Json(summary_of(stored))))
}

fn read_body(body: &DispatchBody, principal: &Principal) -> Result<Dispatch, Problem> {
    let (owner, repo) = split_repo(&body.repo)
        .filter(|_| body.repo.len() <= REPO_MAX_BYTES)
        .ok_or_else(|| Problem::wrong("repo has to be owner/name, at most 200 characters"))?;
    for (field, name) in [("agent", Some(&body.agent)), ("assignee", body.assignee.as_ref())] {
        if name.is_some_and(|name| !is_short_name(name)) {
            let wanted = "letters, digits and - _ . of which no dot is first, at most 64";
            return Err(Problem::wrong(format!("{field} is not a name: it has {wanted}")));
        }
    }
    if body.bottles.len() > 8 || !body.bottles.iter().all(|name| is_short_name(&name.0)) {
        return Err(Problem::wrong("bottles has at most eight names of manifests"));
    }
    let length = body.prompt.chars().count();
    if body.prompt.trim().is_empty() || length > PROMPT_MAX_CHARS {
        return Err(Problem::wrong(format!("prompt has 1 to {PROMPT_MAX_CHARS} characters")));
    }
    if body.title.as_ref().is_some_and(|title| title.chars().count() > TITLE_MAX_CHARS) {
        return Err(Problem::wrong(format!("title has at most {TITLE_MAX_CHARS} characters")));
    }
    let id = match &body.key {
        Some(key) if is_dispatch_id(key) => key.clone(),
        Some(_) => {
            let wanted = "letters, digits, _ . : @ and single hyphens between them, at most 128";
            return Err(Problem::wrong(format!("key has {wanted}")));
        }
        None => {
            let random = host::random::bytes::<16>().map_err(|error| Problem::failed(&error))?;
            model::digest::hex(&random)
        }
    };
    let request = DispatchRequest {
        origin: format!("{} through the API", name_of(principal)),
        schedule: None,
        owner: owner.to_owned(),
        repo: repo.to_owned(),
        agent: body.agent.clone(),
        bottles: body.bottles.iter().map(|name| name.0.clone()).collect(),
        assignee: body.assignee.clone(),
        title: choose_title(body.title.as_deref(), &body.prompt),
        prompt: body.prompt.clone(),
    };
    Ok(Dispatch::new(id, request, host::clock::now()))
}

fn is_short_name(text: &str) -> bool {
    is_name(text) && text.len() <= NAME_MAX_BYTES
}

fn summary_of(dispatch: Dispatch) -> DispatchSummary {
    let Dispatch { id, request, created_at, state, issue_number, problem, .. } = dispatch;
    DispatchSummary {
        id,
        origin: request.origin,
        repo: format!("{}/{}", request.owner, request.repo),
        agent: request.agent,
        title: request.title,
        created_at,
        state: state.name(),
        issue: issue_number,
        problem,
    }
}
