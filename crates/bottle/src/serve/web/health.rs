//! Liveness and readiness. The endpoints are public, and their responses reveal nothing about the machine.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::json;

use super::problem::Problem;
use super::{Web, WebState, query};

/// Smallest free space that is enough to record a run.
const ROOM_MIN_BYTES: u64 = 256 << 20;

pub(crate) async fn lives() -> &'static str {
    "ok\n"
}

/// Readiness: the database responds and the disk has free space; and whether the forges answer.
pub(crate) async fn is_ready(State(web): State<WebState>) -> Result<impl IntoResponse, Problem> {
    let (database, disk) = query(&web, |web| Ok(check_readiness(web))).await?;
    let ready = database == "ok" && disk == "ok";
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    // The page says which and why. A restart would not help, so it does not count as not ready.
    let repositories = match web.service.vitals.problems().len() {
        0 => "ok".to_owned(),
        count => format!("{count} of {} cannot be read", web.service.repos().all().count()),
    };
    let body = json!({ "database": database, "disk": disk, "repositories": repositories });
    Ok((status, Json(body)))
}

/// States of the database and the disk.
fn check_readiness(web: &Web) -> (&'static str, &'static str) {
    let database = match web.service.store.events_since(0, 1) {
        Ok(_) => "ok",
        Err(error) => {
            tracing::error!(error = %model::error_chain(&error), "not ready");
            "no response"
        }
    };
    let disk = match free_bytes(web) {
        Some(free) if free >= ROOM_MIN_BYTES => "ok",
        Some(_) => "less than 256 MiB are free",
        None => "no response",
    };
    (database, disk)
}

/// Free space where bottles are stored.
pub(crate) fn free_bytes(web: &Web) -> Option<u64> {
    host::file::free_space(web.service.home.database.parent()?).ok()
}
