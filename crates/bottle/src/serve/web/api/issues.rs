//! Issues that are or were worked on.

use axum::Json;
use axum::extract::State;
use orchestrator_db::IssueKey;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::super::facts::case::{Case, load_cases, load_issue};
use super::super::facts::timeline::{self, Moment};
use super::super::problem::{Problem, Refusals};
use super::super::{Shared, ask};
use super::query::{Asked, Named, Nothing, Part};

/// Some issues, by repository and number.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IssueList {
    issues: Vec<Case>,
    /// Give it as `after` to get more; nothing when this is the end.
    next: Option<String>,
}

/// One issue.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IssueDetail {
    #[serde(flatten)]
    case: Case,
    /// What happened, in order.
    timeline: Vec<Moment>,
}

/// An issue.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct Key {
    /// The repository's owner
    #[param(min_length = 1, max_length = 200)]
    owner: String,
    /// The repository
    #[param(min_length = 1, max_length = 200)]
    repo: String,
    /// Its number
    #[param(value_type = u64, minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    number: String,
}

/// List issues that are or were worked on
#[utoipa::path(get, path = "/issues", tag = "issues", params(Part),
    responses((status = 200, description = "Some issues", body = IssueList), Refusals))]
pub(crate) async fn list(
    State(web): State<Shared>,
    Asked(part): Asked<Part>,
) -> Result<Json<IssueList>, Problem> {
    let mut cases = ask(&web, load_cases).await?;
    cases.retain(|case| case.orchestrated);
    cases.sort_by_cached_key(cursor);
    let (issues, next) = part.of(cases, cursor)?;
    Ok(Json(IssueList { issues, next }))
}

fn cursor(case: &Case) -> String {
    case.issue.as_ref().map(super::super::facts::case::IssueFacts::cursor).unwrap_or_default()
}

/// Show the work on an issue
#[utoipa::path(get, path = "/issues/{owner}/{repo}/{number}", tag = "issues", params(Key),
    responses((status = 200, description = "The work on it", body = IssueDetail), Refusals))]
pub(crate) async fn one(
    State(web): State<Shared>,
    Named(key): Named<Key>,
    Asked(Nothing {}): Asked<Nothing>,
) -> Result<Json<IssueDetail>, Problem> {
    let number = key.number.parse::<u64>().ok().filter(|number| (1..=1 << 53).contains(number));
    let number = number.ok_or_else(|| Problem::wrong("an issue's number is a number from 1"))?;
    let key = IssueKey { owner: key.owner, repo: key.repo, issue_number: number };
    let detail = ask(&web, move |web| {
        let case = load_issue(web, &key)?;
        let events = web.service.store.work_events(&key)?;
        Ok(IssueDetail { case, timeline: timeline::of_events(&events) })
    });
    Ok(Json(detail.await?))
}
