//! What the proxy says itself.

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use super::body::Download;
use super::upstream::{Failure, Obstacle};
use crate::policy::Refusal;

/// An answer: our own words, or somebody else's going by.
pub(crate) type Answer = Response<Either<Full<Bytes>, Download>>;

/// Tells why something goes no further.
pub(super) fn explain(obstacle: &Obstacle, (host, port): (&str, u16)) -> Answer {
    match obstacle {
        Obstacle::Refused(refusal) => refuse(refusal, host, port),
        Obstacle::Failed(failure) => {
            let text = format!("failed: {host}:{port} {failure}\n");
            own_words(status_of(*failure), "text/plain; charset=utf-8", text)
        }
    }
}

pub(super) fn refuse(refusal: &Refusal, host: &str, port: u16) -> Answer {
    let text = refusal.explain(host, port) + "\n";
    own_words(StatusCode::FORBIDDEN, "text/plain; charset=utf-8", text)
}

pub(super) fn page(text: String) -> Answer {
    own_words(StatusCode::OK, "text/plain; charset=utf-8", text)
}

/// The same for a call to the model, in the form in which clients of every wire API look for the
/// message of an error.
pub(crate) fn model_refusal(obstacle: &Obstacle, (host, port): (&str, u16)) -> Answer {
    let (status, kind, message) = match obstacle {
        Obstacle::Refused(refusal) => {
            (StatusCode::FORBIDDEN, refusal.code(), refusal.explain(host, port))
        }
        Obstacle::Failed(failure) => {
            (status_of(*failure), failure.code(), format!("failed: {host}:{port} {failure}"))
        }
    };
    let error = serde_json::json!({ "type": kind, "code": kind, "message": message });
    let body = serde_json::json!({ "type": "error", "error": error });
    own_words(status, "application/json", body.to_string())
}

fn status_of(failure: Failure) -> StatusCode {
    match failure {
        Failure::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        Failure::Unresolved
        | Failure::Unreachable
        | Failure::Tls
        | Failure::BrokenOff
        | Failure::NoKey => StatusCode::BAD_GATEWAY,
    }
}

fn own_words(status: StatusCode, kind: &'static str, text: String) -> Answer {
    let mut answer = Response::new(Either::Left(Full::new(Bytes::from(text))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
