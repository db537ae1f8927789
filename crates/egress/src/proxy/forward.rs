//! Forwarding of plain requests to the host of their URL.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::Either;
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response, StatusCode, Uri};

use super::answer::{ProxyResponse, explain, refuse};
use super::attempt::EgressAttempt;
use super::body::{Download, Upload};
use super::header::strip_hop_by_hop;
use super::service::parse_target;
use super::shared::ProxyState;
use super::upstream::{
    RequestError, UpstreamFailure, UpstreamResponse, UpstreamRoute, UpstreamTarget,
};
use crate::policy::DenyReason;
use crate::record::TrafficKind;

/// Forwards a request to `host` at `port`, and the response back.
pub(super) async fn forward(
    shared: &Arc<ProxyState>,
    request: Request<Incoming>,
    host: &str,
    port: u16,
) -> ProxyResponse {
    let mut attempt = match shared.begin(TrafficKind::Http, host, port) {
        Ok(attempt) => attempt,
        Err(refusal) => return refuse(&refusal, host, port),
    };
    match exchange(shared, request, host, port, &attempt).await {
        Ok(UpstreamResponse { response, lease }) => {
            let idle = Duration::from_secs(shared.policy.limits.idle_secs);
            attempt.reached(Some(lease.address));
            attempt.status = Some(response.status().as_u16());
            let (mut head, body) = response.into_parts();
            strip_hop_by_hop(&mut head.headers);
            let body = Download::new(body, attempt, idle, shared, lease);
            Response::from_parts(head, Either::Right(body))
        }
        Err(obstacle) => {
            // A cap reached in transit looks like a broken connection from outside.
            let obstacle = attempt.meter.refusal().map_or(obstacle, RequestError::from);
            attempt.stopped_by(&obstacle);
            explain(&obstacle, attempt.target())
        }
    }
}

async fn exchange(
    shared: &ProxyState,
    request: Request<Incoming>,
    host: &str,
    port: u16,
    attempt: &EgressAttempt,
) -> Result<UpstreamResponse, RequestError> {
    let host = parse_target(host, port)?;
    shared.policy.judge_name(&host, port)?;
    shared.judge_caps()?;
    if port == 443 {
        return Err(DenyReason::NotTls.into());
    }
    let (mut head, body) = request.into_parts();
    strip_hop_by_hop(&mut head.headers);
    head.uri = origin_form(&head.uri);
    let authority = if port == 80 { host.to_string() } else { format!("{host}:{port}") };
    if let Ok(value) = HeaderValue::try_from(authority) {
        head.headers.insert(HOST, value);
    }
    head.extensions.clear();
    let idle = Duration::from_secs(shared.policy.limits.idle_secs);
    let body = Upload::new(body, attempt, idle, u64::MAX);
    let way = UpstreamRoute { place: UpstreamTarget::Asked(host, port), tls: None };
    let request = Request::from_parts(head, body);
    let reached = shared.send(&way, request, &attempt.meter, idle).await?;
    if reached.response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(UpstreamFailure::BrokenOff.into());
    }
    Ok(reached)
}

/// Reduces a URL to path and query, as servers expect it.
fn origin_form(uri: &Uri) -> Uri {
    let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    Uri::from(path)
}
