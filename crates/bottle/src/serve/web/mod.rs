//! The page and the API of `bot-bottle serve`: all issues, bottles and runs, and the three actions of users. Nothing here
//! changes a bottle: an action is stored like a webhook, and the reconciler acts on it.

mod action;
mod api;
mod auth;
mod download;
mod facts;
mod health;
mod live;
mod metrics;
mod page;
mod problem;
mod rules;
#[cfg(test)]
mod tests;
mod worker;

pub(crate) use auth::check;
pub(crate) use facts::log::log_tail;
pub(crate) use worker::worker_router;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use web_base::asset;
use web_base::auth::Auth;
use web_base::header::add_security_headers;

use self::auth::{answer_for, check_host, open_auth, require_principal};
use self::facts::run::ClosedRuns;
use self::problem::Problem;
use crate::serve::Service;

/// Largest body of a request; the longest prompt fits, percent-encoded.
const BODY_MAX_BYTES: usize = 256 * 1024;
/// Longest time for receiving a form and storing its action.
const SEND_LIMIT: Duration = Duration::from_secs(10);
const STREAMS_MAX: usize = 64;
const DIFFS_MAX: usize = 4;

struct Web {
    service: Arc<Service>,
    auth: Auth,
    closed: ClosedRuns,
    streams: Arc<Semaphore>,
    diffs: Semaphore,
}

type WebState = Arc<Web>;

/// All routes but the webhooks.
pub(crate) fn router(service: Arc<Service>) -> Router {
    let auth = open_auth(&service.settings(), &service.home);
    let web = Arc::new(Web {
        service,
        auth,
        closed: ClosedRuns::default(),
        streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        diffs: Semaphore::new(DIFFS_MAX),
    });
    let inside = Router::new()
        .route("/", get(page::home::show))
        .route("/bottles/{slug}", get(page::bottle::show))
        .route("/bottles/{slug}/{action}", post(action::press))
        .route("/runs/{slug}/{run}", get(page::run::show))
        .route("/runs/{slug}/{run}/live", get(live::follow_log))
        .route("/runs/{slug}/{run}/log.txt", get(download::log_file))
        .route("/history", get(page::history::show))
        .route("/spending", get(page::spending::show))
        .route("/live", get(live::follow_work))
        .route("/service", get(page::service::show))
        .route("/logout", post(page::login::log_out))
        .route("/metrics", get(metrics::show))
        .merge(api::router())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(Arc::clone(&web), require_principal));
    let outside = Router::new()
        .route("/login", get(page::login::show).post(page::login::log_in))
        .route("/style.css", get(asset::style))
        .route("/live.js", get(asset::script))
        .route("/icon.svg", get(asset::icon));
    let health =
        Router::new().route("/healthz", get(health::lives)).route("/readyz", get(health::is_ready));
    inside
        .merge(outside)
        .layer(from_fn_with_state(Arc::clone(&web), check_host))
        .merge(health)
        .layer(DefaultBodyLimit::max(BODY_MAX_BYTES))
        .layer(from_fn(limit_time))
        .layer(from_fn(add_security_headers))
        .with_state(web)
}

/// Runs a query of the disk or the database on a thread where it may block.
async fn query<T: Send + 'static>(
    web: &WebState,
    read: impl FnOnce(&Web) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let web = Arc::clone(web);
    match tokio::task::spawn_blocking(move || read(&web)).await {
        Ok(answer) => answer,
        Err(error) => Err(Problem::failed(&error)),
    }
}

/// Limits the time of a request with a body: a slow sender would occupy a connection.
async fn limit_time(request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    match timeout(SEND_LIMIT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let detail = "the request took too long; send it again";
            Problem::new(StatusCode::REQUEST_TIMEOUT, detail).into_response()
        }
    }
}

async fn not_found(State(web): State<WebState>, request: Request) -> Response {
    let problem = Problem::missing("there is nothing at this address");
    answer_for(request.uri().path(), &web, problem)
}

async fn method_not_allowed(State(web): State<WebState>, request: Request) -> Response {
    let detail = format!("{} is not allowed here", request.method());
    let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail);
    answer_for(request.uri().path(), &web, problem)
}
