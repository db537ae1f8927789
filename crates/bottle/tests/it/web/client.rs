//! A plain client: one connection for each question, and streams that are read line by line.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::TOKEN;

/// No answer takes longer.
const PATIENCE: Duration = Duration::from_secs(300);

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let is_it = |line: &&str| line.to_lowercase().starts_with(&format!("{name}:"));
        self.head.lines().find(is_it).and_then(|line| line.split_once(": ")).map(|(_, value)| value)
    }
}

/// Asks with the admin token.
pub(super) fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> Answer {
    let token = format!("Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n");
    send(address, method, path, &token, body)
}

/// Asks with these lines in the head.
pub(super) fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    head: &str,
    body: &str,
) -> Answer {
    let mut stream = connect(address);
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{head}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let text = String::from_utf8(bytes).expect("text");
    let (head, text) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    Answer { status, head: head.to_owned(), text: text.to_owned() }
}

/// Server-sent events as they come.
pub(super) struct Events {
    lines: std::io::Lines<BufReader<TcpStream>>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) data: String,
}

impl Events {
    /// Listens from after this event on.
    pub(super) fn open(address: SocketAddr, path: &str, last: Option<&str>) -> Self {
        let mut stream = connect(address);
        let last = last.map_or_else(String::new, |id| format!("Last-Event-ID: {id}\r\n"));
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n{last}\r\n"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut lines = BufReader::new(stream).lines();
        let first = lines.next().expect("an answer").expect("a line");
        assert!(first.contains(" 200 "), "{first}");
        Self { lines }
    }

    /// The next one. Lines of the chunks between them are no fields and are passed over.
    pub(super) fn next(&mut self) -> Option<Event> {
        let mut event = Event::default();
        for line in self.lines.by_ref().map_while(Result::ok) {
            if let Some(data) = line.strip_prefix("data: ") {
                data.clone_into(&mut event.data);
            } else if let Some(id) = line.strip_prefix("id: ") {
                id.clone_into(&mut event.id);
            } else if let Some(name) = line.strip_prefix("event: ") {
                name.clone_into(&mut event.name);
            }
            if line.is_empty() && !event.data.is_empty() {
                return Some(event);
            }
        }
        None
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    stream
}
