//! Servers on loopback that stand for the world outside.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use testkit::wait::PATIENCE;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Its first line and its headers, the latter in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// The value of a header, or nothing.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// A server that answers until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
    seen: Mutex<Vec<Seen>>,
    received: Mutex<Vec<u8>>,
}

impl Shared {
    fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Writes what `answer` says to every request. An error of it ends the connection.
    pub(crate) fn start(
        answer: impl Fn(&Seen, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(answer);
        Self::serve(free_port(), move |shared, stream| {
            while let Some(seen) = read_request(&mut stream.try_clone()?)? {
                Shared::lock(&shared.seen).push(seen.clone());
                answer(&seen, stream)?;
            }
            Ok(())
        })
    }

    /// Answers every request with the same text.
    pub(crate) fn saying(text: &'static str) -> Self {
        Self::start(move |_, stream| stream.write_all(&whole("200 OK", &[], text)))
    }

    /// Sends back what it gets, byte for byte.
    pub(crate) fn echo(listener: TcpListener) -> Self {
        Self::serve(listener, |shared, stream| {
            let mut bytes = [0; 4096];
            loop {
                let count = stream.read(&mut bytes)?;
                if count == 0 {
                    return Ok(());
                }
                Shared::lock(&shared.received).extend(&bytes[..count]);
                stream.write_all(&bytes[..count])?;
            }
        })
    }

    fn serve(
        listener: TcpListener,
        converse: impl Fn(&Shared, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("a bound socket");
        let shared = Arc::new(Shared::default());
        let (given, converse) = (Arc::clone(&shared), Arc::new(converse));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if given.stop.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(mut stream) = stream else { continue };
                Shared::lock(&given.streams).extend(stream.try_clone());
                let (shared, converse) = (Arc::clone(&given), Arc::clone(&converse));
                // A client that goes away is its own affair.
                thread::spawn(move || {
                    converse(&shared, &mut stream).ok();
                    stream.shutdown(Shutdown::Both).ok();
                });
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        Shared::lock(&self.shared.seen).clone()
    }

    /// The bytes that an echo got so far.
    pub(crate) fn received(&self) -> Vec<u8> {
        Shared::lock(&self.shared.received).clone()
    }

    /// How many came so far.
    pub(crate) fn connections(&self) -> usize {
        Shared::lock(&self.shared.streams).len()
    }
}

/// The server dies as a process does: nobody listens any more, and whoever was connected is cut off.
impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that waits in accept.
        TcpStream::connect(self.address).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
        for stream in Shared::lock(&self.shared.streams).iter() {
            stream.shutdown(Shutdown::Both).ok();
        }
    }
}

pub(crate) fn free_port() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).expect("a free port")
}

/// A whole answer.
pub(crate) fn whole(status: &str, headers: &[&str], body: &str) -> Vec<u8> {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes()
}

/// The head of a stream of events.
pub(crate) fn stream_head() -> &'static [u8] {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
}

/// One piece of a stream; the empty one is its end.
pub(crate) fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// Waits at most as long as a test would; whether it came to be so.
pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool) -> bool {
    let start = host::clock::monotonic();
    while !is_so() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

/// The next request, if the client has one more. It has a length, or no body.
fn read_request(stream: &mut TcpStream) -> io::Result<Option<Seen>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        bytes.push(byte[0]);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let (first, rest) = head.split_once("\r\n").ok_or(ErrorKind::InvalidData)?;
    let lower = |line: &str| match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}", name.to_lowercase()),
        None => line.to_owned(),
    };
    let headers: Vec<String> = rest.lines().map(lower).collect();
    let mut seen = Seen { head: format!("{first}\n{}", headers.join("\n")), body: Vec::new() };
    let length = seen.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    seen.body = vec![0; length];
    stream.read_exact(&mut seen.body)?;
    Ok(Some(seen))
}
