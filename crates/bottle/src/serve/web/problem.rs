//! Errors of requests, as `application/problem+json` (RFC 9457).

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use model::exit::BottleExit;
use orchestrator_db::DbError;
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

use crate::exit::Failure;

/// Why there is no better answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Which kind of problem: none has a page of its own.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The name of the status.
    title: String,
    /// The status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// The error, and what to do about it.
    detail: String,
}

/// The responses that every request to the API may get.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is read by the macro that documents the API")]
pub(crate) enum Refusals {
    /// The request has an unknown or wrong parameter
    #[response(status = 400, content_type = "application/problem+json")]
    Wrong(#[to_schema] Problem),
    /// The token is missing or wrong
    #[response(status = 401, content_type = "application/problem+json")]
    Unknown(#[to_schema] Problem),
    /// The request comes from another page, or the page is read-only
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(#[to_schema] Problem),
    /// There is no such thing
    #[response(status = 404, content_type = "application/problem+json")]
    Missing(#[to_schema] Problem),
    /// The request was meant for another host
    #[response(status = 421, content_type = "application/problem+json")]
    Misdirected(#[to_schema] Problem),
    /// The server could not do its own work
    #[response(status = 500, content_type = "application/problem+json")]
    Failed(#[to_schema] Problem),
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("problem").to_owned();
        Self { kind: "about:blank", title, status: status.as_u16(), detail: detail.into() }
    }

    pub(crate) fn missing(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn wrong(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// A failure of the server. The response reveals no path of this machine; the log has the details.
    pub(crate) fn failed(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(error = %error, "a request failed");
        let detail = "the server failed; its log has the reason";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure.status {
            BottleExit::NotFound => Self::missing(failure.to_string()),
            _ => Self::failed(&failure),
        }
    }
}

impl From<DbError> for Problem {
    fn from(error: DbError) -> Self {
        Self::failed(&model::error_chain(&error))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_string(&self).unwrap_or_default();
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (self.status(), [(CONTENT_TYPE, kind)], body).into_response();
        let more = match self.status() {
            StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((RETRY_AFTER, "5")),
            _ => None,
        };
        if let Some((name, value)) = more {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
