//! `POST /webhooks/<forge>`: checked over the raw bytes, kept, and only then acknowledged. What it means is found out
//! later, by looking at the forge.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use forge::{ForgeKind, Thread};
use orchestrator_db::{About, DeliveryInsert, NewDelivery};

use super::Service;

/// A sender who is slower than this has lost its way.
const BODY_LIMIT: Duration = Duration::from_secs(10);

/// The routes.
pub(crate) fn router(service: Arc<Service>) -> Router {
    Router::new().route("/webhooks/{source}", post(receive)).with_state(service)
}

async fn receive(
    State(service): State<Arc<Service>>,
    Path(source): Path<String>,
    request: Request<Body>,
) -> Response {
    let Some(kind) = ForgeKind::parse(&source).filter(|kind| kind.has_webhooks()) else {
        return refuse(StatusCode::NOT_FOUND, "no such forge");
    };
    let (head, body) = request.into_parts();
    let limit = service.settings.body_max_bytes;
    let read = tokio::time::timeout(BODY_LIMIT, to_bytes(body, limit)).await;
    let bytes = match read {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => return refuse(StatusCode::PAYLOAD_TOO_LARGE, "too long, or cut short"),
        Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT, "too slow"),
    };
    let header = |name: &str| text_of(&head.headers, name);
    // Several repositories may share a secret; what it vouches for are these and no others.
    let genuine = service
        .repos
        .secrets(kind)
        .filter(|(_, secret)| kind.verify_delivery(header, &bytes, secret.expose()));
    let vouched: Vec<_> = genuine.map(|(repo, _)| repo).collect();
    if vouched.is_empty() {
        tracing::warn!(source = kind.word(), "a webhook with a wrong signature was refused");
        return refuse(StatusCode::UNAUTHORIZED, "the signature is wrong");
    }
    host::failpoint::hit("verified");
    let read = match kind.parse_delivery(header, &bytes) {
        Ok(read) => read,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let Some(subject) = read.subject else {
        return (StatusCode::ACCEPTED, "nothing to look at\n").into_response();
    };
    let Some(repo) = vouched.iter().find(|repo| repo.is(&subject.owner, &subject.repo)) else {
        return refuse(StatusCode::FORBIDDEN, "this secret does not speak for that repository");
    };
    let key = repo.issue(0);
    let delivery = NewDelivery {
        source: kind.word().to_owned(),
        id: read.id,
        event: read.event,
        owner: key.owner,
        repo: key.repo,
        about: match subject.thread {
            Thread::Issue(number) => About::Issue(number),
            Thread::Pull(number) => About::Pull(number),
        },
        body: bytes.to_vec(),
    };
    match service.inbox.keep(delivery).await {
        Ok(DeliveryInsert::New) => (StatusCode::ACCEPTED, "kept\n").into_response(),
        Ok(DeliveryInsert::Duplicate) => (StatusCode::OK, "known\n").into_response(),
        Err(error) => {
            tracing::error!(%error, "a webhook could not be kept");
            refuse(StatusCode::SERVICE_UNAVAILABLE, "it could not be kept; send it again")
        }
    }
}

/// A header whose value is text.
fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn refuse(status: StatusCode, words: &str) -> Response {
    (status, format!("{words}\n")).into_response()
}
