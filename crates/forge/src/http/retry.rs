//! Retries: the decision to send a request again, and the delay.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{HeaderMap, RETRY_AFTER};
use jiff::Timestamp;

use super::exchange::ExchangeError;
use super::{HttpResponse, Repeat};

const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// Headers with the number of requests left, and with the time of the reset (seconds since 1970).
const REMAINING: [&str; 2] = ["x-ratelimit-remaining", "ratelimit-remaining"];
const RESET: [&str; 2] = ["x-ratelimit-reset", "ratelimit-reset"];

/// Limits and retries of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Time for a connection, and again for its TLS handshake.
    pub connect: Duration,
    /// Time for a whole response.
    pub answer: Duration,
    /// Attempts in all, at least one.
    pub attempts: u32,
    /// Pause before the second attempt; twice that before each further one.
    pub backoff: Duration,
    /// Longest wait that a forge may request; a longer one is an error.
    pub retry_after_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(15),
            attempts: 4,
            backoff: Duration::from_millis(500),
            retry_after_max: Duration::from_secs(30),
        }
    }
}

impl RetryPolicy {
    /// Returns the delay before another attempt, or `None` if attempt `number` (from 1) is the last one. `asked` is
    /// the wait that the forge requests.
    pub(super) fn next_delay(&self, number: u32, asked: Option<Duration>) -> Option<Duration> {
        self.next_delay_at(number, asked, random())
    }

    /// Sleeps for the delay before another attempt.
    pub(crate) async fn pause(&self, attempt: u32) {
        tokio::time::sleep(self.backoff_after(attempt, random())).await;
    }

    fn next_delay_at(&self, number: u32, asked: Option<Duration>, random: u64) -> Option<Duration> {
        let asked = asked.unwrap_or_default();
        let may_wait = number < self.attempts && asked <= self.retry_after_max;
        may_wait.then(|| asked.max(self.backoff_after(number, random)))
    }

    /// Returns a delay between half and all of a time that doubles with each attempt.
    fn backoff_after(&self, attempt: u32, random: u64) -> Duration {
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        let whole = self.backoff.saturating_mul(doubled).min(BACKOFF_MAX);
        let share = (random % 1024) as u32;
        whole / 2 + whole / 2 * share / 1024
    }
}

/// Returns whether a request may be sent again after this outcome.
pub(super) fn may_repeat(outcome: &Result<HttpResponse, ExchangeError>, repeat: Repeat) -> bool {
    match outcome {
        // Rejected before it had any effect.
        Ok(found) if is_busy(found.status, &found.headers) => true,
        Ok(found) => found.status.is_server_error() && repeat == Repeat::Harmless,
        Err(ExchangeError::NotSent(_) | ExchangeError::BrokenOff(_)) => repeat == Repeat::Harmless,
        Err(ExchangeError::TooLarge) => false,
    }
}

/// Returns whether the rate limit rejected a request. Some forges use 403, and then only the headers
/// distinguish it from a missing permission.
pub(super) fn is_busy(status: StatusCode, headers: &HeaderMap) -> bool {
    match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::FORBIDDEN => headers.contains_key(RETRY_AFTER) || is_used_up(headers),
        _ => false,
    }
}

/// Returns the wait that a forge requests.
pub(super) fn read_wait(headers: &HeaderMap) -> Option<Duration> {
    read_wait_at(headers, host::clock::now())
}

fn read_wait_at(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    after.and_then(|text| parse_retry_after(text, now)).or_else(|| {
        // Every response has the time of the reset, which matters only when no request is left.
        let secs: i64 = read_number(headers, &RESET).filter(|_| is_used_up(headers))?;
        let wait = Timestamp::from_second(secs).ok()?.duration_since(now);
        Some(Duration::try_from(wait).unwrap_or_default())
    })
}

fn is_used_up(headers: &HeaderMap) -> bool {
    read_number(headers, &REMAINING) == Some(0)
}

fn read_number(headers: &HeaderMap, names: &[&str]) -> Option<i64> {
    let value = names.iter().find_map(|name| headers.get(*name))?;
    value.to_str().ok()?.trim().parse().ok()
}

