//! Clouds that offer models of Anthropic under paths and bodies of their own. The box speaks the Messages API; the call is
//! rewritten outside, so that no agent has to know where its model runs.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Form in which a server takes calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// As the box sends them.
    #[default]
    Plain,
    /// Google's Vertex AI: the model is in the path, below the publisher that the base URL ends with.
    Vertex,
    /// Amazon Bedrock: the model is in the path, and streams are frames of bytes.
    Bedrock,
}

/// A call as the cloud takes it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RewrittenCall {
    /// Path below the base URL.
    pub(super) path: String,
    pub(super) body: Bytes,
}

impl Dialect {
    /// Rewrites a call of the Messages API. `None` if its body is not one. A model that the user chose replaces the one that
    /// the client names: a client knows other names for the same model.
    pub(super) fn rewrite(
        self,
        body: &[u8],
        chosen: Option<&str>,
        betas: &[String],
    ) -> Option<RewrittenCall> {
        let mut call: Map<String, Value> = serde_json::from_slice(body).ok()?;
        let named = call.remove("model")?;
        let model = chosen.or(named.as_str())?;
        let is_stream = call.get("stream").and_then(Value::as_bool).unwrap_or(false);
        let path = match self {
            Self::Plain => return None,
            Self::Vertex => {
                call.insert("anthropic_version".to_owned(), "vertex-2023-10-16".into());
                let verb = if is_stream { "streamRawPredict" } else { "rawPredict" };
                format!("/models/{}:{verb}", escape_segment(model))
            }
            Self::Bedrock => {
                call.remove("stream");
                call.insert("anthropic_version".to_owned(), "bedrock-2023-05-31".into());
                if !betas.is_empty() {
                    call.insert("anthropic_beta".to_owned(), betas.into());
                }
                let verb = if is_stream { "invoke-with-response-stream" } else { "invoke" };
                format!("/model/{}/{verb}", escape_segment(model))
            }
        };
        Some(RewrittenCall { path, body: serde_json::to_vec(&call).ok()?.into() })
    }
}

/// Escapes a name so that it stays one segment of a path.
fn escape_segment(name: &str) -> String {
    let escape = |byte: u8| match byte.is_ascii_alphanumeric() || b"-._@".contains(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    name.bytes().map(escape).collect()
}

/// Content type of Amazon's streams.
pub(crate) const FRAMES: &str = "application/vnd.amazon.eventstream";

/// Longest frame that is kept; the longest of Amazon's has 16 MiB.
const FRAME_MAX: usize = 24 << 20;
/// Bytes of a frame before its headers: two lengths and their checksum.
const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;

/// Turns Amazon's frames into the events of the Messages API.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    kept: Vec<u8>,
}

impl FrameReader {
    /// Takes bytes and returns the events that are complete. `None` if they are not frames.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        self.kept.extend_from_slice(piece);
        let mut events = Vec::new();
        loop {
            let Some(prelude) = self.kept.get(..8) else { return Some(events) };
            let number = |at: usize| {
                prelude[at..at + 4].iter().fold(0_usize, |all, byte| all << 8 | usize::from(*byte))
            };
            let (length, headers) = (number(0), number(4));
            if length > FRAME_MAX || length < PRELUDE + headers + CHECKSUM {
                return None;
            }
            if self.kept.len() < length {
                return Some(events);
            }
            let payload = &self.kept[PRELUDE + headers..length - CHECKSUM];
            events.extend(render_event(payload));
            self.kept.drain(..length);
        }
    }
}

#[derive(Deserialize)]
struct FramePayload {
    /// The event, in base64.
    bytes: Option<String>,
    message: Option<String>,
}

