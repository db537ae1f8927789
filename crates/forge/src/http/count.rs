//! Counts of the requests that this process sends, for its metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use super::HttpResponse;
use super::exchange::ExchangeError;
use super::retry::is_busy;

/// Result of one attempt of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallResult {
    Answered,
    /// The rate limit rejected it.
    RateLimited,
    /// Any other answer with a status of 400 to 499.
    Rejected,
    ServerError,
    /// There was no connection, so nothing was sent.
    NotSent,
    /// It was sent, and no usable answer came.
    Unanswered,
}

static COUNTS: [AtomicU64; CallResult::ALL.len()] =
    [const { AtomicU64::new(0) }; CallResult::ALL.len()];

impl CallResult {
    const ALL: [Self; 6] = [
        Self::Answered,
        Self::RateLimited,
        Self::Rejected,
        Self::ServerError,
        Self::NotSent,
        Self::Unanswered,
    ];

    /// Name as a label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "ok",
            Self::RateLimited => "rate-limited",
            Self::Rejected => "rejected",
            Self::ServerError => "server-error",
            Self::NotSent => "not-sent",
            Self::Unanswered => "unanswered",
        }
    }

    fn of(outcome: &Result<HttpResponse, ExchangeError>) -> Self {
        match outcome {
            Ok(found) if is_busy(found.status, &found.headers) => Self::RateLimited,
            Ok(found) if found.status.is_client_error() => Self::Rejected,
            Ok(found) if found.status.is_server_error() => Self::ServerError,
            Ok(_) => Self::Answered,
            Err(ExchangeError::NotSent(_)) => Self::NotSent,
            Err(ExchangeError::BrokenOff(_) | ExchangeError::TooLarge) => Self::Unanswered,
        }
    }
}

pub(super) fn count(outcome: &Result<HttpResponse, ExchangeError>) {
    COUNTS[CallResult::of(outcome) as usize].fetch_add(1, Ordering::Relaxed);
}

/// Requests to forges that this process has sent since it started, by result. Each attempt counts.
pub fn call_counts() -> [(CallResult, u64); CallResult::ALL.len()] {
    CallResult::ALL.map(|result| (result, COUNTS[result as usize].load(Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;
    use hyper::header::{HeaderMap, RETRY_AFTER};

    use super::*;

    #[track_caller]
    fn check(status: u16, headers: HeaderMap, expected: CallResult) {
        let status = StatusCode::from_u16(status).unwrap();
        let outcome = Ok(HttpResponse { status, headers, body: Default::default() });
        assert_eq!(CallResult::of(&outcome), expected);
    }

    #[test]
    fn a_rate_limit_is_distinguished_from_a_missing_permission() {
        check(403, HeaderMap::new(), CallResult::Rejected);
        let wait = HeaderMap::from_iter([(RETRY_AFTER, "3".parse().unwrap())]);
        check(403, wait, CallResult::RateLimited);
        check(429, HeaderMap::new(), CallResult::RateLimited);
        check(502, HeaderMap::new(), CallResult::ServerError);
        check(304, HeaderMap::new(), CallResult::Answered);
    }

    #[test]
    fn each_result_has_its_own_count() {
        let places = CallResult::ALL.map(|result| result as usize);
        assert_eq!(places, [0, 1, 2, 3, 4, 5]);
    }
}