/// Returns enough randomness to keep two clients out of step; it need not be unpredictable.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Parses `Retry-After`: seconds, or a date. A date in the past means no wait.
fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(secs) = text.parse::<u32>() {
        return Some(Duration::from_secs(secs.into()));
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn policy() -> RetryPolicy {
        RetryPolicy {
            attempts: 3,
            backoff: SECOND,
            retry_after_max: 10 * SECOND,
            ..RetryPolicy::default()
        }
    }

    #[track_caller]
    fn check(number: u32, asked: Option<u64>, expected: Option<Duration>) {
        let delay = policy().next_delay_at(number, asked.map(Duration::from_secs), 0);
        assert_eq!(delay, expected);
    }

    fn answered(status: StatusCode) -> Result<HttpResponse, ExchangeError> {
        Ok(HttpResponse { status, headers: HeaderMap::new(), body: Default::default() })
    }

    #[test]
    fn only_what_is_harmless_is_repeated() {
        let failures = [
            answered(StatusCode::BAD_GATEWAY),
            Err(ExchangeError::NotSent("")),
            Err(ExchangeError::BrokenOff("")),
        ];
        for outcome in failures {
            assert!(may_repeat(&outcome, Repeat::Harmless), "{outcome:?}");
            assert!(!may_repeat(&outcome, Repeat::Never), "{outcome:?}");
        }
        assert!(may_repeat(&answered(StatusCode::TOO_MANY_REQUESTS), Repeat::Never));
        for outcome in [answered(StatusCode::NOT_FOUND), Err(ExchangeError::TooLarge)] {
            assert!(!may_repeat(&outcome, Repeat::Harmless), "{outcome:?}");
        }
    }

    #[test]
    fn the_attempts_are_counted_and_the_waits_grow() {
        check(1, None, Some(SECOND / 2));
        check(2, None, Some(SECOND));
        check(3, None, None);
        assert_eq!(policy().backoff_after(40, 0), BACKOFF_MAX / 2);
    }

    #[test]
    fn chance_moves_the_wait_between_half_and_all() {
        for random in [0, 1, 511, 1023, u64::MAX] {
            let wait = policy().backoff_after(1, random);
            assert!((SECOND / 2..SECOND).contains(&wait), "{wait:?}");
        }
    }

    #[test]
    fn a_forge_may_ask_for_some_time_and_not_for_any() {
        check(1, Some(7), Some(7 * SECOND));
        check(1, Some(0), Some(SECOND / 2));
        check(1, Some(11), None);
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_busy_forge_is_distinguished_from_one_that_forbids() {
        let forbidden = |pairs| is_busy(StatusCode::FORBIDDEN, &headers(pairs));
        assert!(!forbidden(&[]));
        assert!(!forbidden(&[("x-ratelimit-remaining", "4999")]));
        assert!(forbidden(&[("x-ratelimit-remaining", "0")]));
        assert!(forbidden(&[("retry-after", "60")]));
        assert!(is_busy(StatusCode::TOO_MANY_REQUESTS, &headers(&[])));
        assert!(!is_busy(StatusCode::NOT_FOUND, &headers(&[("x-ratelimit-remaining", "0")])));
    }

    #[test]
    fn the_reset_counts_when_nothing_is_left() {
        let now: Timestamp = "2026-11-15T08:00:00Z".parse().unwrap();
        let reset = (now.as_second() + 40).to_string();
        let wait = |pairs: &[(&'static str, &str)]| read_wait_at(&headers(pairs), now);
        assert_eq!(wait(&[("x-ratelimit-reset", &reset)]), None);
        let used_up = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset.as_str())];
        assert_eq!(wait(&used_up), Some(40 * SECOND));
        let gitlab = [("ratelimit-remaining", "0"), ("ratelimit-reset", reset.as_str())];
        assert_eq!(wait(&gitlab), Some(40 * SECOND));
        let both = [used_up[0], used_up[1], ("retry-after", "3")];
        assert_eq!(wait(&both), Some(3 * SECOND));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "2026-11-15T08:00:00Z".parse().unwrap();
        let read = |text| parse_retry_after(text, now);
        assert_eq!(read(" 12 "), Some(12 * SECOND));
        assert_eq!(read("Sun, 15 Nov 2026 08:00:30 GMT"), Some(30 * SECOND));
        assert_eq!(read("Sun, 15 Nov 2026 07:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("soon"), None);
        assert_eq!(read("-1"), None);
    }
}
