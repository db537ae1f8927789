//! Bottles, and what can be asked for them.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, IntoResponses, ToSchema};

use super::super::door::Visitor;
use super::super::facts::case::{Case, load_bottle, load_cases};
use super::super::facts::run::RunFacts;
use super::super::facts::timeline::{self, Moment};
use super::super::problem::{Problem, Refusals};
use super::super::rules::wish::Wish;
use super::super::wish::{READ_ONLY, keep};
use super::super::{Shared, ask};
use super::query::{Asked, Named, Nothing, Part, Sent};

/// Some bottles, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BottleList {
    bottles: Vec<Case>,
    /// Give it as `after` to get more; nothing when this is the end.
    next: Option<String>,
}

/// One bottle.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BottleDetail {
    #[serde(flatten)]
    case: Case,
    /// Its own branch.
    branch: String,
    /// The branch that it is for.
    base_branch: String,
    /// What was published last.
    published: Option<String>,
    /// Its runs, oldest first.
    run_facts: Vec<RunFacts>,
    /// What happened, in order.
    timeline: Vec<Moment>,
}

/// Words for an agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resume {
    /// What is to be done.
    #[schema(min_length = 1, max_length = 20_000, pattern = r"\S")]
    prompt: String,
}

/// A wish that is kept.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Accepted {
    /// The wish, as it is listed among the deliveries.
    id: String,
    /// What was wished for.
    event: &'static str,
}

/// Why a wish is not kept.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is read by the macro that documents the API")]
enum WishRefusals {
    /// It makes no sense for this bottle now
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(#[to_schema] Problem),
    /// It is too long
    #[response(status = 413, content_type = "application/problem+json")]
    Large(#[to_schema] Problem),
    /// It is no JSON
    #[response(status = 415, content_type = "application/problem+json")]
    Kind(#[to_schema] Problem),
    /// Too much came at once; send it again later
    #[response(status = 503, content_type = "application/problem+json")]
    Busy(#[to_schema] Problem),
}

/// A bottle's name, checked when it is looked for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct Name {
    /// The bottle
    #[param(pattern = "^[a-z0-9][a-z0-9-]{0,63}$")]
    slug: String,
}

/// List bottles, by name
#[utoipa::path(get, path = "/bottles", tag = "bottles", params(Part),
    responses((status = 200, description = "Some bottles", body = BottleList), Refusals))]
pub(crate) async fn list(
    State(web): State<Shared>,
    Asked(part): Asked<Part>,
) -> Result<Json<BottleList>, Problem> {
    let mut cases = ask(&web, load_cases).await?;
    cases.retain(|case| case.slug.is_some());
    cases.sort_by_cached_key(Case::cursor);
    let (bottles, next) = part.of(cases, Case::cursor)?;
    Ok(Json(BottleList { bottles, next }))
}

/// Show a bottle
#[utoipa::path(get, path = "/bottles/{slug}", tag = "bottles", params(Name),
    responses((status = 200, description = "The bottle", body = BottleDetail), Refusals))]
pub(crate) async fn one(
    State(web): State<Shared>,
    Named(Name { slug }): Named<Name>,
    Asked(Nothing {}): Asked<Nothing>,
) -> Result<Json<BottleDetail>, Problem> {
    let detail = ask(&web, move |web| {
        let (case, bottle, record) = load_bottle(web, &slug)?;
        let events = match case.issue.as_ref().filter(|_| case.orchestrated) {
            Some(issue) => web.service.store.work_events(&issue.key())?,
            None => Vec::new(),
        };
        let runs = web.closed.of_bottle(&bottle, &record);
        Ok(BottleDetail {
            case,
            branch: record.branch.to_string(),
            base_branch: record.base_branch.to_string(),
            published: record.published.as_ref().map(ToString::to_string),
            run_facts: runs.iter().map(|run| RunFacts::clone(run)).collect(),
            timeline: timeline::of_events(&events),
        })
    });
    Ok(Json(detail.await?))
}

/// End a bottle's agent and keep everything
#[utoipa::path(post, path = "/bottles/{slug}/freeze", tag = "bottles", params(Name),
    responses((status = 202, description = "It is on disk", body = Accepted), WishRefusals, Refusals))]
pub(crate) async fn freeze(
    State(web): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Named(name): Named<Name>,
    headers: HeaderMap,
    Asked(Nothing {}): Asked<Nothing>,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    accept(&web, &visitor, &headers, name, Wish::Freeze).await
}

/// Go on with a bottle
#[utoipa::path(post, path = "/bottles/{slug}/resume", tag = "bottles", params(Name),
    request_body = Resume,
    responses((status = 202, description = "It is on disk", body = Accepted), WishRefusals, Refusals))]
pub(crate) async fn resume(
    State(web): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Named(name): Named<Name>,
    headers: HeaderMap,
    Asked(Nothing {}): Asked<Nothing>,
    Sent(Resume { prompt }): Sent<Resume>,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    accept(&web, &visitor, &headers, name, Wish::Resume { prompt }).await
}

/// Remove a bottle; the records of its runs stay
#[utoipa::path(post, path = "/bottles/{slug}/destroy", tag = "bottles", params(Name),
    responses((status = 202, description = "It is on disk", body = Accepted), WishRefusals, Refusals))]
pub(crate) async fn destroy(
    State(web): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Named(name): Named<Name>,
    headers: HeaderMap,
    Asked(Nothing {}): Asked<Nothing>,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    accept(&web, &visitor, &headers, name, Wish::Destroy).await
}

async fn accept(
    web: &Shared,
    visitor: &Visitor,
    headers: &HeaderMap,
    Name { slug }: Name,
    wish: Wish,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    check_program(web, visitor, headers)?;
    let event = wish.event();
    let id = keep(web, &slug, wish, visitor).await?;
    Ok((StatusCode::ACCEPTED, Json(Accepted { id, event })))
}

/// What a browser sends by itself, as it does with a cookie, is no wish of a program.
fn check_program(web: &Shared, visitor: &Visitor, headers: &HeaderMap) -> Result<(), Problem> {
    let refused = |words: &str| Err(Problem::new(StatusCode::FORBIDDEN, words));
    match visitor {
        Visitor::Bearer => Ok(()),
        Visitor::Reader => refused(READ_ONLY),
        Visitor::Session { .. } => refused("send the admin token: Authorization: Bearer <token>"),
        Visitor::User { .. } if web.door.is_from_us(headers) => Ok(()),
        Visitor::User { .. } => refused("this came from another page"),
    }
}
