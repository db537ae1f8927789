//! Forwarding of plain requests to the host of their URL.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Request, StatusCode};

use super::answer::{ProxyResponse, explain, forward_response};
use super::attempt::EgressAttempt;
use super::body::Upload;
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
        Err(refusal) => return explain(&refusal.into(), (host, port)),
    };
    match exchange(shared, request, host, port, &attempt).await {
        Ok(reached) => forward_response(shared, reached, attempt),
        Err(error) => {
            // A cap reached in transit looks like a broken connection from outside.
            let error = attempt.meter.refusal().map_or(error, RequestError::from);
            attempt.stopped_by(&error);
            explain(&error, attempt.target())
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
    // Servers expect the path and query alone.
    let path = head.uri.path_and_query().cloned();
    head.uri = path.unwrap_or_else(|| PathAndQuery::from_static("/")).into();
    let authority = if port == 80 { host.to_string() } else { format!("{host}:{port}") };
    if let Ok(value) = HeaderValue::try_from(authority) {
        head.headers.insert(HOST, value);
    }
    head.extensions.clear();
    let idle = Duration::from_secs(shared.policy.limits.idle_secs);
    let body = Upload::new(body, &attempt.meter, u64::MAX);
    let way = UpstreamRoute { place: UpstreamTarget::Asked(host, port), tls: None };
    let request = Request::from_parts(head, body);
    let reached = shared.send(&way, request, &attempt.meter, idle).await?;
    if reached.response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(UpstreamFailure::BrokenOff.into());
    }
    Ok(reached)
}