/// An event of the Messages API; a frame that carries an exception becomes an error.
fn render_event(payload: &[u8]) -> Vec<u8> {
    use base64ct::{Base64, Encoding};
    let Ok(frame) = serde_json::from_slice::<FramePayload>(payload) else { return Vec::new() };
    let event = frame.bytes.and_then(|text| Base64::decode_vec(&text).ok());
    let event = event.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let event = event.or_else(|| {
        let error = serde_json::json!({ "type": "api_error", "message": frame.message? });
        Some(serde_json::json!({ "type": "error", "error": error }))
    });
    let Some(event) = event else { return Vec::new() };
    let kind = event["type"].as_str().unwrap_or("message");
    format!("event: {kind}\ndata: {event}\n\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(dialect: Dialect, body: &str, chosen: Option<&str>, path: &str, expected: &str) {
        let call = dialect.rewrite(body.as_bytes(), chosen, &[]).unwrap();
        assert_eq!(
            (call.path.as_str(), std::str::from_utf8(&call.body).unwrap()),
            (path, expected)
        );
    }

    #[test]
    fn the_model_moves_into_the_path() {
        check(
            Dialect::Vertex,
            r#"{"model":"claude-x","stream":true,"max_tokens":1}"#,
            None,
            "/models/claude-x:streamRawPredict",
            r#"{"anthropic_version":"vertex-2023-10-16","max_tokens":1,"stream":true}"#,
        );
        check(
            Dialect::Vertex,
            r#"{"model":"claude-x"}"#,
            Some("claude-x@20260101"),
            "/models/claude-x@20260101:rawPredict",
            r#"{"anthropic_version":"vertex-2023-10-16"}"#,
        );
        check(
            Dialect::Bedrock,
            r#"{"model":"m","stream":true}"#,
            Some("eu.anthropic.claude-x-v1:0"),
            "/model/eu.anthropic.claude-x-v1%3A0/invoke-with-response-stream",
            r#"{"anthropic_version":"bedrock-2023-05-31"}"#,
        );
    }

    #[test]
    fn a_model_leads_to_no_other_path() {
        let call = Dialect::Bedrock.rewrite(br#"{"model":"../x?y#z/%2e"}"#, None, &[]).unwrap();
        assert_eq!(call.path, "/model/..%2Fx%3Fy%23z%2F%252e/invoke");
    }

    #[test]
    fn what_is_no_call_is_not_rewritten() {
        for body in ["", "[]", "{}", r#"{"model":1}"#, r#"{"model":"m"} x"#] {
            assert_eq!(Dialect::Vertex.rewrite(body.as_bytes(), None, &[]), None, "{body}");
        }
        assert_eq!(Dialect::Plain.rewrite(br#"{"model":"m"}"#, None, &[]), None);
    }

    /// One frame with a header of `headers` bytes.
    pub(crate) fn frame(headers: usize, payload: &str) -> Vec<u8> {
        let length = PRELUDE + headers + payload.len() + CHECKSUM;
        let mut bytes = u32::try_from(length).unwrap().to_be_bytes().to_vec();
        bytes.extend(u32::try_from(headers).unwrap().to_be_bytes());
        bytes.extend(vec![0; CHECKSUM + headers]);
        bytes.extend(payload.as_bytes());
        bytes.extend([0; CHECKSUM]);
        bytes
    }

    #[test]
    fn frames_become_events_however_they_are_cut() {
        // {"type":"ping"} and {"type":"message_stop"}
        let bytes = [
            frame(9, r#"{"bytes":"eyJ0eXBlIjoicGluZyJ9","p":"abc"}"#),
            frame(0, r#"{"bytes":"eyJ0eXBlIjoibWVzc2FnZV9zdG9wIn0="}"#),
            frame(3, r#"{"message":"Too many requests"}"#),
        ]
        .concat();
        let expected = "event: ping\ndata: {\"type\":\"ping\"}\n\n\
             event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n\
             event: error\ndata: {\"error\":{\"message\":\"Too many requests\",\"type\":\"api_error\"},\"type\":\"error\"}\n\n";
        for size in [1, 7, 40, bytes.len()] {
            let mut reader = FrameReader::default();
            let events: Vec<u8> =
                bytes.chunks(size).flat_map(|piece| reader.push(piece).unwrap()).collect();
            assert_eq!(String::from_utf8(events).unwrap(), expected, "{size}");
        }
    }

    #[test]
    fn what_are_no_frames_is_refused() {
        assert_eq!(FrameReader::default().push(b"<html>not frames at all</html>"), None);
        assert_eq!(FrameReader::default().push(&[0, 0, 0, 9, 0, 0, 0, 9]), None);
    }
}
