//! Common part of all servers here: a port of loopback, and a thread and a runtime of their own, as in separate processes.

use std::net::{SocketAddr, TcpListener};
use std::thread;

/// A socket on a free port, and its address.
pub(crate) fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a socket that need not wait");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// Serves until this process ends.
pub(crate) fn serve_on_a_thread<F: Future>(work: impl FnOnce() -> F + Send + 'static) {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(work());
    });
}
