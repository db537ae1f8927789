//! Responses that the proxy itself produces.

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use super::body::Download;
use super::upstream::{RequestError, UpstreamFailure};
use crate::policy::DenyReason;

/// A response: our own, or one that is forwarded.
pub(crate) type ProxyResponse = Response<Either<Full<Bytes>, Download>>;

/// Builds the response that explains a refusal or failure.
pub(super) fn explain(obstacle: &RequestError, (host, port): (&str, u16)) -> ProxyResponse {
    match obstacle {
        RequestError::Refused(refusal) => refuse(refusal, host, port),
        RequestError::Failed(failure) => {
            let text = format!("failed: {host}:{port} {failure}\n");
            own_words(status_of(*failure), "text/plain; charset=utf-8", text)
        }
    }
}

pub(super) fn refuse(refusal: &DenyReason, host: &str, port: u16) -> ProxyResponse {
    let text = refusal.explain(host, port) + "\n";
    own_words(StatusCode::FORBIDDEN, "text/plain; charset=utf-8", text)
}

pub(super) fn page(text: String) -> ProxyResponse {
    own_words(StatusCode::OK, "text/plain; charset=utf-8", text)
}

/// Same for a call to the model, in the format in which clients of every wire API look for an error message.
pub(crate) fn model_refusal(obstacle: &RequestError, (host, port): (&str, u16)) -> ProxyResponse {
    let (status, kind, message) = match obstacle {
        RequestError::Refused(refusal) => {
            (StatusCode::FORBIDDEN, refusal.code(), refusal.explain(host, port))
        }
        RequestError::Failed(failure) => {
            (status_of(*failure), failure.code(), format!("failed: {host}:{port} {failure}"))
        }
    };
    let error = serde_json::json!({ "type": kind, "code": kind, "message": message });
    let body = serde_json::json!({ "type": "error", "error": error });
    own_words(status, "application/json", body.to_string())
}

fn status_of(failure: UpstreamFailure) -> StatusCode {
    match failure {
        UpstreamFailure::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        UpstreamFailure::Unresolved
        | UpstreamFailure::Unreachable
        | UpstreamFailure::Tls
        | UpstreamFailure::BrokenOff
        | UpstreamFailure::NoKey => StatusCode::BAD_GATEWAY,
    }
}

fn own_words(status: StatusCode, kind: &'static str, text: String) -> ProxyResponse {
    let mut answer = Response::new(Either::Left(Full::new(Bytes::from(text))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
