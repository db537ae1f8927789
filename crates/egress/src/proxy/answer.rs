//! Responses to the box: those that the proxy itself produces, and those that it forwards.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use super::attempt::EgressAttempt;
use super::body::Download;
use super::header::strip_hop_by_hop;
use super::shared::ProxyState;
use super::upstream::{RequestError, UpstreamResponse};

/// A response: our own, or one that is forwarded.
pub(crate) type ProxyResponse = Response<Either<Full<Bytes>, Download>>;

const TEXT: &str = "text/plain; charset=utf-8";

/// Builds the response that explains a refusal or failure.
pub(super) fn explain(error: &RequestError, (host, port): (&str, u16)) -> ProxyResponse {
    own_response(error.status(), TEXT, error.explain(host, port) + "\n")
}

pub(super) fn page(text: String) -> ProxyResponse {
    own_response(StatusCode::OK, TEXT, text)
}

/// Same as [`explain`] for a call to the model, in the format in which clients of every wire API look for an error
/// message.
pub(crate) fn explain_to_model_client(
    error: &RequestError,
    (host, port): (&str, u16),
) -> ProxyResponse {
    let (kind, message) = (error.code(), error.explain(host, port));
    let error_field = serde_json::json!({ "type": kind, "code": kind, "message": message });
    let body = serde_json::json!({ "type": "error", "error": error_field });
    own_response(error.status(), "application/json", body.to_string())
}

/// Forwards a response as it arrives.
pub(crate) fn forward_response(
    shared: &Arc<ProxyState>,
    UpstreamResponse { response, lease }: UpstreamResponse,
    mut attempt: EgressAttempt,
) -> ProxyResponse {
    attempt.reached(Some(lease.address));
    attempt.status = Some(response.status().as_u16());
    let (mut head, body) = response.into_parts();
    strip_hop_by_hop(&mut head.headers);
    let body = Download::new(body, attempt, shared, lease);
    Response::from_parts(head, Either::Right(body))
}

fn own_response(status: StatusCode, kind: &'static str, text: String) -> ProxyResponse {
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(text))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
