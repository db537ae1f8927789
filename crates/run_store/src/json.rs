//! Redaction of JSON.
//!
//! Redacting only the finished text could miss a secret that JSON spells differently, and could swallow syntax of the
//! JSON itself. So each string of the text is parsed, redacted and serialised again; everything between the strings
//! stays, and with it the order of the keys. Then the whole text is redacted, for values that are secret because of
//! their key.

use model::redact::Redactor;
use serde::de::IgnoredAny;

/// Redacts a text that is JSON, and leaves JSON.
pub(crate) fn redact_json(redactor: &Redactor, json: &str) -> serde_json::Result<String> {
    let strings_done = redact_strings(redactor, json)?;
    let whole = redactor.redact(&strings_done);
    // A number that equals a secret stays: a record that cannot be parsed is useless.
    match serde_json::from_str::<IgnoredAny>(&whole) {
        Ok(_) => Ok(whole.into_owned()),
        Err(_) => Ok(strings_done),
    }
}

fn redact_strings(redactor: &Redactor, json: &str) -> serde_json::Result<String> {
    let mut redacted = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(start) = rest.find('"') {
        let (before, from_quote) = rest.split_at(start);
        let (token, after) = from_quote.split_at(string_len(from_quote));
        redacted.push_str(before);
        let value: String = serde_json::from_str(token)?;
        redacted.push_str(&serde_json::to_string(&redactor.redact(&value))?);
        rest = after;
    }
    redacted.push_str(rest);
    Ok(redacted)
}

/// Length of the string that the text starts with, quotes included.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use model::secret::Secret;

    use super::*;

    #[track_caller]
    fn check(secret: &str, json: &str, expected: &str) {
        let redactor = Redactor::new([Secret::new(secret)]);
        assert_eq!(redact_json(&redactor, json).unwrap(), expected);
    }

    #[test]
    fn what_holds_no_secret_stays_as_it_is() {
        let json = r#"{ "b": [1, -2.5e3, true, null], "a": "x\"y\\", "": "grün \n" }"#;
        check("hunter22", json, json);
    }

    #[test]
    fn strings_and_keys_are_redacted() {
        check("hunter22", r#"{"hunter22":["a hunter22 b"]}"#, r#"{"***":["a *** b"]}"#);
    }

    #[test]
    fn a_secret_with_quotes_and_line_breaks_is_found() {
        check("say \"hi\"\nnow", r#"["x say \"hi\"\u000anow y"]"#, r#"["x *** y"]"#);
        check("back\\slash", r#"["back\\slash"]"#, r#"["***"]"#);
    }

    #[test]
    fn a_value_that_is_secret_because_of_its_key_is_found() {
        check("hunter22", r#"{"X-Api-Key": "abc"}"#, r#"{"X-Api-Key": "***"}"#);
    }

    #[test]
    fn the_result_is_json_whatever_the_secret_is() {
        check("1234567", r#"{"n": 1234567, "s": "1234567"}"#, r#"{"n": 1234567, "s": "***"}"#);
        check(r#""a":"x""#, r#"{"a":"x","b":"y"}"#, r#"{"a":"x","b":"y"}"#);
    }
}
