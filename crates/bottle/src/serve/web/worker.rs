//! Health and metrics of a worker, for this machine alone.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;

use super::health;
use super::metrics::{TEXT_FORMAT, render_worker};
use super::problem::Problem;
use crate::serve::Service;

/// Routes of a worker.
pub(crate) fn worker_router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/healthz", get(health::lives))
        .route("/metrics", get(show_metrics))
        .with_state(service)
}

async fn show_metrics(State(service): State<Arc<Service>>) -> Result<impl IntoResponse, Problem> {
    match tokio::task::spawn_blocking(move || render_worker(&service)).await {
        Ok(text) => text.map(|text| (TEXT_FORMAT, text)),
        Err(error) => Err(Problem::failed(&error)),
    }
}
