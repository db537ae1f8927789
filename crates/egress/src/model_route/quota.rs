//! The time at which a busy or exhausted server will accept calls again, from its response headers.

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};

/// Reads the time from a response, if it is a temporary refusal.
///
/// `Retry-After` takes precedence. Without it the earliest reset of the exhausted windows counts, or of all
/// windows if none is reported as exhausted.
pub(super) fn waiting_until(
    status: StatusCode,
    headers: &HeaderMap,
    now: Timestamp,
) -> Option<Timestamp> {
    if !is_for_now(status) {
        return None;
    }
    retry_after(headers, now).or_else(|| first_reset(headers, now)).filter(|time| *time > now)
}

/// Returns whether a status is temporary: too many requests, overloaded (529), unavailable, and the status
/// some servers use for quota.
fn is_for_now(status: StatusCode) -> bool {
    matches!(status.as_u16(), 402 | 403 | 429 | 503 | 529)
}

fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    if let Some(millis) = text(headers, "retry-after-ms").and_then(|text| text.parse().ok()) {
        return now.checked_add(SignedDuration::from_millis(millis)).ok();
    }
    let value = text(headers, "retry-after")?;
    match value.parse::<f64>() {
        Ok(secs) => later(now, secs),
        Err(_) => DateTimeParser::new().parse_timestamp(value).ok(),
    }
}

fn first_reset(headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    let mut used_up = None;
    let mut any = None;
    for (name, value) in headers {
        let Some(remaining) = remaining_name(name.as_str()) else { continue };
        let Some(time) = value.to_str().ok().and_then(|value| parse_reset(value, now)) else {
            continue;
        };
        if time <= now {
            continue;
        }
        keep_first(&mut any, time);
        if headers.get(remaining).is_some_and(is_zero) {
            keep_first(&mut used_up, time);
        }
    }
    used_up.or(any)
}

/// Returns the header with the remainder of the window whose reset header is `name`:
/// `anthropic-ratelimit-tokens-reset` or `x-ratelimit-reset-tokens`.
fn remaining_name(name: &str) -> Option<String> {
    if let Some(window) = name.strip_prefix("x-ratelimit-reset") {
        return Some(format!("x-ratelimit-remaining{window}"));
    }
    let window = name.strip_prefix("anthropic-ratelimit-")?.strip_suffix("-reset")?;
    Some(format!("anthropic-ratelimit-{window}-remaining"))
}

/// Parses an RFC 3339 time, seconds since 1970, or a duration such as `6m0s`, `1.5s` or `20ms`.
fn parse_reset(value: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(time) = value.parse::<Timestamp>() {
        return Some(time);
    }
    match value.parse::<f64>() {
        // A small number cannot be a current date, so it counts from now.
        Ok(secs) if secs < 1e9 => later(now, secs),
        Ok(secs) if secs < 1e11 => later(Timestamp::UNIX_EPOCH, secs),
        Ok(millis) => later(Timestamp::UNIX_EPOCH, millis / 1e3),
        Err(_) => later(now, parse_spans(value)?),
    }
}

/// Reads durations such as `1m30.5s`. Servers print floats of any length, which jiff does not read.
fn parse_spans(value: &str) -> Option<f64> {
    let mut secs = 0.0;
    let mut rest = value.trim();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let count: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        secs += count
            * match &rest[..letters] {
                "d" => 86_400.0,
                "h" => 3_600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                _ => return None,
            };
        rest = &rest[letters..];
    }
    Some(secs)
}

fn later(from: Timestamp, secs: f64) -> Option<Timestamp> {
    let span = SignedDuration::try_from_secs_f64(secs).ok().filter(|span| !span.is_negative())?;
    from.checked_add(span).ok()
}

fn keep_first(first: &mut Option<Timestamp>, time: Timestamp) {
    *first = Some(first.map_or(time, |first| first.min(time)));
}

fn is_zero(value: &HeaderValue) -> bool {
    value.to_str().is_ok_and(|text| text.trim().parse::<f64>().is_ok_and(|left| left <= 0.0))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderName;

    fn check(status: u16, headers: &[(&'static str, &str)], expected: Option<&str>) {
        let map = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        let now = "2025-01-15T12:00:00Z".parse().unwrap();
        let time = waiting_until(StatusCode::from_u16(status).unwrap(), &map, now);
        assert_eq!(time, expected.map(|text| text.parse().unwrap()), "{headers:?}");
    }

    #[test]
    fn retry_after_is_what_the_server_wants() {
        let reset = ("x-ratelimit-reset-requests", "1s");
        check(429, &[("retry-after", "30"), reset], Some("2025-01-15T12:00:30Z"));
        let date = "Wed, 15 Jan 2025 12:05:00 GMT";
        check(503, &[("retry-after", date)], Some("2025-01-15T12:05:00Z"));
        check(429, &[("retry-after-ms", "1500")], Some("2025-01-15T12:00:01.5Z"));
    }

    #[test]
    fn without_it_the_first_window_that_is_used_up_counts() {
        check(
            429,
            &[
                ("anthropic-ratelimit-requests-reset", "2025-01-15T12:00:01Z"),
                ("anthropic-ratelimit-requests-remaining", "40"),
                ("anthropic-ratelimit-tokens-reset", "2025-01-15T12:10:00Z"),
                ("anthropic-ratelimit-tokens-remaining", "0"),
            ],
            Some("2025-01-15T12:10:00Z"),
        );
        let unified = ("anthropic-ratelimit-unified-reset", "1736946000");
        check(429, &[unified], Some("2025-01-15T13:00:00Z"));
        let windows =
            [("x-ratelimit-reset-requests", "6m0s"), ("x-ratelimit-reset-tokens", "20ms")];
        check(429, &windows, Some("2025-01-15T12:00:00.02Z"));
        check(429, &[("x-ratelimit-reset", "90")], Some("2025-01-15T12:01:30Z"));
        check(529, &[("x-ratelimit-reset-tokens", "1h2m3.5s")], Some("2025-01-15T13:02:03.5Z"));
        check(429, &[("x-ratelimit-reset", "0.50000000000000s")], Some("2025-01-15T12:00:00.5Z"));
    }

    #[test]
    fn an_answer_that_is_no_refusal_for_now_tells_nothing() {
        check(200, &[("retry-after", "30")], None);
        check(401, &[("retry-after", "30")], None);
        check(429, &[], None);
        check(429, &[("retry-after", "soon"), ("x-ratelimit-reset-tokens", "1 moon")], None);
        check(429, &[("retry-after", "0")], None);
        check(429, &[("retry-after", "-5"), ("x-ratelimit-reset-x", "1e300")], None);
    }
}
