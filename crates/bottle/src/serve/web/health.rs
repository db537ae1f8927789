//! Liveness and readiness. The endpoints are public, and their responses reveal nothing about the machine.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Serialize;

use super::problem::Problem;
use super::{Web, WebState, query};

/// Smallest free space that is enough to record a run.
const ROOM_MIN_BYTES: u64 = 256 << 20;

#[derive(Debug, Serialize)]
struct Readiness {
    database: &'static str,
    disk: &'static str,
}

pub(crate) async fn lives() -> &'static str {
    "ok\n"
}

/// Readiness: the database responds and the disk has free space.
pub(crate) async fn is_ready(State(web): State<WebState>) -> Result<impl IntoResponse, Problem> {
    let found = query(&web, |web| Ok(check_readiness(web))).await?;
    let ready = found.database == "ok" && found.disk == "ok";
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok((status, Json(found)))
}

fn check_readiness(web: &Web) -> Readiness {
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
    Readiness { database, disk }
}

/// Free space where bottles are stored.
pub(crate) fn free_bytes(web: &Web) -> Option<u64> {
    host::file::free_space(web.service.home.database.parent()?).ok()
}
