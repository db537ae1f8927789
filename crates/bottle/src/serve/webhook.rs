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
use model::secret::Secret;
use orchestrator_db::{About, DbError, Delivery, DeliveryInsert, ForgeState, IssueKey};
use web_base::header::header_text;

use super::Service;
use super::repos::{Repo, Repos};
use super::vitals::VitalCounter;
use crate::flow::bottle::{Bottle, BottleState};

const BODY_LIMIT: Duration = Duration::from_secs(10);
/// Time that a webhook waits for a new secret. Forges give up after five seconds and more.
const SECRET_LIMIT: Duration = Duration::from_secs(4);

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
    let is_signed = |secret: &Secret| kind.verify_delivery(header, &bytes, secret.expose());
    let repos = service.repos();
    let later;
    let mut authenticated = signers(&repos, kind, is_signed);
    // The secret of a new webhook may not be read yet, and forges send nothing again.
    if authenticated.is_empty() && service.config.wait_for_change(&service.home, SECRET_LIMIT).await
    {
        later = service.repos();
        authenticated = signers(&later, kind, is_signed);
    }
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
    let subjects = match subject.target {
        DeliveryTarget::Thread(Thread::Issue(number)) => vec![About::Issue(number)],
        DeliveryTarget::Thread(Thread::Pull(number)) => vec![About::Pull(number)],
        DeliveryTarget::Commit { sha, branch } => {
            let (service, key) = (Arc::clone(service), key.clone());
            let find = move || find_issues(&service, &key, &sha, branch.as_deref());
            match tokio::task::spawn_blocking(find).await {
                Ok(Ok(numbers)) => numbers.into_iter().map(About::Issue).collect(),
                Ok(Err(error)) => return refuse_unstored(&error),
                Err(error) => return refuse_unstored(&error),
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
        about: About::Issue(0),
        body: bytes.to_vec(),
        received_at: host::clock::now(),
        handled_at: None,
    };
    store(service, &delivery, subjects).await
}

/// Repositories of a kind of forge with a secret that signed a delivery.
fn signers(repos: &Repos, kind: ForgeKind, is_signed: impl Fn(&Secret) -> bool) -> Vec<&Repo> {
    let matching = repos.secrets(kind).filter(|(_, secret)| is_signed(secret));
    matching.map(|(repo, _)| repo).collect()
}

/// Stores a delivery once for each of its subjects. Only the first one has its id alone.
async fn store(service: &Service, delivery: &Delivery, subjects: Vec<About>) -> Response {
    if subjects.is_empty() {
        // A commit that no bottle published.
        return (StatusCode::ACCEPTED, "nothing to do\n").into_response();
    }
    let mut is_new = false;
    for (place, about) in subjects.into_iter().enumerate() {
        let id = match (place, about) {
            (0, _) => delivery.id.clone(),
            (_, About::Issue(number) | About::Pull(number)) => format!("{}#{number}", delivery.id),
        };
        match service.inbox.store(Delivery { id, about, ..delivery.clone() }).await {
            Ok(insert) => is_new |= insert == DeliveryInsert::New,
            Err(error) => return refuse_unstored(&error),
        }
    }
    match is_new {
        true => (StatusCode::ACCEPTED, "stored\n").into_response(),
        false => (StatusCode::OK, "duplicate\n").into_response(),
    }
}

fn refuse_unstored(error: &(dyn std::error::Error + 'static)) -> Response {
    tracing::error!(error = model::error_chain(error), "a webhook could not be stored");
    refuse(StatusCode::SERVICE_UNAVAILABLE, "it could not be stored; send it again")
}

/// Issues whose bottles may have published a commit. The branch names the bottle. A forge that does not send it has the
/// commit, which is in the record of its bottle, on the disk of that bottle's host: if no bottle here published it, each one
/// elsewhere that has a pull request is looked at by its host.
fn find_issues(
    service: &Service,
    repo: &IssueKey,
    sha: &str,
    branch: Option<&str>,
) -> Result<Vec<u64>, DbError> {
    let issue_of = |slug: &str| {
        let (_, record) = Bottle::open(&service.home, slug).ok()?;
        let env = record.forge.as_ref()?;
        let is_here = env.owner.eq_ignore_ascii_case(&repo.owner)
            && env.repo.eq_ignore_ascii_case(&repo.repo);
        let is_tip = record.published.as_ref().is_some_and(|tip| tip.as_str() == sha);
        let is_branch = branch == Some(record.branch.as_str());
        (is_here && (is_tip || is_branch)).then_some(env.issue)
    };
    let is_elsewhere = |known: &&ForgeState| {
        known.key.owner.eq_ignore_ascii_case(&repo.owner)
            && known.key.repo.eq_ignore_ascii_case(&repo.repo)
            && known.host.as_ref().is_some_and(|host| *host != service.host)
    };
    let states = service.store.forge_states()?;
    if let Some(slug) = branch.and_then(|branch| branch.strip_prefix("bot-bottle/")) {
        let of_others = || states.iter().filter(is_elsewhere).find(|known| known.slug == slug);
        let found = issue_of(slug).or_else(|| of_others().map(|known| known.key.issue_number));
        return Ok(found.into_iter().collect());
    }
    let is_published =
        |known: &&ForgeState| known.pr_number.is_some() && known.status != BottleState::Destroyed;
    let published: Vec<&ForgeState> = states.iter().filter(is_published).collect();
    if let Some(number) = published.iter().find_map(|state| issue_of(&state.slug)) {
        return Ok(vec![number]);
    }
    // A branch that is not a bottle's is nobody's.
    if branch.is_some() {
        return Ok(Vec::new());
    }
    let elsewhere = published.into_iter().filter(is_elsewhere);
    Ok(elsewhere.map(|known| known.key.issue_number).collect())
}

fn refuse(status: StatusCode, message: &str) -> Response {
    (status, format!("{message}\n")).into_response()
}
