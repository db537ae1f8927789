//! Meaning of a status, and the part of a response's text that can be shown.

use host::clock;
use hyper::header::LOCATION;
use jiff::SignedDuration;
use model::escape::escape_line;
use serde::Deserialize;
use serde_json::Value;

use super::retry::{is_busy, read_wait};
use super::{Client, HttpRequest, HttpResponse};
use crate::error::{ForgeError, ForgeResult, ServerMessage};

/// Length limit of a forge's text within a sentence.
const MESSAGE_MAX_CHARS: usize = 200;

/// Body of an error: a sentence, or a list, or a list for each field.
#[derive(Deserialize)]
struct ErrorBody {
    message: Option<Value>,
    /// Used without a message.
    error_description: Option<Value>,
    error: Option<Value>,
    /// Details.
    errors: Option<Value>,
}

impl Client {
    /// Turns the status of a response into an error, unless it means success.
    pub(crate) fn check_status(
        &self,
        request: &HttpRequest,
        response: &HttpResponse,
    ) -> ForgeResult<()> {
        let (host, action) = (self.host.clone(), request.action.clone());
        let message = || ServerMessage(self.show(&text_of(&response.body)));
        let status = response.status.as_u16();
        Err(match status {
            200..=299 => return Ok(()),
            _ if is_busy(response.status, &response.headers) => {
                let wait = read_wait(&response.headers);
                let wait = wait.and_then(|wait| SignedDuration::try_from(wait).ok());
                let until = wait.and_then(|wait| clock::now().checked_add(wait).ok());
                ForgeError::RateLimited { host, until }
            }
            // Never followed: most ways of following turn a write into a read, or send the token elsewhere.
            300..=399 => {
                let to = response.headers.get(LOCATION).and_then(|to| to.to_str().ok());
                ForgeError::Moved { host, to: to.map(|to| self.show(to)) }
            }
            401 => ForgeError::Unauthorized { host, message: message() },
            403 | 423 => ForgeError::Forbidden { host, action, message: message() },
            404 | 410 => ForgeError::NotFound { host, action, message: message() },
            405 | 409 | 412 => ForgeError::Conflict { host, action, message: message() },
            400..=499 => ForgeError::Invalid { host, action, message: message() },
            500..=599 => ForgeError::Server { host, action, status, message: message() },
            _ => ForgeError::Unreadable { host, action, reason: format!("status {status}") },
        })
    }

    /// Prepares text from a forge for a sentence.
    pub(super) fn show(&self, text: &str) -> String {
        // Redacted while it is whole: half a token would not be recognised.
        let redacted = self.redactor.redact(text);
        let line = redacted.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = line.chars().take(MESSAGE_MAX_CHARS).collect();
        escape_line(&short).into_owned()
    }
}

/// Returns the message of a JSON body, or a plain text. A page of HTML is not shown.
fn text_of(body: &[u8]) -> String {
    if let Ok(ErrorBody { message, error_description, error, errors }) =
        serde_json::from_slice(body)
    {
        let main = [message, error_description, error].into_iter().flatten();
        let main = main.into_iter().find(|value| !value.is_null());
        let mut parts = Vec::new();
        main.iter().chain(&errors).for_each(|value| gather_texts(value, &mut parts));
        return parts.join(": ");
    }
    let text = String::from_utf8_lossy(body);
    if text.trim_start().starts_with(['<', '{', '[', '"']) {
        String::new()
    } else {
        text.into_owned()
    }
}

/// Collects all texts in a value; of objects with a message only that, since the rest are codes.
fn gather_texts(value: &Value, parts: &mut Vec<String>) {
    match value {
        Value::String(text) => parts.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| gather_texts(value, parts)),
        Value::Object(fields) => match fields.get("message") {
            Some(message) => gather_texts(message, parts),
            None => fields.iter().for_each(|(name, value)| {
                let mut inner = Vec::new();
                gather_texts(value, &mut inner);
                parts.push(format!("{name} {}", inner.join(", ")));
            }),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_of_an_error_is_understood() {
        let github =
            br#"{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom",
            "message":"A pull request already exists for a:b."}],"documentation_url":"x"}"#;
        assert_eq!(text_of(github), "Validation Failed: A pull request already exists for a:b.");
        assert_eq!(text_of(br#"{"message":["Another one","and"]}"#), "Another one: and");
        let fields = br#"{"message":{"note":["can't be blank"]}}"#;
        assert_eq!(text_of(fields), "note can't be blank");
        let scope = br#"{"error":"insufficient_scope","error_description":"needs api"}"#;
        assert_eq!(text_of(scope), "needs api");
        assert_eq!(text_of(br#"{"error":"404 Not Found"}"#), "404 Not Found");
    }

    #[test]
    fn the_text_of_an_answer_are_its_message_or_its_plain_text() {
        assert_eq!(text_of(br#"{"message":"not found","url":"x"}"#), "not found");
        assert_eq!(text_of(br#"{"message":null}"#), "");
        assert_eq!(text_of(b"404 page not found\n"), "404 page not found\n");
        assert_eq!(text_of(b"<!DOCTYPE html><p>"), "");
        assert_eq!(text_of(b"null"), "null");
        assert_eq!(text_of(b""), "");
    }

    #[test]
    fn the_text_of_recorded_answers_are_found() {
        let words = |text: &str| text_of(text.as_bytes());
        let bad_token = include_str!("../../tests/samples/api_error_401_bad_token.json");
        assert_eq!(words(bad_token), "invalid username, password or token");
        let scope = include_str!("../../tests/samples/api_error_403_scope.json");
        assert!(words(scope).contains("required=[write:issue]"));
        assert_eq!(words(include_str!("../../tests/samples/api_error_404.json")), "not found");
        let empty = include_str!("../../tests/samples/api_error_422_empty_comment.json");
        assert_eq!(words(empty), "[Body]: Required");
        let missing =
            include_str!("../../tests/samples/api_error_500_comment_on_missing_issue.json");
        assert_eq!(words(missing), "");
    }
}
