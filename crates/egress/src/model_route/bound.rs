//! The most that a call can use, read from its body before it is sent.

use std::fmt;

use model::wire::WireApi;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::tap::BYTES_PER_TOKEN_UP;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallBound {
    /// Size of the body; 0 if it is not known before it has passed.
    pub(super) body_bytes: u64,
    /// The longest answer that the body permits, in tokens. `None` if it states no limit, or none that every server
    /// reads alike.
    pub(super) answer: Option<u64>,
}

impl CallBound {
    pub(super) fn read(api: WireApi, body: &[u8]) -> Self {
        let mut json = serde_json::Deserializer::from_slice(body);
        let stated = json.deserialize_map(BodyReader { api }).ok();
        let stated = stated.filter(|_| json.end().is_ok());
        Self { body_bytes: body.len() as u64, answer: stated.and_then(|stated| stated.answer()) }
    }

    /// The most tokens that the prompt can have: each stands for at least one byte.
    pub(super) fn prompt_most(&self) -> u64 {
        self.body_bytes
    }

    /// A prompt of ordinary text.
    pub(super) fn prompt_usual(&self) -> u64 {
        self.body_bytes / BYTES_PER_TOKEN_UP
    }
}

/// Limits that a body states. Servers differ in which of several fields of one name they read, and in whether its case
/// counts, so the largest of all counts here.
#[derive(Debug, Default)]
struct StatedLimits {
    tokens: Option<u64>,
    choices: Option<u64>,
    is_unclear: bool,
}

impl StatedLimits {
    fn answer(&self) -> Option<u64> {
        let tokens = self.tokens.filter(|_| !self.is_unclear)?;
        Some(tokens.saturating_mul(self.choices.unwrap_or(1).max(1)))
    }

    fn state(limit: &mut Option<u64>, value: &Value) -> bool {
        let Some(number) = value.as_u64() else { return false };
        *limit = Some(limit.map_or(number, |known| known.max(number)));
        true
    }
}

struct BodyReader {
    api: WireApi,
}

impl<'de> Visitor<'de> for BodyReader {
    type Value = StatedLimits;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a call to a model")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<StatedLimits, M::Error> {
        let names: &[&str] = match self.api {
            WireApi::Messages => &["MAX_TOKENS"],
            WireApi::Chat => &["MAX_TOKENS", "MAX_COMPLETION_TOKENS"],
            WireApi::Responses => &["MAX_OUTPUT_TOKENS"],
        };
        let mut stated = StatedLimits::default();
        while let Some(name) = map.next_key::<String>()? {
            // Both steps: some letters have a second lower-case or upper-case form.
            let name = name.to_lowercase().to_uppercase();
            let limit = match name.as_str() {
                name if names.contains(&name) => &mut stated.tokens,
                "N" if self.api == WireApi::Chat => &mut stated.choices,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            stated.is_unclear |= !StatedLimits::state(limit, &map.next_value()?);
        }
        Ok(stated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(api: WireApi, body: &str, expected: Option<u64>) {
        let bound = CallBound::read(api, body.as_bytes());
        assert_eq!(bound.answer, expected, "{body}");
        assert_eq!(bound.body_bytes, body.len() as u64);
    }

    #[test]
    fn each_wire_api_has_its_own_limit() {
        check(WireApi::Messages, r#"{"model":"m","max_tokens":100,"messages":[{}]}"#, Some(100));
        check(WireApi::Chat, r#"{"max_tokens":100}"#, Some(100));
        check(WireApi::Chat, r#"{"max_completion_tokens":200,"max_tokens":100}"#, Some(200));
        check(WireApi::Responses, r#"{"max_output_tokens":300}"#, Some(300));
        check(WireApi::Responses, r#"{"max_tokens":300}"#, None);
        check(WireApi::Messages, r#"{"max_output_tokens":300}"#, None);
    }

    #[test]
    fn several_answers_are_several_limits() {
        check(WireApi::Chat, r#"{"max_tokens":100,"n":4}"#, Some(400));
        check(WireApi::Chat, r#"{"max_tokens":18446744073709551615,"n":4}"#, Some(u64::MAX));
        check(WireApi::Messages, r#"{"max_tokens":100,"n":4}"#, Some(100));
    }

    #[test]
    fn of_several_spellings_the_largest_counts() {
        check(WireApi::Messages, r#"{"max_tokens":1,"max_tokens":9000}"#, Some(9000));
        check(WireApi::Messages, r#"{"max_tokens":9000,"max_tokens":1}"#, Some(9000));
        check(WireApi::Messages, r#"{"max_tokens":1,"Max_Tokens":9000}"#, Some(9000));
        check(WireApi::Messages, r#"{"max_tokens":1,"max_to\u212aen\u017f":9000}"#, Some(9000));
        check(WireApi::Messages, r#"{"max_tokens":1,"max\u005ftokens":9000}"#, Some(9000));
        check(WireApi::Messages, r#"{"x":{"max_tokens":9000},"max_tokens":1}"#, Some(1));
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_none() {
        for value in ["null", "-1", "1.5", "1e9", "\"100\"", "[1]"] {
            check(WireApi::Messages, &format!(r#"{{"max_tokens":{value}}}"#), None);
            let twice = format!(r#"{{"max_tokens":{value},"max_tokens":1}}"#);
            check(WireApi::Messages, &twice, None);
        }
        for body in ["", "{}", "[]", "1", "{\"max_tokens\":1", "{\"max_tokens\":1}{}", "\u{feff}{}"]
        {
            check(WireApi::Messages, body, None);
        }
    }
}
