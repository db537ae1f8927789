//! `POST /webhooks/<forge>`: verifies the signature over the raw bytes, stores the delivery, and only then acknowledges it.
//! The reconciler later asks the forge what changed.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use forge::{ForgeKind, Thread};
use orchestrator_db::{About, Delivery, DeliveryInsert};

use super::vitals::VitalCounter;
use super::{Service, header_text};

const BODY_LIMIT: Duration = Duration::from_secs(10);

pub(crate) fn router(service: Arc<Service>) -> Router {
    Router::new().route("/webhooks/{source}", post(receive)).with_state(service)
}

async fn receive(
    State(service): State<Arc<Service>>,
    Path(source): Path<String>,
    request: Request<Body>,
) -> Response {
    let response = answer(&service, &source, request).await;
    let result = match response.status() {
        StatusCode::ACCEPTED => "accepted",
        StatusCode::OK => "duplicate",
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "wrong-signature",
        StatusCode::SERVICE_UNAVAILABLE => "not-stored",
        _ => "refused",
    };
    service.vitals.count(VitalCounter::Webhooks, result);
    response
}

async fn answer(service: &Service, source: &str, request: Request<Body>) -> Response {
    let Some(kind) = ForgeKind::parse(source).filter(|kind| kind.has_webhooks()) else {
        return refuse(StatusCode::NOT_FOUND, "unknown forge");
    };
    let (head, body) = request.into_parts();
    let limit = service.settings().body_max_bytes;
    let read = tokio::time::timeout(BODY_LIMIT, to_bytes(body, limit)).await;
    let bytes = match read {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => {
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long or incomplete");
        }
        Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT, "the body took too long"),
    };
    let header = |name: &str| header_text(&head.headers, name);
    // Repositories may share a secret; it authenticates deliveries for exactly these.
    let repos = service.repos();
    let matching = repos
        .secrets(kind)
        .filter(|(_, secret)| kind.verify_delivery(header, &bytes, secret.expose()));
    let authenticated: Vec<_> = matching.map(|(repo, _)| repo).collect();
    if authenticated.is_empty() {
        tracing::warn!(source = kind.word(), "refused a webhook with a wrong signature");
        return refuse(StatusCode::UNAUTHORIZED, "the signature is wrong");
    }
    host::failpoint::hit("verified");
    let read = match kind.parse_delivery(header, &bytes) {
        Ok(read) => read,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let Some(subject) = read.subject else {
        return (StatusCode::ACCEPTED, "nothing to do\n").into_response();
    };
    let Some(repo) = authenticated.iter().find(|repo| repo.is(&subject.owner, &subject.repo))
    else {
        return refuse(StatusCode::FORBIDDEN, "this secret does not belong to that repository");
    };
    let key = repo.issue(0);
    let delivery = Delivery {
        seq: 0,
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
        received_at: host::clock::now(),
        handled_at: None,
    };
    match service.inbox.store(delivery).await {
        Ok(DeliveryInsert::New) => (StatusCode::ACCEPTED, "stored\n").into_response(),
        Ok(DeliveryInsert::Duplicate) => (StatusCode::OK, "duplicate\n").into_response(),
        Err(error) => {
            tracing::error!(%error, "a webhook could not be stored");
            refuse(StatusCode::SERVICE_UNAVAILABLE, "it could not be stored; send it again")
        }
    }
}

fn refuse(status: StatusCode, message: &str) -> Response {
    (status, format!("{message}\n")).into_response()
}
