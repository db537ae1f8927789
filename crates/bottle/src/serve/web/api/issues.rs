//! Issues with a work item.

use axum::Json;
use axum::extract::State;
use orchestrator_db::IssueKey;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::super::facts::case::{Case, load_cases, load_issue};
use super::super::facts::timeline::{self, Moment};
use super::super::problem::{Problem, Refusals};
use super::super::{WebState, query};
use super::query::{NoQuery, PageParams, StrictPath, StrictQuery};

/// A page of issues, by repository and number.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IssueList {
    issues: Vec<Case>,
    /// The `after` of the next page; absent on the last one.
    next: Option<String>,
}

/// One issue.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IssueDetail {
    #[serde(flatten)]
    case: Case,
    /// Its events, in order.
    timeline: Vec<Moment>,
}

/// An issue.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct IssuePath {
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

/// List issues with a work item
#[utoipa::path(get, operation_id = "list_issues", path = "/issues", tag = "issues", params(PageParams),
    responses((status = 200, description = "Some issues", body = IssueList), Refusals))]
pub(crate) async fn list(
    State(web): State<WebState>,
    StrictQuery(part): StrictQuery<PageParams>,
) -> Result<Json<IssueList>, Problem> {
    let mut cases = query(&web, load_cases).await?;
    cases.retain(|case| case.orchestrated);
    cases.sort_by_cached_key(cursor);
    let (issues, next) = part.of(cases, cursor)?;
    Ok(Json(IssueList { issues, next }))
}

fn cursor(case: &Case) -> String {
    case.issue.as_ref().map(super::super::facts::case::IssueSummary::cursor).unwrap_or_default()
}

/// Show the work on an issue
#[utoipa::path(get, operation_id = "show_issue", path = "/issues/{owner}/{repo}/{number}", tag = "issues", params(IssuePath),
    responses((status = 200, description = "The work on it", body = IssueDetail), Refusals))]
pub(crate) async fn one(
    State(web): State<WebState>,
    StrictPath(key): StrictPath<IssuePath>,
    StrictQuery(NoQuery {}): StrictQuery<NoQuery>,
) -> Result<Json<IssueDetail>, Problem> {
    let number = key.number.parse::<u64>().ok().filter(|number| (1..=1 << 53).contains(number));
    let number = number.ok_or_else(|| Problem::wrong("the number of an issue is at least 1"))?;
    let key = IssueKey { owner: key.owner, repo: key.repo, issue_number: number };
    let detail = query(&web, move |web| {
        let case = load_issue(web, &key)?;
        let events = web.service.store.work_events(&key)?;
        Ok(IssueDetail { case, timeline: timeline::of_events(&events) })
    });
    Ok(Json(detail.await?))
}
