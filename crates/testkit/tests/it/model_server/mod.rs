//! The scripted model server, asked by a client that is no more than a socket.

mod turn;
mod wire;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::model_server::{LAST_TEXT, ModelScript, ModelServer, RequestLog, Turn, Usage, Wire};
use testkit::wait::wait_until;

const MERGE: &str = "git merge upstream/main --no-edit";

struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{} {}", self.status, self.body))
    }

    /// The data of the events.
    fn events(&self) -> Vec<Value> {
        let lines = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| json!(line))).collect()
    }

    fn event_names(&self) -> Vec<&str> {
        self.body.lines().filter_map(|line| line.strip_prefix("event: ")).collect()
    }
}

/// A connection that stays.
struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Client {
    fn new(server: &ModelServer) -> Self {
        let stream = TcpStream::connect(server.addr()).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(300))).expect("a timeout");
        Self { stream, received: Vec::new() }
    }

    fn send(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: model\r\n{headers}\r\n");
        self.stream.write_all(&[head.as_bytes(), body].concat()).expect("the request goes out");
    }

    fn post(&mut self, path: &str, body: &Value) -> Response {
        self.begin_post(path, body);
        self.receive().expect("a response")
    }

    /// Asks without waiting for the answer.
    fn begin_post(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        let headers = format!("Content-Length: {}\r\nX-Api-Key: key-of-the-run\r\n", body.len());
        self.send("POST", path, &headers, body.as_bytes());
    }

    fn receive(&mut self) -> std::io::Result<Response> {
        let head = self.take_until("\r\n\r\n")?.to_lowercase();
        let field = |name: &str| {
            head.lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|value| value.trim().to_owned())
        };
        let body = if field("transfer-encoding:").as_deref() == Some("chunked") {
            self.take_chunks()?
        } else {
            self.take(
                field("content-length:").map_or(0, |length| length.parse().expect("a number")),
            )?
        };
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        Ok(Response { status, head, body: String::from_utf8(body).expect("text") })
    }

    fn take_chunks(&mut self) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.take_until("\r\n")?, 16).expect("a size");
            body.extend(self.take(size)?);
            assert_eq!(self.take_until("\r\n")?, "");
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn take_until(&mut self, end: &str) -> std::io::Result<String> {
        loop {
            let at = self.received.windows(end.len()).position(|bytes| bytes == end.as_bytes());
            if let Some(at) = at {
                let text = String::from_utf8(self.take(at)?).expect("text");
                self.take(end.len())?;
                return Ok(text);
            }
            self.read_more()?;
        }
    }

    fn take(&mut self, size: usize) -> std::io::Result<Vec<u8>> {
        while self.received.len() < size {
            self.read_more()?;
        }
        Ok(self.received.drain(..size).collect())
    }

    fn read_more(&mut self) -> std::io::Result<()> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => {
                self.received.extend_from_slice(&bytes[..count]);
                Ok(())
            }
        }
    }
}

fn play(turns: impl IntoIterator<Item = Turn>) -> ModelServer {
    ModelServer::start([("play", ModelScript::new(turns))])
}

fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::Messages => "/s/play/v1/messages?beta=true",
        Wire::Chat => "/s/play/v1/chat/completions",
        Wire::Responses => "/s/play/v1/responses",
        Wire::Other => "/s/play/v1/models",
    }
}

/// The request of an agent of the kind that speaks this API, after so many turns.
fn request(wire: Wire, turns: usize) -> Value {
    let mut talk = vec![json!({ "role": "user", "content": "merge upstream" })];
    for turn in 0..turns {
        talk.extend(match wire {
            Wire::Messages => [
                json!({ "role": "assistant", "content": [{ "type": "tool_use" }] }),
                json!({ "role": "user", "content": [{ "type": "tool_result", "content": format!("result {turn}") }] }),
            ],
            Wire::Chat => [
                json!({ "role": "assistant", "tool_calls": [] }),
                json!({ "role": "tool", "content": format!("result {turn}") }),
            ],
            Wire::Responses | Wire::Other => [
                json!({ "type": "function_call" }),
                json!({ "type": "function_call_output", "output": format!("result {turn}") }),
            ],
        });
    }
    match wire {
        Wire::Messages => json!({
            "model": "claude-x", "stream": true, "messages": talk,
            "tools": [{ "name": "Bash" }, { "name": "mcp__probe__echo_upper" }],
            "output_config": { "effort": "high" },
        }),
        Wire::Chat => json!({
            "model": "scripted", "stream": true, "messages": talk,
            "tools": [
                { "type": "function", "function": { "name": "bash" } },
                { "type": "function", "function": { "name": "probe_echo_upper" } },
            ],
            "reasoning_effort": "high",
        }),
        Wire::Responses | Wire::Other => json!({
            "model": "gpt-x", "stream": true, "input": talk,
            "tools": [
                { "type": "function", "name": "exec_command" },
                { "type": "namespace", "name": "mcp__probe", "tools": [{ "type": "function", "name": "echo_upper" }] },
            ],
            "reasoning": { "effort": "high" },
        }),
    }
}

fn whole(mut request: Value) -> Value {
    request["stream"] = json!(false);
    request
}

fn ask(server: &ModelServer, wire: Wire, turns: usize) -> Response {
    Client::new(server).post(path(wire), &request(wire, turns))
}

/// Joins what the deltas at this place say.
fn joined(events: &[Value], place: &str) -> String {
    events.iter().filter_map(|event| event.pointer(place)).filter_map(Value::as_str).collect()
}
