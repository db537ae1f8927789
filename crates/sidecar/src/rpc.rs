//! JSON-RPC 2.0: parses requests and renders responses. Pure.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::dispatcher::{CallError, CallErrorKind};

/// Largest batch: a batch must not get around the limits.
const BATCH_MAX: usize = 16;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

/// Content of a request body.
#[derive(Debug, PartialEq)]
pub(crate) enum RpcMessage {
    One(Result<RpcRequest, Value>),
    Batch(Vec<Result<RpcRequest, Value>>),
    /// Neither; this is the response.
    Malformed(Value),
}

#[derive(Debug, PartialEq)]
pub(crate) struct RpcRequest {
    pub(crate) method: String,
    pub(crate) params: Value,
    /// `None` for a notification, which gets no response.
    pub(crate) id: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireRequest {
    jsonrpc: String,
    method: String,
    #[serde(default)]
    params: Value,
    /// Absent and null are not the same.
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
}

fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Parses a body. Invalid UTF-8 is replaced, so that a comment with one odd byte is still a comment.
pub(crate) fn parse_message(body: &[u8]) -> RpcMessage {
    let text = String::from_utf8_lossy(body);
    match serde_json::from_str::<Value>(&text) {
        Err(error) => malformed(PARSE_ERROR, &error.to_string()),
        Ok(Value::Array(list)) if list.is_empty() => {
            malformed(INVALID_REQUEST, "the batch is empty")
        }
        Ok(Value::Array(list)) if list.len() > BATCH_MAX => {
            malformed(INVALID_REQUEST, &format!("more than {BATCH_MAX} calls in a batch"))
        }
        Ok(Value::Array(list)) => RpcMessage::Batch(list.into_iter().map(read_request).collect()),
        Ok(one) => RpcMessage::One(read_request(one)),
    }
}

fn malformed(code: i64, why: &str) -> RpcMessage {
    RpcMessage::Malformed(render_error(Value::Null, code, why))
}

/// The error is the response.
fn read_request(value: Value) -> Result<RpcRequest, Value> {
    let id = value.get("id").cloned().unwrap_or_default();
    if !matches!(id, Value::Null | Value::String(_) | Value::Number(_)) {
        let why = "the id is neither a text nor a number";
        return Err(render_error(Value::Null, INVALID_REQUEST, why));
    }
    match serde_json::from_value::<WireRequest>(value) {
        Err(error) => Err(render_error(id, INVALID_REQUEST, &error.to_string())),
        Ok(read) if read.jsonrpc != "2.0" => Err(render_error(id, INVALID_REQUEST, "not 2.0")),
        Ok(WireRequest { method, params, id, .. }) => Ok(RpcRequest { method, params, id }),
    }
}

/// The response to a call; `None` for a notification.
pub(crate) fn render_response(
    id: Option<Value>,
    result: Result<Value, CallError>,
) -> Option<Value> {
    let id = id?;
    Some(match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => render_error(id, code_of(error.kind), &error.message),
    })
}

fn render_error(id: Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

fn code_of(kind: CallErrorKind) -> i64 {
    match kind {
        CallErrorKind::UnknownMethod => -32601,
        CallErrorKind::BadParams => -32602,
        CallErrorKind::Internal => -32603,
        CallErrorKind::Refused => -32001,
        CallErrorKind::Forge => -32002,
        CallErrorKind::TimedOut => -32003,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn code(body: &str) -> i64 {
        match parse_message(body.as_bytes()) {
            RpcMessage::Malformed(answer) | RpcMessage::One(Err(answer)) => {
                answer["error"]["code"].as_i64().unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_call_has_a_method_parameters_and_an_id() {
        let body = br#"{"jsonrpc":"2.0","id":"a","method":"read_issue","params":{"number":3}}"#;
        let request = RpcRequest {
            method: "read_issue".to_owned(),
            params: json!({ "number": 3 }),
            id: Some(json!("a")),
        };
        assert_eq!(parse_message(body), RpcMessage::One(Ok(request)));
    }

    #[test]
    fn a_call_without_an_id_is_not_answered_and_one_with_null_is() {
        let read = |text: &str| match parse_message(text.as_bytes()) {
            RpcMessage::One(Ok(request)) => request.id,
            other => panic!("{other:?}"),
        };
        assert_eq!(read(r#"{"jsonrpc":"2.0","method":"x"}"#), None);
        assert_eq!(read(r#"{"jsonrpc":"2.0","method":"x","id":null}"#), Some(Value::Null));
        assert_eq!(render_response(None, Ok(json!(1))), None);
    }

    #[test]
    fn what_is_no_call_is_told_why() {
        assert_eq!(code("{"), PARSE_ERROR);
        assert_eq!(code(&"[".repeat(10_000)), PARSE_ERROR);
        assert_eq!(code("[]"), INVALID_REQUEST);
        assert_eq!(code("3"), INVALID_REQUEST);
        assert_eq!(code(r#"{"jsonrpc":"1.0","method":"x","id":1}"#), INVALID_REQUEST);
        assert_eq!(code(r#"{"jsonrpc":"2.0","method":"x","id":[1]}"#), INVALID_REQUEST);
        assert_eq!(code(r#"{"jsonrpc":"2.0","method":"x","id":1,"token":"y"}"#), INVALID_REQUEST);
        let many = format!("[{}]", vec!["1"; BATCH_MAX + 1].join(","));
        assert_eq!(code(&many), INVALID_REQUEST);
    }

    #[test]
    fn odd_bytes_are_replaced() {
        let mut body = br#"{"jsonrpc":"2.0","method":"x","params":{"body":"a"#.to_vec();
        body.push(0xff);
        body.extend(br#""}}"#);
        let RpcMessage::One(Ok(request)) = parse_message(&body) else { panic!("a call") };
        assert_eq!(request.params["body"], "a\u{fffd}");
    }

    #[test]
    fn a_batch_is_read_one_by_one() {
        let body = br#"[{"jsonrpc":"2.0","method":"x","id":1}, 1]"#;
        let RpcMessage::Batch(list) = parse_message(body) else { panic!("a batch") };
        assert!(list[0].is_ok() && list[1].is_err());
    }
}
