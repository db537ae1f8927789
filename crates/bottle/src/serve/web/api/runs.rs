//! Runs: their results, logs, provenance and operations.

use attest::bundle::Bundle;
use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::super::facts::log::{LogSlice, SliceEnd, read_slice};
use super::super::facts::run::{FoundRun, RunSummary};
use super::super::facts::timeline::{self, Moment};
use super::super::problem::{Problem, Refusals};
use super::super::{WebState, query};
use super::query::{NoQuery, PageParams, StrictPath, StrictQuery};
use crate::exit::OrGeneral;
use crate::flow::attestation::{load_bundle, load_operations, load_provenance};
use crate::flow::bottle::Bottle;
use crate::flow::verification::verify;
use crate::rules::verification::VerificationCheck;

/// Largest slice of a log in one response.
const LOG_MAX_BYTES: usize = 1 << 20;
const LOG_BYTES: usize = 64 << 10;

/// A page of runs, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunList {
    runs: Vec<RunSummary>,
    /// The `after` of the next page; absent on the last one.
    next: Option<String>,
}

/// One run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunDetail {
    #[serde(flatten)]
    run: RunSummary,
    /// Its events, in order.
    timeline: Vec<Moment>,
    /// The commits that came out of it, newest first.
    new_commits: Vec<CommitSummary>,
    /// The agent's last answer, which is a claim.
    answer: Option<String>,
    /// Lifetime of the box in milliseconds.
    wall_ms: Option<u64>,
    /// Tokens that the model read, cached ones included.
    input_tokens: Option<u64>,
    /// Tokens that the model wrote.
    output_tokens: Option<u64>,
    /// Tool calls, as the agent claims.
    tool_calls: Option<usize>,
}

/// A commit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CommitSummary {
    sha: String,
    subject: String,
}

/// Result of verifying the statements about a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Verification {
    /// The run that the statements name.
    run: String,
    /// The key of the signature.
    keyid: Option<String>,
    /// Whether the signature holds and nothing that could be checked failed.
    verified: bool,
    /// Each check.
    checks: Vec<CheckSummary>,
}

/// One check of the statements.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckSummary {
    /// Its name.
    name: String,
    /// Its result: passed, failed or not checked.
    outcome: String,
    /// The reason.
    message: String,
}

/// The operation log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Operations {
    /// Its lines, in order.
    #[schema(value_type = Vec<Object>)]
    operations: Vec<Value>,
}

/// Position in a log.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogParams {
    /// How many bytes
    #[param(minimum = 4, maximum = 1_048_576, default = 65_536)]
    limit: Option<usize>,
    /// From which byte on
    #[param(minimum = 0, maximum = 9_007_199_254_740_991_u64, default = 0)]
    after: Option<u64>,
}

/// A bottle and a run, checked when they are loaded.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct RunPath {
    /// The bottle
    #[param(pattern = "^[a-z0-9][a-z0-9-]{0,63}$")]
    slug: String,
    /// The run
    #[param(
        pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*_[0-9]{8}_[0-9]{6}(-[0-9]+)?$",
        max_length = 100
    )]
    run: String,
}

/// List runs, newest first
#[utoipa::path(get, operation_id = "list_runs", path = "/runs", tag = "runs", params(PageParams),
    responses((status = 200, description = "Some runs", body = RunList), Refusals))]
pub(crate) async fn list(
    State(web): State<WebState>,
    StrictQuery(part): StrictQuery<PageParams>,
) -> Result<Json<RunList>, Problem> {
    let runs = query(&web, |web| {
        let mut runs = Vec::new();
        for (bottle, record) in Bottle::all(&web.service.home)?.into_iter().flat_map(|it| it.1) {
            runs.extend(web.closed.of_bottle(&bottle, &record));
        }
        runs.sort_by_cached_key(|run| cursor(run));
        Ok(runs)
    });
    let (runs, next) = part.of(runs.await?, |run| cursor(run))?;
    let runs = runs.iter().map(|run| RunSummary::clone(run)).collect();
    Ok(Json(RunList { runs, next }))
}

/// Texts in this order are runs with the newest first.
fn cursor(run: &RunSummary) -> String {
    let until_the_end = i64::MAX - run.started_at.as_microsecond();
    format!("{until_the_end:019}/{}/{}", run.slug, run.run)
}

/// Show a run
#[utoipa::path(get, operation_id = "show_run", path = "/runs/{slug}/{run}", tag = "runs", params(RunPath),
    responses((status = 200, description = "The run", body = RunDetail), Refusals))]
pub(crate) async fn one(
    State(web): State<WebState>,
    StrictPath(names): StrictPath<RunPath>,
    StrictQuery(NoQuery {}): StrictQuery<NoQuery>,
) -> Result<Json<RunDetail>, Problem> {
    let found = find(&web, names).await?;
    Ok(Json(detail_of(&found)))
}

