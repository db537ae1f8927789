//! Just enough HTTP/1.1: bodies of known length, whole answers.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a connection that waits looks whether the server stops.
const LOOK_EVERY: Duration = Duration::from_millis(25);
const REQUEST_MAX: usize = 64 * 1024 * 1024;

/// One request, as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GiteaRequest {
    /// The method.
    pub method: String,
    /// The path, without the query, as it was sent.
    pub path: String,
    /// The query, empty if there is none.
    pub query: String,
    /// All headers in the order of arrival, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
    pub(super) closes: bool,
}

impl GiteaRequest {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// A field of the query.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.query.split('&').filter_map(|field| field.split_once('='));
        fields.find(|(own, _)| *own == name).map(|(_, value)| value)
    }
}

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

/// A client's connection, for as long as the server runs.
#[derive(Debug)]
pub(super) struct Connection<'a> {
    stream: TcpStream,
    /// What was received and not yet read.
    buffer: Vec<u8>,
    stop: &'a AtomicBool,
}

impl<'a> Connection<'a> {
    pub(super) fn open(stream: TcpStream, stop: &'a AtomicBool) -> Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        Ok(Self { stream, buffer: Vec::new(), stop })
    }

    /// The next request; `None` when the client has no more.
    pub(super) fn next_request(&mut self) -> Result<Option<GiteaRequest>> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            if !self.receive()? {
                return if self.buffer.is_empty() { Ok(None) } else { Err(malformed()) };
            }
        };
        let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
        let mut request = parse_head(&String::from_utf8_lossy(&head)).ok_or_else(malformed)?;
        let length = request.header("content-length").unwrap_or("0");
        let length: usize = length.parse().map_err(Error::other)?;
        while self.buffer.len() < length {
            if !self.receive()? {
                return Err(malformed());
            }
        }
        let body: Vec<u8> = self.buffer.drain(..length).collect();
        request.body = String::from_utf8(body).map_err(Error::other)?;
        Ok(Some(request))
    }

    pub(super) fn send(&mut self, answer: &Answer) -> Result<()> {
        let Answer { code, headers, body } = answer;
        let has = |name: &str| headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let mut text = format!("HTTP/1.1 {code} Fake\r\n");
        if !has("content-type") {
            text.push_str("content-type: application/json;charset=utf-8\r\n");
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if has("content-length") {
            text.push_str(&format!("\r\n{body}"));
        } else {
            text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        }
        self.stream.write_all(text.as_bytes())?;
        self.stream.flush()
    }

    /// Lets time pass, unless the client goes away or the server stops.
    pub(super) fn wait(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            if self.stop.load(Ordering::Relaxed) {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            std::thread::sleep(LOOK_EVERY.min(end.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// Waits for more bytes; false when there are no more.
    fn receive(&mut self) -> Result<bool> {
        let mut bytes = [0; 16 * 1024];
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(false),
                Ok(_) if self.buffer.len() > REQUEST_MAX => return Err(malformed()),
                Ok(count) => {
                    self.buffer.extend_from_slice(&bytes[..count]);
                    return Ok(true);
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
    }
}

fn parse_head(head: &str) -> Option<GiteaRequest> {
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = lines.take_while(|line| !line.is_empty()).map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    });
    let mut request = GiteaRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: headers.collect::<Option<_>>()?,
        body: String::new(),
        closes: false,
    };
    request.closes = request.header("connection") == Some("close");
    Some(request)
}

fn malformed() -> Error {
    ErrorKind::InvalidData.into()
}
