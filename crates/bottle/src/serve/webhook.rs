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
use forge::{DeliveryTarget, ForgeKind, Thread};
use orchestrator_db::{About, Delivery, DeliveryInsert, ForgeState, IssueKey};
use web_base::header::header_text;

use super::Service;
use super::vitals::VitalCounter;
use crate::flow::bottle::{Bottle, BottleState};

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

async fn answer(service: &Arc<Service>, source: &str, request: Request<Body>) -> Response {
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
    let about = match subject.target {
        DeliveryTarget::Thread(Thread::Issue(number)) => About::Issue(number),
        DeliveryTarget::Thread(Thread::Pull(number)) => About::Pull(number),
        DeliveryTarget::Commit { sha, branch } => {
            let (service, key) = (Arc::clone(service), key.clone());
            let find = move || find_issue(&service, &key, &sha, branch.as_deref());
            match tokio::task::spawn_blocking(find).await.ok().flatten() {
                Some(number) => About::Issue(number),
                // A commit that no bottle published.
                None => return (StatusCode::ACCEPTED, "nothing to do\n").into_response(),
            }
        }
    };
    let delivery = Delivery {
        seq: 0,
        source: kind.word().to_owned(),
        id: read.id,
        event: read.event,
        owner: key.owner,
        repo: key.repo,
        about,
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

/// Issue of the bottle that published a commit. The branch names the bottle; a forge that does not send it has the commit.
fn find_issue(service: &Service, repo: &IssueKey, sha: &str, branch: Option<&str>) -> Option<u64> {
    let issue_of = |slug: &str| {
        let (_, record) = Bottle::open(&service.home, slug).ok()?;
        let env = record.forge.as_ref()?;
        let is_here = env.owner.eq_ignore_ascii_case(&repo.owner)
            && env.repo.eq_ignore_ascii_case(&repo.repo);
        let is_tip = record.published.as_ref().is_some_and(|tip| tip.as_str() == sha);
        let is_branch = branch == Some(record.branch.as_str());
        (is_here && (is_tip || is_branch)).then_some(env.issue)
    };
    if let Some(slug) = branch.and_then(|branch| branch.strip_prefix("bot-bottle/")) {
        return issue_of(slug).or_else(|| issue_elsewhere(service, repo, slug));
    }
    let states = service.store.forge_states().ok()?;
    let published = states.into_iter().filter(|state| state.pr_number.is_some());
    published
        .filter(|state| state.status != BottleState::Destroyed)
        .find_map(|state| issue_of(&state.slug))
}

/// Issue of a bottle that another host has: its record is not on this disk.
fn issue_elsewhere(service: &Service, repo: &IssueKey, slug: &str) -> Option<u64> {
    let is_it = |known: &ForgeState| {
        known.slug == slug
            && known.key.owner.eq_ignore_ascii_case(&repo.owner)
            && known.key.repo.eq_ignore_ascii_case(&repo.repo)
            && known.host.as_ref().is_some_and(|host| *host != service.host)
    };
    let states = service.store.forge_states().ok()?;
    states.iter().find(|known| is_it(known)).map(|known| known.key.issue_number)
}

fn refuse(status: StatusCode, message: &str) -> Response {
    (status, format!("{message}\n")).into_response()
}
