//! Whether and when to ask again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{HeaderMap, RETRY_AFTER};
use jiff::{SignedDuration, Timestamp};

use super::Repeat;

const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// How forges say how many requests are left, and when there will be more (seconds since 1970).
const REMAINING: [&str; 2] = ["x-ratelimit-remaining", "ratelimit-remaining"];
const RESET: [&str; 2] = ["x-ratelimit-reset", "ratelimit-reset"];

/// How long to wait for a forge, and how often to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// For a connection, and again for its TLS handshake.
    pub connect: Duration,
    /// For a whole answer.
    pub answer: Duration,
    /// How often to ask in all, at least once.
    pub attempts: u32,
    /// Before the second attempt; twice that before each further one.
    pub backoff: Duration,
    /// The longest wait that a forge may ask for; beyond it the person is told.
    pub retry_after_max: Duration,
}

impl Default for Patience {
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

/// What came of an attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tried {
    /// From 1.
    pub(super) attempt: u32,
    pub(super) repeat: Repeat,
    pub(super) trouble: Trouble,
    pub(super) retry_after: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// An answer that will not change.
    None,
    /// Turned away before anything was done.
    Busy,
    /// The forge failed.
    Failed,
    /// No answer, or half of one.
    NoAnswer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Take the outcome as it is.
    Take,
    /// Ask again after this time.
    Wait(Duration),
}

impl Patience {
    pub(super) fn next_step(&self, tried: &Tried) -> Step {
        self.next_step_at(tried, random())
    }

    /// Waits as long as before another attempt.
    pub(crate) async fn rest(&self, attempt: u32) {
        tokio::time::sleep(self.backoff_after(attempt, random())).await;
    }

    fn next_step_at(&self, tried: &Tried, random: u64) -> Step {
        let may_repeat = match (tried.trouble, tried.repeat) {
            (Trouble::None, _) => false,
            // Whoever is turned away at the door has done nothing inside.
            (Trouble::Busy, _) => true,
            (Trouble::Failed | Trouble::NoAnswer, repeat) => repeat == Repeat::Harmless,
        };
        if !may_repeat || tried.attempt >= self.attempts {
            return Step::Take;
        }
        let backoff = self.backoff_after(tried.attempt, random);
        match tried.retry_after {
            Some(asked) if asked > self.retry_after_max => Step::Take,
            Some(asked) => Step::Wait(asked.max(backoff)),
            None => Step::Wait(backoff),
        }
    }

    /// Between half and all of a time that doubles with every attempt.
    fn backoff_after(&self, attempt: u32, random: u64) -> Duration {
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        let whole = self.backoff.saturating_mul(doubled).min(BACKOFF_MAX);
        let share = (random % 1024) as u32;
        whole / 2 + whole / 2 * share / 1024
    }
}

/// Whether a client was turned away because it asks too much. Some forges say it with 403, and then only the headers
/// tell it from a right that is missing.
pub(super) fn is_busy(status: StatusCode, headers: &HeaderMap) -> bool {
    match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::FORBIDDEN => headers.contains_key(RETRY_AFTER) || is_used_up(headers),
        _ => false,
    }
}

/// How long a forge wants to be left alone.
pub(super) fn read_wait(headers: &HeaderMap) -> Option<Duration> {
    read_wait_at(headers, host::clock::now())
}

fn read_wait_at(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    after.and_then(|text| parse_retry_after(text, now)).or_else(|| {
        // The time of the reset is on every answer, and means something only when nothing is left.
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

/// Enough chance to keep two clients from asking in step; nothing depends on it being hard to guess.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Reads `Retry-After`: seconds, or a date. A date in the past is no wait.
fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(secs) = text.parse::<u32>() {
        return Some(Duration::from_secs(secs.into()));
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    let wait: SignedDuration = date.duration_since(now);
    Some(Duration::try_from(wait).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn patience() -> Patience {
        Patience {
            attempts: 3,
            backoff: SECOND,
            retry_after_max: 10 * SECOND,
            ..Patience::default()
        }
    }

    #[track_caller]
    fn check(repeat: Repeat, trouble: Trouble, attempt: u32, after: Option<u64>, expected: Step) {
        let retry_after = after.map(Duration::from_secs);
        let tried = Tried { attempt, repeat, trouble, retry_after };
        assert_eq!(patience().next_step_at(&tried, 0), expected);
    }

    #[test]
    fn only_what_is_harmless_is_repeated() {
        let half = Step::Wait(SECOND / 2);
        for trouble in [Trouble::Failed, Trouble::NoAnswer] {
            check(Repeat::Harmless, trouble, 1, None, half);
            check(Repeat::Never, trouble, 1, None, Step::Take);
            check(Repeat::Never, trouble, 1, Some(1), Step::Take);
        }
        check(Repeat::Never, Trouble::Busy, 1, None, half);
        check(Repeat::Harmless, Trouble::None, 1, Some(1), Step::Take);
    }

    #[test]
    fn the_attempts_are_counted_and_the_waits_grow() {
        check(Repeat::Harmless, Trouble::Failed, 2, None, Step::Wait(SECOND));
        check(Repeat::Harmless, Trouble::Failed, 3, None, Step::Take);
        assert_eq!(patience().backoff_after(40, 0), BACKOFF_MAX / 2);
    }

    #[test]
    fn chance_moves_the_wait_between_half_and_all() {
        for random in [0, 1, 511, 1023, u64::MAX] {
            let wait = patience().backoff_after(1, random);
            assert!((SECOND / 2..SECOND).contains(&wait), "{wait:?}");
        }
    }

    #[test]
    fn a_forge_may_ask_for_some_time_and_not_for_any() {
        check(Repeat::Harmless, Trouble::Busy, 1, Some(7), Step::Wait(7 * SECOND));
        check(Repeat::Harmless, Trouble::Busy, 1, Some(0), Step::Wait(SECOND / 2));
        check(Repeat::Harmless, Trouble::Busy, 1, Some(11), Step::Take);
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_forge_that_is_busy_is_told_from_one_that_forbids() {
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
