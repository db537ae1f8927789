//! Socket of the sidecar: connections, requests and bodies, each with a limit.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use model::escape::escape_line;
use serde_json::Value;
use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::dispatcher::Dispatcher;
use crate::mcp;
use crate::rpc::{RpcMessage, RpcRequest, parse_message, render_response};

/// After a failed accept (no descriptors left), as the listener would stay ready and keep us spinning.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// Time for calls that are in flight when the sidecar stops.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);
const HEAD_MAX_BYTES: usize = 16 * 1024;
const MCP_PATH: &str = "/mcp";
/// As much of a path as a record needs.
const PATH_MAX: usize = 64;

#[derive(Debug, Error)]
#[error("the sidecar's socket cannot be served")]
pub struct ServeError(#[from] io::Error);

/// Serves a socket until `stop` is ready. Calls that are in flight then are finished first, within ten seconds.
pub async fn serve(
    listener: std::os::unix::net::UnixListener,
    dispatcher: Arc<Dispatcher>,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let router = router(&dispatcher);
    let mut connections = JoinSet::new();
    tokio::select! {
        never = accept(&listener, &dispatcher, &router, &mut connections) => match never {},
        () = stop => {}
    }
    dispatcher.drain(DRAIN_LIMIT).await;
    connections.shutdown().await;
    Ok(())
}

async fn accept(
    listener: &UnixListener,
    dispatcher: &Arc<Dispatcher>,
    router: &Router,
    connections: &mut JoinSet<()>,
) -> Infallible {
    let slots = Arc::new(Semaphore::new(dispatcher.limits().connections_max));
    loop {
        // More connections than the limit wait in the listener's queue.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { continue };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let (router, limit) = (router.clone(), dispatcher.limits().request_timeout);
        connections.spawn(async move {
            converse(stream, router, limit).await;
            drop(slot);
        });
    }
}

/// An error means that the client went away or sent something that is not HTTP: either ends the connection.
async fn converse(stream: UnixStream, router: Router, limit: Duration) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(limit).max_buf_size(HEAD_MAX_BYTES);
    let service = TowerToHyperService::new(router);
    server.serve_connection(TokioIo::new(stream), service).await.ok();
}

fn router(dispatcher: &Arc<Dispatcher>) -> Router {
    Router::new()
        .route("/", post(answer_rpc))
        .with_state(Arc::clone(dispatcher))
        .nest_service(MCP_PATH, mcp::service(dispatcher))
        .layer(from_fn_with_state(Arc::clone(dispatcher), cap_body))
}

/// Reads the whole body within its limits of size and time, before it is handled.
async fn cap_body(
    State(dispatcher): State<Arc<Dispatcher>>,
    request: Request,
    next: Next,
) -> Response {
    let limits = dispatcher.limits();
    let (mut head, body) = request.into_parts();
    let length = head.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let length = length.and_then(|text| text.parse::<usize>().ok());
    if length.is_some_and(|length| length > limits.body_max_bytes) {
        return too_large(&dispatcher);
    }
    match timeout(limits.request_timeout, to_bytes(body, limits.body_max_bytes)).await {
        Ok(Ok(bytes)) => {
            let text = Bytes::from(String::from_utf8_lossy(&bytes).into_owned());
            head.headers.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
            // Clients that speak MCP try a stream this way, and are told that there is none.
            let is_stream = head.method == Method::GET && head.uri.path().starts_with(MCP_PATH);
            let what = format!("{} {}", head.method, show_path(head.uri.path()));
            let response = next.run(Request::from_parts(head, Body::from(text))).await;
            record_odd(&dispatcher, &what, is_stream, response)
        }
        Ok(Err(_)) => too_large(&dispatcher),
        Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
    }
}

/// Records a request that no method has seen, because its form was refused before.
fn record_odd(
    dispatcher: &Dispatcher,
    what: &str,
    is_stream: bool,
    response: Response,
) -> Response {
    let status = response.status();
    if !status.is_client_error() || is_stream {
        return response;
    }
    match dispatcher.record_refusal(what, &format!("status {}", status.as_u16())) {
        Ok(()) => response,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn show_path(path: &str) -> String {
    let short: String = path.chars().take(PATH_MAX).collect();
    escape_line(&short).into_owned()
}

fn too_large(dispatcher: &Dispatcher) -> Response {
    let why = format!("more than {} bytes", dispatcher.limits().body_max_bytes);
    match dispatcher.record_refusal("request", &why) {
        Ok(()) => {
            // The rest of the body is not read, so the connection cannot continue.
            let close = [(CONNECTION, HeaderValue::from_static("close"))];
            (StatusCode::PAYLOAD_TOO_LARGE, close, why).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn answer_rpc(State(dispatcher): State<Arc<Dispatcher>>, body: Bytes) -> Response {
    let answer = match parse_message(&body) {
        RpcMessage::Malformed(answer) => {
            // Without its record there is no response.
            if dispatcher.record_refusal("request", "it is not a call").is_err() {
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
            Some(answer)
        }
        RpcMessage::One(call) => answer_one(&dispatcher, call).await,
        RpcMessage::Batch(calls) => {
            let mut answers = Vec::new();
            for call in calls {
                answers.extend(answer_one(&dispatcher, call).await);
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

async fn answer_one(
    dispatcher: &Arc<Dispatcher>,
    call: Result<RpcRequest, Value>,
) -> Option<Value> {
    match call {
        Ok(RpcRequest { method, params, id }) => {
            render_response(id, dispatcher.call(&method, params).await)
        }
        Err(answer) => {
            dispatcher.record_refusal("request", "it is not a call").ok()?;
            Some(answer)
        }
    }
}
