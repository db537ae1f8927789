//! Whether this process lives, and whether it can do its work. Anybody may ask; the answers name nothing of the machine.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Serialize;

use super::problem::Problem;
use super::{Shared, Web, ask};

/// With less than this, a run could not be recorded.
const ROOM_MIN_BYTES: u64 = 256 << 20;

/// What was looked at.
#[derive(Debug, Serialize)]
struct Readiness {
    database: &'static str,
    disk: &'static str,
}

/// The process answers.
pub(crate) async fn lives() -> &'static str {
    "ok\n"
}

/// The database answers and the disk has room.
pub(crate) async fn is_ready(State(web): State<Shared>) -> Result<impl IntoResponse, Problem> {
    let found = ask(&web, |web| Ok(look(web))).await?;
    let ready = found.database == "ok" && found.disk == "ok";
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok((status, Json(found)))
}

fn look(web: &Web) -> Readiness {
    let database = match web.service.store.events_since(0, 1) {
        Ok(_) => "ok",
        Err(error) => {
            tracing::error!(error = %model::error_chain(&error), "not ready");
            "it does not answer"
        }
    };
    let disk = match free_bytes(web) {
        Some(free) if free >= ROOM_MIN_BYTES => "ok",
        Some(_) => "less than 256 MiB are free",
        None => "it does not answer",
    };
    Readiness { database, disk }
}

/// The room where bottles are kept.
pub(crate) fn free_bytes(web: &Web) -> Option<u64> {
    let database = web.service.home.database();
    host::file::free_space(database.parent()?).ok()
}
