//! One connection from the box, and the handling of its requests.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::answer::{ProxyResponse, explain, page};
use super::shared::ProxyState;
use super::{forward, tunnel};
use crate::model_route::{MODEL_PREFIX, route};
use crate::policy::{DenyReason, EgressProfile, HostFault, HostName, port_of};
use crate::record::{TrafficKind, render_summary};

/// Path prefix of the proxy's own pages.
const OWN: &str = "/-/";
const STATUS: &str = "/-/status";
/// The proxy's own host name, for requests that name no host.
const OWN_HOST: &str = "localhost";
const OWN_PORT: u16 = 3128;

/// The smallest buffer that the HTTP library accepts.
const HEADER_MIN: usize = 8 << 10;

/// Serves one connection: requests one after another, or finally a tunnel.
pub(super) async fn serve_connection(shared: Arc<ProxyState>, stream: UnixStream) {
    let granted = Mutex::new(None);
    let is_fresh = AtomicBool::new(true);
    let service = service_fn(|mut request: Request<Incoming>| {
        let (shared, granted) = (&shared, &granted);
        is_fresh.store(false, Relaxed);
        async move {
            if request.method() != Method::CONNECT {
                return Ok::<_, Infallible>(answer(shared, request).await);
            }
            let (answer, tunnel) = tunnel::open(shared, &mut request).await;
            *granted.lock().unwrap_or_else(PoisonError::into_inner) = tunnel;
            Ok(answer)
        }
    });
    let connection =
        server(&shared).serve_connection(TokioIo::new(stream), service).with_upgrades();
    let limit = Duration::from_secs(shared.policy.limits.total_secs);
    let ended = timeout(limit, connection).await;
    if let Ok(Err(error)) = ended
        && (error.is_parse() || error.is_timeout() && is_fresh.load(Relaxed))
    {
        note_unreadable(&shared);
    }
    let tunnel = granted.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(tunnel) = tunnel {
        tunnel::run(&shared, tunnel).await;
    }
}

/// Serves plain requests inside a tunnel to `host`. They may name no other host.
pub(super) async fn serve_plain_inside<S>(
    shared: &Arc<ProxyState>,
    stream: S,
    host: HostName,
    port: u16,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request: Request<Incoming>| {
        let host = &host;
        async move { Ok::<_, Infallible>(answer_inside(shared, request, host, port).await) }
    });
    let connection = server(shared).serve_connection(TokioIo::new(stream), service);
    let limit = Duration::from_secs(shared.policy.limits.total_secs);
    // Broken connections concern the client; the requests have their own lines.
    drop(timeout(limit, connection).await);
}

fn server(shared: &ProxyState) -> http1::Builder {
    let limits = &shared.policy.limits;
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(limits.header_secs))
        .max_buf_size(limits.header_bytes.max(HEADER_MIN));
    server
}

/// Logs input that cannot be parsed as a request; a connection that merely went idle between two requests gets no line.
fn note_unreadable(shared: &Arc<ProxyState>) {
    if let Ok(mut attempt) = shared.begin(TrafficKind::Http, "", 0) {
        attempt.stopped_by(&DenyReason::BadTarget.into());
    }
}

async fn answer(shared: &Arc<ProxyState>, request: Request<Incoming>) -> ProxyResponse {
    let uri = request.uri();
    let Some(scheme) = uri.scheme_str() else { return own_page(shared, request).await };
    let host = uri.host().unwrap_or_default().to_owned();
    let authority = uri.authority().map_or("", Authority::as_str);
    let Some(port) = port_of(authority, if scheme == "http" { 80 } else { 443 }) else {
        return refuse_and_note(shared, DenyReason::BadTarget, &host, 0);
    };
    // Some clients use the proxy to reach the proxy.
    let is_own = host == OWN_HOST || host == Ipv4Addr::LOCALHOST.to_string();
    if is_own && uri.path().starts_with(OWN) {
        return own_page(shared, request).await;
    }
    if scheme != "http" {
        return refuse_and_note(shared, DenyReason::Scheme, &host, port);
    }
    forward::forward(shared, request, &host, port).await
}

async fn own_page(shared: &Arc<ProxyState>, request: Request<Incoming>) -> ProxyResponse {
    let path = request.uri().path();
    let is_model = path
        .strip_prefix(MODEL_PREFIX)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_model {
        return route::answer(shared, request).await;
    }
    if path == STATUS && matches!(*request.method(), Method::GET | Method::HEAD) {
        return page(render_status(shared));
    }
    explain(&DenyReason::NoSuchPage.into(), (OWN_HOST, OWN_PORT))
}

async fn answer_inside(
    shared: &Arc<ProxyState>,
    request: Request<Incoming>,
    host: &HostName,
    port: u16,
) -> ProxyResponse {
    let named = request.headers().get(HOST).and_then(|value| value.to_str().ok());
    let named = request.uri().authority().map(Authority::as_str).or(named);
    let is_same = named.and_then(host_of).is_some_and(|named| named == *host);
    if !is_same || request.method() == Method::CONNECT {
        return refuse_and_note(shared, DenyReason::HostMismatch, host.as_str(), port);
    }
    forward::forward(shared, request, host.as_str(), port).await
}

fn host_of(authority: &str) -> Option<HostName> {
    port_of(authority, 0)?;
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    HostName::parse(host).ok()
}

fn refuse_and_note(
    shared: &Arc<ProxyState>,
    refusal: DenyReason,
    host: &str,
    port: u16,
) -> ProxyResponse {
    let error = match shared.begin(TrafficKind::Http, host, port) {
        Ok(mut attempt) => {
            let error = refusal.into();
            attempt.stopped_by(&error);
            error
        }
        Err(refusal) => refusal.into(),
    };
    explain(&error, (host, port))
}

pub(super) fn parse_target(host: &str, port: u16) -> Result<HostName, DenyReason> {
    let name = HostName::parse(host).map_err(|fault| match fault {
        HostFault::Address => DenyReason::IpLiteral,
        HostFault::Empty | HostFault::TooLong | HostFault::Malformed => DenyReason::BadTarget,
    })?;
    if port == 0 { Err(DenyReason::BadTarget) } else { Ok(name) }
}

/// Renders the policy and the traffic so far, for programs inside the box.
fn render_status(shared: &ProxyState) -> String {
    let policy = &shared.policy;
    let reach = match policy.profile {
        EgressProfile::None => "nothing can be reached",
        EgressProfile::ModelOnly => "the model can be reached, and the hosts listed here",
        EgressProfile::Packages => {
            "the model, package registries and the hosts listed here can be reached"
        }
        EgressProfile::Open => "every public host can be reached",
    };
    let mut lines = vec![format!("profile {}: {reach}", policy.profile)];
    let hosts = policy.allow.iter().chain(&policy.extra_package_hosts);
    lines.extend(hosts.map(|rule| format!("allowed: {rule}")));
    lines.extend(policy.deny.iter().map(|rule| format!("denied: {rule}")));
    lines.extend(render_summary(&shared.log.summary()));
    lines.join("\n") + "\n"
}