fn detail_of(found: &FoundRun) -> RunDetail {
    let meta = &found.meta;
    let commits = meta.evidence.iter().flat_map(|evidence| &evidence.new_commits);
    let record = meta.agent_box.as_ref();
    let usage = record.and_then(|record| record.egress.as_ref()).map(|report| &report.usage);
    let usage = usage.filter(|usage| usage.requests > 0);
    let result = meta.agent_result.as_ref();
    RunDetail {
        run: found.facts(),
        timeline: timeline::of_run(meta),
        new_commits: commits
            .map(|commit| CommitSummary {
                sha: commit.sha.to_string(),
                subject: commit.subject.clone(),
            })
            .collect(),
        answer: result.and_then(|result| result.answer.clone()),
        wall_ms: record.map(|record| record.wall_ms),
        input_tokens: usage
            .map(|usage| usage.input + usage.cache_read + usage.cache_write)
            .or_else(|| result.map(|result| result.input_tokens)),
        output_tokens: usage
            .map(|usage| usage.output)
            .or_else(|| result.map(|it| it.output_tokens)),
        tool_calls: result.map(|result| result.tool_calls),
    }
}

/// Read the log of a run's box
#[utoipa::path(get, path = "/runs/{slug}/{run}/log", tag = "runs", params(RunPath, LogParams),
    responses((status = 200, description = "A piece of it", body = LogSlice), Refusals))]
pub(crate) async fn log(
    State(web): State<WebState>,
    StrictPath(names): StrictPath<RunPath>,
    StrictQuery(part): StrictQuery<LogParams>,
) -> Result<Json<LogSlice>, Problem> {
    let limit @ 4..=LOG_MAX_BYTES = part.limit.unwrap_or(LOG_BYTES) else {
        return Err(Problem::wrong(format!("limit must be from 4 to {LOG_MAX_BYTES}")));
    };
    let after = part.after.unwrap_or_default();
    if after > 9_007_199_254_740_991 {
        return Err(Problem::wrong("after is too large"));
    }
    let found = find(&web, names).await?;
    let path = found.log()?;
    let piece =
        query(&web, move |_| Ok(read_slice(&path, after, limit, SliceEnd::Anywhere).or_general()?));
    Ok(Json(piece.await?))
}

/// Show the provenance of a run
#[utoipa::path(get, path = "/runs/{slug}/{run}/provenance", tag = "runs", params(RunPath),
    responses((status = 200, description = "The document", body = Object), Refusals))]
pub(crate) async fn provenance(
    State(web): State<WebState>,
    StrictPath(names): StrictPath<RunPath>,
    StrictQuery(NoQuery {}): StrictQuery<NoQuery>,
) -> Result<impl IntoResponse, Problem> {
    let found = find(&web, names).await?;
    let document =
        query(&web, move |web| Ok(load_provenance(&web.service.home, &found.dir, &found.meta)?))
            .await?;
    Ok(super::json(serde_json::to_string_pretty(&document).unwrap_or_default()))
}

/// Show the signed statements of a run: a list of DSSE envelopes, to be verified without this server
#[utoipa::path(get, path = "/runs/{slug}/{run}/statements", tag = "runs", params(RunPath),
    responses((status = 200, description = "The envelopes", body = Object), Refusals))]
pub(crate) async fn statements(
    State(web): State<WebState>,
    StrictPath(names): StrictPath<RunPath>,
    StrictQuery(NoQuery {}): StrictQuery<NoQuery>,
) -> Result<impl IntoResponse, Problem> {
    let found = find(&web, names).await?;
    let bundle = query(&web, move |_| load_statements(&found));
    Ok(super::json(serde_json::to_string_pretty(&bundle.await?).unwrap_or_default()))
}

/// Verify the signed statements of a run with the keys of this home
#[utoipa::path(get, path = "/runs/{slug}/{run}/verification", tag = "runs", params(RunPath),
    responses((status = 200, description = "What was checked", body = Verification), Refusals))]
pub(crate) async fn verification(
    State(web): State<WebState>,
    StrictPath(names): StrictPath<RunPath>,
    StrictQuery(NoQuery {}): StrictQuery<NoQuery>,
) -> Result<Json<Verification>, Problem> {
    let found = find(&web, names).await?;
    let report = query(&web, move |web| {
        load_statements(&found)?;
        // By its folder: runs of two bottles may have the same name.
        Ok(verify(&web.service.home, &found.dir.path().to_string_lossy(), None)?)
    });
    let report = report.await?;
    let check = |check: &VerificationCheck| CheckSummary {
        name: check.name.to_owned(),
        outcome: check.outcome.word().to_owned(),
        message: check.words.clone(),
    };
    Ok(Json(Verification {
        verified: report.is_verified(),
        checks: report.checks.iter().map(check).collect(),
        run: report.run,
        keyid: report.keyid,
    }))
}

/// Show the operation log of a run
#[utoipa::path(get, path = "/runs/{slug}/{run}/operations", tag = "runs", params(RunPath),
    responses((status = 200, description = "Its lines", body = Operations), Refusals))]
pub(crate) async fn operations(
    State(web): State<WebState>,
    StrictPath(names): StrictPath<RunPath>,
    StrictQuery(NoQuery {}): StrictQuery<NoQuery>,
) -> Result<Json<Operations>, Problem> {
    let found = find(&web, names).await?;
    let operations = query(&web, move |_| Ok(load_operations(&found.dir)?)).await?;
    Ok(Json(Operations { operations }))
}

fn load_statements(found: &FoundRun) -> Result<Bundle, Problem> {
    let none = || Problem::missing("there are no statements about this run yet");
    load_bundle(&found.dir)?.ok_or_else(none)
}

async fn find(web: &WebState, names: RunPath) -> Result<FoundRun, Problem> {
    let open = move |web: &super::super::Web| {
        Ok(FoundRun::open(&web.service.home, &names.slug, &names.run)?)
    };
    query(web, open).await
}
