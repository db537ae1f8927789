//! Just enough HTTP/1.1 for the clients at hand: connections that stay, bodies of known length and in chunks.
//!
//! What is malformed ends the connection; real clients send nothing of the kind.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a connection that waits looks whether the server stops.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// How long a client may refuse to read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
const HEAD_LIMIT: usize = 256 * 1024;
const BODY_LIMIT: usize = 64 * 1024 * 1024;

/// A request, read to its end.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    /// The names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Whether the client may ask again on the same connection.
    pub(super) keep_alive: bool,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }
}

/// A response that is no stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Whole {
    pub(super) fn json(status: u16, body: &str) -> Self {
        Self { status, headers: Vec::new(), body: body.to_owned() }
    }
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
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Ok(Self { stream, buffer: Vec::new(), stop })
    }

    /// The next request; `None` when the client has no more.
    pub(super) fn next_request(&mut self) -> Result<Option<Request>> {
        while self.buffer.is_empty() {
            if self.receive()? == Received::End {
                return Ok(None);
            }
        }
        let mut lines = Vec::new();
        loop {
            let line = self.take_line()?;
            if line.is_empty() {
                break;
            }
            lines.push(line);
        }
        let (first, rest) = lines.split_first().ok_or_else(malformed)?;
        let headers = rest.iter().map(|line| parse_header(line)).collect::<Result<Vec<_>>>()?;
        let mut words = first.split(' ');
        let (Some(method), Some(target), Some(version)) =
            (words.next(), words.next(), words.next())
        else {
            return Err(malformed());
        };
        let closes = find_header(&headers, "connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let body = self.take_body(&headers)?;
        Ok(Some(Request {
            method: method.to_owned(),
            path: target.split('?').next().unwrap_or_default().to_owned(),
            keep_alive: version == "HTTP/1.1" && !closes,
            headers,
            body,
        }))
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Lets time pass. Fails as soon as the client is gone or the server stops, so that no thread outlives them.
    pub(super) fn wait(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            match self.receive()? {
                Received::End => return Err(ErrorKind::UnexpectedEof.into()),
                Received::Nothing => {}
                // A client that asks on before it was answered is rare; its bytes are kept, without a busy wait.
                Received::Bytes => std::thread::sleep(LOOK_EVERY),
            }
        }
        Ok(())
    }

    /// Makes the end of this connection a reset.
    pub(super) fn reset_on_close(&self) -> Result<()> {
        let at_once = Some(Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(&self.stream, at_once).map_err(Error::from)
    }

    fn take_body(&mut self, headers: &[(String, String)]) -> Result<Vec<u8>> {
        let chunked = find_header(headers, "transfer-encoding")
            .is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        let length = find_header(headers, "content-length");
        let expects = find_header(headers, "expect").is_some();
        if expects {
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        match length {
            _ if chunked => self.take_chunks(),
            Some(length) => self.take(length.parse().map_err(Error::other)?),
            None => Ok(Vec::new()),
        }
    }

    fn take_chunks(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.take_line()?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(Error::other)?;
            if size == 0 {
                break;
            }
            body.extend(self.take(size)?);
            if body.len() > BODY_LIMIT || !self.take_line()?.is_empty() {
                return Err(malformed());
            }
        }
        while !self.take_line()?.is_empty() {}
        Ok(body)
    }

    fn take(&mut self, size: usize) -> Result<Vec<u8>> {
        if size > BODY_LIMIT {
            return Err(malformed());
        }
        while self.buffer.len() < size {
            self.receive_more()?;
        }
        Ok(self.buffer.drain(..size).collect())
    }

    /// A line, without its end.
    fn take_line(&mut self) -> Result<String> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                let line = self.take(at)?;
                self.buffer.drain(..2);
                return String::from_utf8(line).map_err(Error::other);
            }
            if self.buffer.len() > HEAD_LIMIT {
                return Err(malformed());
            }
            self.receive_more()?;
        }
    }

    fn receive_more(&mut self) -> Result<()> {
        match self.receive()? {
            Received::End => Err(ErrorKind::UnexpectedEof.into()),
            Received::Nothing | Received::Bytes => Ok(()),
        }
    }

    fn receive(&mut self) -> Result<Received> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(0) => Ok(Received::End),
            Ok(count) => {
                self.buffer.extend_from_slice(&bytes[..count]);
                Ok(Received::Bytes)
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                    Ok(Received::Nothing)
                }
                _ => Err(error),
            },
        }
    }
}

/// What came of looking for bytes for a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Received {
    Bytes,
    Nothing,
    End,
}

/// A response with its length.
pub(super) fn render_whole(whole: &Whole) -> Vec<u8> {
    let Whole { status, headers, body } = whole;
    let has = |name: &str| headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let mut text = format!("HTTP/1.1 {status} {}\r\n", reason(*status));
    if !has("content-type") {
        text.push_str("content-type: application/json\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    text.into_bytes()
}

/// The head of a stream of events, which come as chunks.
pub(super) fn render_stream_head() -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
                transfer-encoding: chunked\r\n\r\n";
    head.into()
}

/// One chunk; the empty one is the last.
pub(super) fn render_chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

fn parse_header(line: &str) -> Result<(String, String)> {
    let (name, value) = line.split_once(':').ok_or_else(malformed)?;
    Ok((name.to_ascii_lowercase(), value.trim().to_owned()))
}

fn find_header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
}

fn malformed() -> Error {
    ErrorKind::InvalidData.into()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Scripted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_the_script_replaces_the_usual_one() {
        let headers = vec![("Content-Type".to_owned(), "text/html".to_owned())];
        let whole = Whole { status: 502, headers, body: "<p>".to_owned() };
        assert_eq!(
            String::from_utf8(render_whole(&whole)).unwrap(),
            "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\ncontent-length: 3\r\n\r\n<p>"
        );
    }

    #[test]
    fn a_chunk_says_its_length_in_bytes() {
        assert_eq!(render_chunk("naïve résumé"), "f\r\nnaïve résumé\r\n".as_bytes());
        assert_eq!(render_chunk(""), b"0\r\n\r\n");
    }
}
