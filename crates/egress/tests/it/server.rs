//! Servers on loopback that stand for the world outside.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use crate::world::{PATIENCE, header};

/// A piece of an answer.
#[derive(Clone)]
pub(crate) enum Piece {
    Text(String),
    /// Waits until the test says so.
    Wait(Arc<Notify>),
    /// Closes without an end.
    Drop,
}

/// A request as a server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: String,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// A server that answers each request with the pieces that `script` gives for it.
    pub(crate) async fn start(
        script: impl Fn(&Seen) -> Vec<Piece> + Send + Sync + 'static,
    ) -> Self {
        Self::start_tls(None, script).await
    }

    pub(crate) async fn start_tls(
        tls: Option<TlsAcceptor>,
        script: impl Fn(&Seen) -> Vec<Piece> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (record, script) = (Arc::clone(&seen), Arc::new(script));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let (record, script, tls) = (Arc::clone(&record), Arc::clone(&script), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => answer_all(stream, &record, &*script).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                answer_all(stream, &record, &*script).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn answer_all(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    record: &Mutex<Vec<Seen>>,
    script: &(dyn Fn(&Seen) -> Vec<Piece> + Send + Sync),
) {
    while let Some(request) = read_request(&mut stream).await {
        record.lock().unwrap().push(request.clone());
        for piece in script(&request) {
            match piece {
                Piece::Text(text) => {
                    if stream.write_all(text.as_bytes()).await.is_err() {
                        return;
                    }
                    stream.flush().await.unwrap_or_default();
                }
                Piece::Wait(notify) => notify.notified().await,
                Piece::Drop => return,
            }
        }
    }
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut body = Vec::new();
    if let Some(length) = header(&head, "content-length") {
        body.resize(length.parse().unwrap(), 0);
        stream.read_exact(&mut body).await.ok()?;
    } else if header(&head, "transfer-encoding").is_some() {
        while !body.ends_with(b"0\r\n\r\n") {
            body.push(stream.read_u8().await.ok()?);
        }
    }
    Some(Seen { head, body: String::from_utf8_lossy(&body).into_owned() })
}

/// A whole answer.
pub(crate) fn whole(status: &str, kind: &str, headers: &[&str], body: &str) -> Vec<Piece> {
    let more: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let length = body.len();
    vec![Piece::Text(format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{more}\r\n{body}"
    ))]
}

/// The head of an answer in chunks, and one chunk.
pub(crate) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

pub(crate) fn chunk(text: &str) -> Piece {
    Piece::Text(format!("{:x}\r\n{text}\r\n", text.len()))
}

/// A server that sends back whatever it gets, and counts it.
pub(crate) struct Echo {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
    accepted: Arc<Mutex<u32>>,
}

impl Echo {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let accepted = Arc::new(Mutex::new(0));
        let (record, count) = (Arc::clone(&received), Arc::clone(&accepted));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                *count.lock().unwrap() += 1;
                let record = Arc::clone(&record);
                tokio::spawn(async move {
                    let mut buffer = vec![0; 64 << 10];
                    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                        record.lock().unwrap().extend_from_slice(&buffer[..read]);
                        if stream.write_all(&buffer[..read]).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, received, accepted }
    }

    pub(crate) fn received(&self) -> usize {
        self.received.lock().unwrap().len()
    }

    pub(crate) fn accepted(&self) -> u32 {
        *self.accepted.lock().unwrap()
    }
}

/// Waits until something becomes true, for what happens on the other side.
pub(crate) async fn until(mut is_true: impl FnMut() -> bool) {
    let wait = async {
        while !is_true() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it never became true");
}
