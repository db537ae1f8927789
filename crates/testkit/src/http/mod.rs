//! Just enough of an HTTP/1.1 server for the clients at hand, on loopback: one thread accepts, one serves each
//! connection, and all of them end with the server.
//!
//! - `connection` requests in, bytes out
//! - `message` requests and responses as values

mod connection;
mod message;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

pub(crate) use connection::Connection;
pub(crate) use message::{Request, Whole, render_chunk, render_stream_head, render_whole};

/// Handles a request.
pub(crate) trait Serve: Send + Sync + 'static {
    /// Answers one request. An error means that the client went away or that the server stops; either ends the
    /// connection.
    fn serve(&self, request: &Request, connection: &mut Connection<'_>) -> io::Result<Performed>;
}

/// Decision about the connection after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Performed {
    Answered,
    Ended,
}

/// Serves until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    addr: SocketAddr,
    stop: Arc<AtomicBool>,
    connections: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// A socket on a free port of the loopback interface.
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn listen() -> TcpListener {
        TcpListener::bind(("127.0.0.1", 0)).expect("a free port")
    }

    /// Starts to serve on a socket.
    ///
    /// # Panics
    /// When the socket does not listen.
    pub(crate) fn start(listener: TcpListener, stage: Arc<impl Serve>) -> Self {
        let addr = listener.local_addr().expect("a socket that listens");
        let (stop, connections) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let thread = std::thread::spawn({
            let (stop, connections) = (Arc::clone(&stop), Arc::clone(&connections));
            move || accept(&listener, stage.as_ref(), &stop, &connections)
        });
        Self { addr, stop, connections, thread: Some(thread) }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Number of connections that were accepted so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that waits in accept; if nobody listens any more, it has ended already.
        TcpStream::connect(self.addr).ok();
        let ended = self.thread.take().map(JoinHandle::join);
        let failed = matches!(ended, Some(Err(_)));
        assert!(!failed || std::thread::panicking(), "a connection of a fake server panicked");
    }
}

fn accept(
    listener: &TcpListener,
    stage: &impl Serve,
    stop: &AtomicBool,
    connections: &AtomicUsize,
) {
    std::thread::scope(|scope| {
        for stream in listener.incoming() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            // A client that is gone already is no concern of the server's.
            let Ok(stream) = stream else { continue };
            connections.fetch_add(1, Ordering::Relaxed);
            scope.spawn(move || converse(stream, stage, stop).ok());
        }
    });
}

fn converse(stream: TcpStream, stage: &impl Serve, stop: &AtomicBool) -> io::Result<()> {
    let mut connection = Connection::open(stream, stop)?;
    while let Some(request) = connection.next_request()? {
        match stage.serve(&request, &mut connection)? {
            Performed::Answered if request.keep_alive => {}
            Performed::Answered | Performed::Ended => break,
        }
    }
    Ok(())
}
