//! What a status means, and what of an answer's words can be shown.

use host::clock;
use hyper::header::LOCATION;
use jiff::SignedDuration;
use model::escape::escape_line;
use serde::Deserialize;

use super::{Ask, Client, Reply, retry_after};
use crate::error::{ForgeError, Said};

/// As much of a forge's words as a sentence can carry.
const SAID_MAX: usize = 200;

/// How forges of this kind say what is wrong.
#[derive(Deserialize)]
struct Complaint {
    message: Option<String>,
}

impl Client {
    /// The error that an answer stands for; `None` if it means success.
    pub(super) fn read_status(&self, ask: &Ask, reply: &Reply) -> Option<ForgeError> {
        let (host, action) = (self.base.host.clone(), ask.action.clone());
        let said = || Said(self.show(&words_of(&reply.body)));
        let status = reply.status.as_u16();
        Some(match status {
            200..=299 => return None,
            // Never followed: most ways of following turn a write into a read, or carry the token elsewhere.
            300..=399 => {
                let to = reply.headers.get(LOCATION).and_then(|to| to.to_str().ok());
                ForgeError::Moved { host, to: to.map(|to| self.show(to)) }
            }
            401 => ForgeError::Unauthorized { host, said: said() },
            403 | 423 => ForgeError::Forbidden { host, action, said: said() },
            404 | 410 => ForgeError::NotFound { host, action, said: said() },
            405 | 409 | 412 => ForgeError::Conflict { host, action, said: said() },
            429 => {
                let wait = retry_after(reply).and_then(|wait| SignedDuration::try_from(wait).ok());
                let until = wait.and_then(|wait| clock::now().checked_add(wait).ok());
                ForgeError::RateLimited { host, until }
            }
            400..=499 => ForgeError::Invalid { host, action, said: said() },
            500..=599 => ForgeError::Server { host, action, status, said: said() },
            _ => ForgeError::Unreadable { host, action, reason: format!("status {status}") },
        })
    }

    /// Makes words from a forge fit for a sentence.
    pub(super) fn show(&self, words: &str) -> String {
        // Redacted while it is whole, since half a token is known by nobody.
        let redacted = self.redactor.redact(words);
        let line = redacted.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = line.chars().take(SAID_MAX).collect();
        escape_line(&short).into_owned()
    }
}

/// The message of a JSON body, or a plain text. A page of HTML says nothing to a terminal.
fn words_of(body: &[u8]) -> String {
    if let Ok(complaint) = serde_json::from_slice::<Complaint>(body) {
        return complaint.message.unwrap_or_default();
    }
    let text = String::from_utf8_lossy(body);
    if text.trim_start().starts_with(['<', '{', '[', '"']) {
        String::new()
    } else {
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_an_answer_are_its_message_or_its_plain_text() {
        assert_eq!(words_of(br#"{"message":"not found","url":"x"}"#), "not found");
        assert_eq!(words_of(br#"{"message":null}"#), "");
        assert_eq!(words_of(b"404 page not found\n"), "404 page not found\n");
        assert_eq!(words_of(b"<!DOCTYPE html><p>"), "");
        assert_eq!(words_of(b"null"), "null");
        assert_eq!(words_of(b""), "");
    }

    #[test]
    fn the_words_of_recorded_answers_are_found() {
        let words = |text: &str| words_of(text.as_bytes());
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
