//! One client's connection: requests in, bytes out, and time that passes in between.
//!
//! A malformed request ends the connection; real clients send none.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::message::{Request, find_header};

/// Interval at which a waiting connection checks whether the server stops.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// Time for which a client may refuse to read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
const HEAD_LIMIT: usize = 256 * 1024;
const BODY_LIMIT: usize = 64 * 1024 * 1024;

/// A client's connection, for as long as the server runs.
#[derive(Debug)]
pub(crate) struct Connection<'a> {
    stream: TcpStream,
    /// Bytes that were received and not yet read.
    buffer: Vec<u8>,
    stop: &'a AtomicBool,
}

impl<'a> Connection<'a> {
    pub(crate) fn open(stream: TcpStream, stop: &'a AtomicBool) -> Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Ok(Self { stream, buffer: Vec::new(), stop })
    }

    /// The next request; `None` when the client has no more.
    pub(crate) fn next_request(&mut self) -> Result<Option<Request>> {
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
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let closes = find_header(&headers, "connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let body = self.take_body(&headers)?;
        Ok(Some(Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            keep_alive: version == "HTTP/1.1" && !closes,
            headers,
            body,
        }))
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Lets time pass. Fails as soon as the client is gone or the server stops, so that no thread outlives them.
    pub(crate) fn wait(&mut self, time: Duration) -> Result<()> {
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
    pub(crate) fn reset_on_close(&self) -> Result<()> {
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

/// Result of a short wait for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Received {
    Bytes,
    Nothing,
    End,
}

fn parse_header(line: &str) -> Result<(String, String)> {
    let (name, value) = line.split_once(':').ok_or_else(malformed)?;
    Ok((name.to_ascii_lowercase(), value.trim().to_owned()))
}

fn malformed() -> Error {
    ErrorKind::InvalidData.into()
}
