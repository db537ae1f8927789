//! Responses to the box: those that the proxy itself produces, and those that it forwards.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::response;
use hyper::{Response, StatusCode};
use model::redact::SecretMask;

use super::attempt::EgressAttempt;
use super::body::Download;
use super::header::strip_hop_by_hop;
use super::shared::ProxyState;
use super::upstream::{RequestError, UpstreamResponse};
use crate::model_route::dialect::FRAMES;

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
    reached: UpstreamResponse,
    attempt: EgressAttempt,
) -> ProxyResponse {
    let (head, body) = split(shared, reached, attempt);
    Response::from_parts(head, Either::Right(body))
}

/// Like [`forward_response`], with secrets masked in everything that the server chose: headers, the words after the status,
/// body.
pub(crate) fn forward_masked(
    shared: &Arc<ProxyState>,
    reached: UpstreamResponse,
    attempt: EgressAttempt,
    mask: &Arc<SecretMask>,
) -> ProxyResponse {
    let (mut head, body) = split(shared, reached, attempt);
    // The words after the status are an extension.
    head.extensions.clear();
    head.headers = mask_headers(&head.headers, mask);
    let kind = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let body = match kind.is_some_and(|kind| kind.starts_with(FRAMES)) {
        true => {
            head.headers.remove(CONTENT_LENGTH);
            head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            body.unframed()
        }
        false => body,
    };
    let body = if mask.is_empty() { body } else { body.masked(mask) };
    Response::from_parts(head, Either::Right(body))
}

fn split(
    shared: &Arc<ProxyState>,
    UpstreamResponse { response, lease }: UpstreamResponse,
    mut attempt: EgressAttempt,
) -> (response::Parts, Download) {
    attempt.reached(Some(lease.address));
    attempt.status = Some(response.status().as_u16());
    let (mut head, body) = response.into_parts();
    strip_hop_by_hop(&mut head.headers);
    (head, Download::new(body, attempt, shared, lease))
}

/// Masks secrets in the values; a header whose very name has one is left out.
fn mask_headers(headers: &HeaderMap, mask: &SecretMask) -> HeaderMap {
    let mut masked = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let mut bytes = value.as_bytes().to_vec();
        mask.mask(&mut bytes);
        if let Ok(value) = HeaderValue::from_bytes(&bytes)
            && mask.find(name.as_str().as_bytes()).is_empty()
        {
            masked.append(name, value);
        }
    }
    masked
}

fn own_response(status: StatusCode, kind: &'static str, text: String) -> ProxyResponse {
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(text))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
