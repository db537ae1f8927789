//! Bottles, and the actions on them.

use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, IntoResponses, ToSchema};

use super::super::action::{READ_ONLY, parse_action, submit};
use super::super::auth::Principal;
use super::super::facts::case::{BottleFacts, Case, load_bottle_facts, load_cases};
use super::super::facts::run::RunSummary;
use super::super::facts::timeline::{self, Moment};
use super::super::problem::{Problem, Refusals};
use super::super::{WebState, query};
use super::query::{NoQuery, PageParams, StrictJson, StrictPath, StrictQuery};

/// A page of bottles, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BottleList {
    bottles: Vec<Case>,
    /// The `after` of the next page; absent on the last one.
    next: Option<String>,
}

/// One bottle.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BottleDetail {
    #[serde(flatten)]
    case: Case,
    /// Its own branch.
    branch: String,
    /// The branch that it is based on.
    base_branch: String,
    /// The commit that was published last.
    published: Option<String>,
    /// Its runs, oldest first.
    run_summaries: Vec<RunSummary>,
    /// Its events, in order.
    timeline: Vec<Moment>,
}

/// Optional body of an action.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionBody {
    /// What the agent is to do; resuming needs it.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 20_000, pattern = r"\S", nullable = false)]
    prompt: String,
}

/// An action that is on disk.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Accepted {
    /// Its id in the list of deliveries.
    id: String,
    /// The action.
    event: &'static str,
}

/// Reasons why an action is refused.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is read by the macro that documents the API")]
pub(super) enum ActionRefusals {
    /// The bottle's status does not allow it
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(#[to_schema] Problem),
    /// The body is too long
    #[response(status = 413, content_type = "application/problem+json")]
    Large(#[to_schema] Problem),
    /// The body is not JSON
    #[response(status = 415, content_type = "application/problem+json")]
    Kind(#[to_schema] Problem),
    /// The inbox is full; send it again later
    #[response(status = 503, content_type = "application/problem+json")]
    Busy(#[to_schema] Problem),
}

/// A bottle's name, checked when the bottle is loaded.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct BottlePath {
    /// The bottle
    #[param(pattern = "^[a-z0-9][a-z0-9-]{0,63}$")]
    slug: String,
}

/// A bottle and an action.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ActionPath {
    /// The bottle
    #[param(pattern = "^[a-z0-9][a-z0-9-]{0,63}$")]
    slug: String,
    /// The action
    #[param(pattern = "^(freeze|resume|destroy)$")]
    action: String,
}

/// List bottles, by name
#[utoipa::path(get, operation_id = "list_bottles", path = "/bottles", tag = "bottles", params(PageParams),
    responses((status = 200, description = "Some bottles", body = BottleList), Refusals))]
pub(crate) async fn list(
    State(web): State<WebState>,
    StrictQuery(part): StrictQuery<PageParams>,
) -> Result<Json<BottleList>, Problem> {
    let mut cases = query(&web, load_cases).await?;
    cases.retain(|case| case.slug.is_some());
    cases.sort_by_cached_key(Case::cursor);
    let (bottles, next) = part.of(cases, Case::cursor)?;
    Ok(Json(BottleList { bottles, next }))
}

/// Show a bottle
#[utoipa::path(get, operation_id = "show_bottle", path = "/bottles/{slug}", tag = "bottles", params(BottlePath),
    responses((status = 200, description = "The bottle", body = BottleDetail), Refusals))]
pub(crate) async fn one(
    State(web): State<WebState>,
    StrictPath(BottlePath { slug }): StrictPath<BottlePath>,
    StrictQuery(NoQuery {}): StrictQuery<NoQuery>,
) -> Result<Json<BottleDetail>, Problem> {
    let detail = query(&web, move |web| {
        let BottleFacts { case, record, runs, events } = load_bottle_facts(web, &slug)?;
        Ok(BottleDetail {
            case,
            branch: record.branch.to_string(),
            base_branch: record.base_branch.to_string(),
            published: record.published.as_ref().map(ToString::to_string),
            run_summaries: runs.iter().map(|run| RunSummary::clone(run)).collect(),
            timeline: timeline::of_events(&events),
        })
    });
    Ok(Json(detail.await?))
}

/// Freeze, resume or destroy a bottle
///
/// Freezing ends the agent and keeps everything, resuming runs it again with a prompt, and destroying removes the bottle
/// and keeps the records of its runs.
#[utoipa::path(post, path = "/bottles/{slug}/{action}", tag = "bottles", params(ActionPath),
    request_body = Option<ActionBody>,
    responses((status = 202, description = "The action is on disk", body = Accepted), ActionRefusals, Refusals))]
pub(crate) async fn act(
    State(web): State<WebState>,
    Extension(principal): Extension<Principal>,
    StrictPath(path): StrictPath<ActionPath>,
    headers: HeaderMap,
    StrictQuery(NoQuery {}): StrictQuery<NoQuery>,
    request: Request,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    check_program(&web, &principal, &headers)?;
    let action = parse_action(&path.action)?;
    let StrictJson(ActionBody { prompt }) = StrictJson::from_request(request, &web).await?;
    let id = submit(&web, &path.slug, action, prompt, &principal).await?;
    Ok((StatusCode::ACCEPTED, Json(Accepted { id, event: action.name() })))
}

/// Refuses what a browser sends by itself, as it does with a cookie: only a program may use the API to act.
pub(super) fn check_program(
    web: &WebState,
    principal: &Principal,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let refused = |detail: &str| Err(Problem::new(StatusCode::FORBIDDEN, detail));
    match principal {
        Principal::Bearer => Ok(()),
        Principal::Reader => refused(READ_ONLY),
        Principal::Session { .. } => refused("send the admin token: Authorization: Bearer <token>"),
        Principal::User { .. } if web.auth.is_from_us(headers) => Ok(()),
        Principal::User { .. } => refused("this request comes from another page"),
    }
}
