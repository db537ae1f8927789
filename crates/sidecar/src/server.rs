//! The socket: connections, requests and bodies, each with a limit, so that an agent can hurt nobody but itself.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::desk::Desk;
use crate::mcp;
use crate::rpc::{Message, Request as Call, parse_message, render_answer};

/// After a failed accept (no descriptors left), as the listener would stay ready and keep us spinning.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// For what is under way when the sidecar stops.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);
const HEAD_MAX_BYTES: usize = 16 * 1024;

/// Why the sidecar cannot serve.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The socket is none.
    #[error("the sidecar's socket cannot be served")]
    Listen(#[source] io::Error),
}

/// Serves a socket until `stop` is ready. What is under way then is finished first, within ten seconds.
pub async fn serve(
    listener: std::os::unix::net::UnixListener,
    desk: Arc<Desk>,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    listener.set_nonblocking(true).map_err(ServeError::Listen)?;
    let listener = UnixListener::from_std(listener).map_err(ServeError::Listen)?;
    let router = router(&desk);
    let mut connections = JoinSet::new();
    tokio::select! {
        never = accept(&listener, &desk, &router, &mut connections) => match never {},
        () = stop => {}
    }
    desk.settle(SETTLE_LIMIT).await;
    connections.shutdown().await;
    Ok(())
}

async fn accept(
    listener: &UnixListener,
    desk: &Arc<Desk>,
    router: &Router,
    connections: &mut JoinSet<()>,
) -> Infallible {
    let places = Arc::new(Semaphore::new(desk.limits().connections_max));
    loop {
        // Nobody is let in while the house is full; they wait in the listener's queue.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { continue };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let (router, limit) = (router.clone(), desk.limits().request_timeout);
        connections.spawn(async move {
            converse(stream, router, limit).await;
            drop(place);
        });
    }
}

/// An error means that the client went away or sent something that is no HTTP: either ends the connection.
async fn converse(stream: UnixStream, router: Router, limit: Duration) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(limit).max_buf_size(HEAD_MAX_BYTES);
    let service = TowerToHyperService::new(router);
    server.serve_connection(TokioIo::new(stream), service).await.ok();
}

fn router(desk: &Arc<Desk>) -> Router {
    Router::new()
        .route("/", post(answer_rpc))
        .with_state(Arc::clone(desk))
        .nest_service("/mcp", mcp::service(desk))
        .layer(from_fn_with_state(Arc::clone(desk), cap_body))
}

/// Reads the whole body within its limits of size and time, before anybody looks at it.
async fn cap_body(State(desk): State<Arc<Desk>>, request: Request, next: Next) -> Response {
    let limits = desk.limits();
    let (mut head, body) = request.into_parts();
    let length = head.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let length = length.and_then(|text| text.parse::<usize>().ok());
    if length.is_some_and(|length| length > limits.body_max_bytes) {
        return too_large(&desk);
    }
    match timeout(limits.request_timeout, to_bytes(body, limits.body_max_bytes)).await {
        Ok(Ok(bytes)) => {
            let text = Bytes::from(String::from_utf8_lossy(&bytes).into_owned());
            head.headers.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
            next.run(Request::from_parts(head, Body::from(text))).await
        }
        Ok(Err(_)) => too_large(&desk),
        Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
    }
}

fn too_large(desk: &Desk) -> Response {
    let why = format!("more than {} bytes", desk.limits().body_max_bytes);
    match desk.note_refusal("request", &why) {
        Ok(()) => {
            // What is left of the body is not read, so the connection cannot go on.
            let close = [(CONNECTION, HeaderValue::from_static("close"))];
            (StatusCode::PAYLOAD_TOO_LARGE, close, why).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn answer_rpc(State(desk): State<Arc<Desk>>, body: Bytes) -> Response {
    let answer = match parse_message(&body) {
        Message::Garbled(answer) => {
            // Without its line in the record there is no answer.
            if desk.note_refusal("request", "it is no call").is_err() {
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
            Some(answer)
        }
        Message::One(call) => answer_one(&desk, call).await,
        Message::Batch(calls) => {
            let mut answers = Vec::new();
            for call in calls {
                answers.extend(answer_one(&desk, call).await);
            }
            (!answers.is_empty()).then_some(Value::Array(answers))
        }
    };
    match answer {
        Some(answer) => {
            let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
            (json, answer.to_string()).into_response()
        }
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

async fn answer_one(desk: &Arc<Desk>, call: Result<Call, Value>) -> Option<Value> {
    match call {
        Ok(Call { method, params, id }) => render_answer(id, desk.call(&method, params).await),
        Err(answer) => {
            desk.note_refusal("request", "it is no call").ok()?;
            Some(answer)
        }
    }
}
