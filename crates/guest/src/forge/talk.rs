//! One call over HTTP, written by hand to keep the program in the box small.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

/// Time limit, longer than the sidecar's own for a forge.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
/// Size limit of a response; thousands of comments fit.
const ANSWER_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// JSON-RPC error code of a refusal.
const REFUSED: i64 = -32001;

#[derive(Debug)]
pub(super) enum SidecarAddress {
    Socket(PathBuf),
    /// The relayed loopback port.
    Address(String),
}

/// A failed call, with a message for the caller.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    Refused(String),
    Other(String),
}

pub(super) fn call(way: &SidecarAddress, method: &str, params: &Value) -> Result<Value, Failed> {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let answer = match way {
        SidecarAddress::Socket(path) => UnixStream::connect(path).and_then(|stream| {
            stream.set_read_timeout(Some(ANSWER_LIMIT))?;
            exchange(stream, &request)
        }),
        SidecarAddress::Address(address) => TcpStream::connect(address).and_then(|stream| {
            stream.set_read_timeout(Some(ANSWER_LIMIT))?;
            exchange(stream, &request)
        }),
    };
    match answer {
        Ok(bytes) => read_answer(&bytes),
        Err(error) => Err(Failed::Other(format!("the forge cannot be reached: {error}"))),
    }
}

fn exchange(mut stream: impl Read + Write, request: &Value) -> io::Result<Vec<u8>> {
    let body = request.to_string();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: forge\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // A sidecar that rejects a large request responds before it has read all of it.
    let written =
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    let mut answer = Vec::new();
    let read = stream.take(ANSWER_MAX_BYTES).read_to_end(&mut answer);
    if answer.is_empty() {
        written?;
        read?;
    }
    Ok(answer)
}

fn read_answer(bytes: &[u8]) -> Result<Value, Failed> {
    let garbled = || Failed::Other("the forge gave an answer that makes no sense".to_owned());
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(garbled)?;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let status: u16 =
        head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(garbled)?;
    if status != 200 {
        let words = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
        return Err(Failed::Refused(format!("the forge turned the call away ({status}): {words}")));
    }
    let mut answer: Value = serde_json::from_slice(&bytes[end + 4..]).or(Err(garbled()))?;
    let Some(error) = answer.get("error") else { return Ok(answer["result"].take()) };
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    match error["code"].as_i64() {
        Some(REFUSED) => Err(Failed::Refused(message)),
        Some(_) | None => Err(Failed::Other(message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: &str, body: &str) -> Result<Value, Failed> {
        read_answer(format!("HTTP/1.1 {status}\r\nx: y\r\n\r\n{body}").as_bytes())
    }

    #[test]
    fn an_answer_is_a_result_or_a_reason() {
        assert_eq!(answer("200 OK", r#"{"id":1,"result":{"a":1}}"#), Ok(json!({ "a": 1 })));
        let refused = r#"{"error":{"code":-32001,"message":"out of scope"}}"#;
        assert_eq!(answer("200 OK", refused), Err(Failed::Refused("out of scope".to_owned())));
        let failed = r#"{"error":{"code":-32002,"message":"no such issue"}}"#;
        assert_eq!(answer("200 OK", failed), Err(Failed::Other("no such issue".to_owned())));
        assert!(matches!(answer("413 Payload Too Large", "too much"), Err(Failed::Refused(_))));
        assert!(matches!(answer("200 OK", "{"), Err(Failed::Other(_))));
        assert!(matches!(read_answer(b"nonsense"), Err(Failed::Other(_))));
    }
}
