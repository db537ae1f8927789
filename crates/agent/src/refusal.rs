//! Classification of errors between an agent and its model, from the message that the agent prints.

use crate::report::{AgentOutcome, QuotaReset};

/// Decides whether the model refused or the quota is exhausted. A server error is never a quota.
pub(crate) fn judge(status: Option<u16>, message: &str, until: Option<QuotaReset>) -> AgentOutcome {
    let status = status.or_else(|| status_in(message));
    let message = message.trim().to_owned();
    let dry = match status {
        Some(402 | 429) => true,
        Some(500..) => false,
        Some(_) | None => speaks_of_quota(&message),
    };
    if dry {
        let until = until.or_else(|| until_in(&message));
        return AgentOutcome::QuotaExhausted { message, until };
    }
    AgentOutcome::ModelRefused { status, message }
}

/// Returns whether a message is about the connection to the model rather than about the work.
pub(crate) fn speaks_of_model(message: &str) -> bool {
    let message = message.to_lowercase();
    status_in(&message).is_some()
        || speaks_of_quota(&message)
        || MODEL_WORDS.iter().any(|words| message.contains(words))
}

fn speaks_of_quota(message: &str) -> bool {
    let message = message.to_lowercase();
    QUOTA_WORDS.iter().any(|words| message.contains(words))
}

const MODEL_WORDS: [&str; 9] = [
    "high demand",
    "at capacity",
    "overloaded",
    "connection failed",
    "error sending request",
    "unable to connect",
    "stream disconnected",
    "timed out",
    "missing environment variable",
];

const QUOTA_WORDS: [&str; 10] = [
    "rate limit",
    "rate_limit",
    "ratelimit",
    "quota",
    "usage limit",
    "usage_limit",
    "spend limit",
    "hit your limit",
    "too many requests",
    "credit balance is too low",
];

/// Finds an HTTP status in a message: `401 …`, `API Error: 500 …`, `… status 429 …`, `… status: 429`.
fn status_in(message: &str) -> Option<u16> {
    let lower = message.to_lowercase();
    let after = ["api error:", "status code", "status:", "status"]
        .into_iter()
        .filter_map(|mark| lower.split_once(mark).map(|(_, rest)| rest));
    std::iter::once(lower.as_str()).chain(after).find_map(leading_status)
}

fn leading_status(text: &str) -> Option<u16> {
    let text = text.trim_start_matches([' ', ':']);
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let status = text.get(..3).filter(|_| digits == 3)?.parse().ok()?;
    (400..600).contains(&status).then_some(status)
}

/// Finds the time of the reset: `…|1794728000`, `try again at …`, `try again in …`, `resets …`.
fn until_in(message: &str) -> Option<QuotaReset> {
    if let Some((_, seconds)) = message.rsplit_once('|')
        && let Ok(seconds) = seconds.trim().parse()
    {
        return Some(QuotaReset::UnixSecs(seconds));
    }
    let words = ["try again at ", "try again in ", "resets at ", "resets "]
        .into_iter()
        .find_map(|mark| message.split_once(mark).map(|(_, rest)| rest))?;
    let end = words.find(". ").or_else(|| words.find('\n')).unwrap_or(words.len());
    let words = words[..end].trim_end_matches('.').trim();
    (!words.is_empty()).then(|| QuotaReset::Words(words.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(message: &str, status: Option<u16>) {
        let expected = AgentOutcome::ModelRefused { status, message: message.to_owned() };
        assert_eq!(judge(None, message, None), expected);
    }

    #[track_caller]
    fn dry(status: Option<u16>, message: &str, until: Option<QuotaReset>) {
        let expected = AgentOutcome::QuotaExhausted { message: message.to_owned(), until };
        assert_eq!(judge(status, message, None), expected);
    }

    #[test]
    fn a_status_is_found_where_agents_put_it() {
        refused("401 invalid api key", Some(401));
        refused("unexpected status 401 Unauthorized: no, url: http://x/500", Some(401));
        refused("API Error: 500 server blew up", Some(500));
        refused("Failed to authenticate. API Error: 401 invalid api key", Some(401));
        refused("exceeded retry limit, last status: 503 Service Unavailable", Some(503));
        refused("Connection error.", None);
        refused("4012 apples", None);
        refused("250 ok", None);
        refused("éé", None);
    }

    #[test]
    fn an_empty_purse_is_told_from_a_refusal() {
        dry(Some(429), "slow down", None);
        dry(Some(402), "pay first", None);
        dry(Some(400), "Your credit balance is too low to access the API", None);
        dry(None, "exceeded retry limit, last status: 429 Too Many Requests", None);
        dry(None, "Quota exceeded. Check your plan and billing details.", None);
        refused("529 rate limit service overloaded", Some(529));
    }

    #[test]
    fn the_end_of_a_drought_is_kept_as_it_was_told() {
        let words = |text: &str| Some(QuotaReset::Words(text.to_owned()));
        dry(
            None,
            "You've hit your usage limit. Upgrade or try again at Nov 20th, 2026 3:45 PM.",
            words("Nov 20th, 2026 3:45 PM"),
        );
        dry(None, "Rate limit reached. Please try again in 1.2s. Bye.", words("1.2s"));
        dry(Some(429), "You've hit your limit · resets 3pm (UTC)", words("3pm (UTC)"));
        dry(None, "usage limit reached|1794728000", Some(QuotaReset::UnixSecs(1_794_728_000)));
        assert_eq!(
            judge(Some(429), "resets 3pm", Some(QuotaReset::InSecs(30))),
            AgentOutcome::QuotaExhausted {
                message: "resets 3pm".to_owned(),
                until: Some(QuotaReset::InSecs(30))
            }
        );
    }

    #[test]
    fn trouble_with_the_work_is_not_trouble_with_the_model() {
        assert!(speaks_of_model("We’re currently experiencing high demand"));
        assert!(speaks_of_model("unexpected status 401 Unauthorized"));
        assert!(!speaks_of_model("ran out of room in the model's context window"));
    }
}
