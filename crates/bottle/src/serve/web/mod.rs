//! The page and the API of `bot-bottle serve`: what is going on, for people and for programs, and the three things that
//! they can ask for. Nothing here acts on a bottle: a wish is kept like a webhook, and the keeper acts on it.

mod api;
mod asset;
mod door;
mod facts;
mod health;
mod live;
mod metrics;
mod page;
mod problem;
mod rules;
mod session;
#[cfg(test)]
mod tests;
mod wish;

pub(crate) use door::check;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use self::door::{Door, admit, answer_for, check_host};
use self::facts::run::ClosedRuns;
use self::problem::Problem;
use crate::serve::Service;

/// No form and no question is larger; a prompt of the longest kind fits, percent-encoded.
const BODY_MAX_BYTES: usize = 256 * 1024;
/// A form must be here by then, and what it asks for on disk.
const SEND_LIMIT: Duration = Duration::from_secs(10);
/// So many logs are followed at the same time.
const STREAMS_MAX: usize = 64;
/// So many patches are made at the same time.
const DIFFS_MAX: usize = 4;

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// What every answer here needs.
struct Web {
    service: Arc<Service>,
    door: Door,
    closed: ClosedRuns,
    streams: Arc<Semaphore>,
    diffs: Semaphore,
}

type Shared = Arc<Web>;

/// Everything but the webhooks.
pub(crate) fn router(service: Arc<Service>) -> Router {
    let door = Door::new(&service.settings);
    let web = Arc::new(Web {
        service,
        door,
        closed: ClosedRuns::default(),
        streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        diffs: Semaphore::new(DIFFS_MAX),
    });
    let inside = Router::new()
        .route("/", get(page::home::show))
        .route("/bottles/{slug}", get(page::bottle::show))
        .route("/bottles/{slug}/{wish}", post(wish::press))
        .route("/runs/{slug}/{run}", get(page::run::show))
        .route("/runs/{slug}/{run}/live", get(live::follow_log))
        .route("/live", get(live::follow_work))
        .route("/logout", post(page::login::log_out))
        .route("/metrics", get(metrics::show))
        .merge(api::router())
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_that_way)
        .layer(from_fn_with_state(Arc::clone(&web), admit));
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
        .layer(from_fn(hurry))
        .layer(from_fn(harden))
        .with_state(web)
}

/// Asks something of the disk or the database, away from the threads that answer.
async fn ask<T: Send + 'static>(
    web: &Shared,
    question: impl FnOnce(&Web) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let web = Arc::clone(web);
    match tokio::task::spawn_blocking(move || question(&web)).await {
        Ok(answer) => answer,
        Err(error) => Err(Problem::failed(&error)),
    }
}

/// Whoever sends something sends it now: a body that trickles in would keep a place from others.
async fn hurry(request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    match timeout(SEND_LIMIT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let words = "it took too long to send this; send it again";
            Problem::new(StatusCode::REQUEST_TIMEOUT, words).into_response()
        }
    }
}

/// Every answer tells the browser what it must not do with it.
async fn harden(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let fixed = |value| HeaderValue::from_static(value);
    headers.insert(CONTENT_SECURITY_POLICY, fixed(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, fixed("nosniff"));
    headers.insert(REFERRER_POLICY, fixed("no-referrer"));
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(HeaderName::from_static(name), fixed("same-origin"));
    }
    headers.entry(CACHE_CONTROL).or_insert(fixed("no-store"));
    response
}

async fn nothing_here(State(web): State<Shared>, request: Request) -> Response {
    let problem = Problem::missing("there is nothing at this address");
    answer_for(request.uri().path(), &web, problem)
}

async fn not_that_way(State(web): State<Shared>, request: Request) -> Response {
    let words = format!("{} is not for this address", request.method());
    let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, words);
    answer_for(request.uri().path(), &web, problem)
}
