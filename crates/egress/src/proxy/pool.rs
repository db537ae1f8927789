//! Idle connections to servers, kept for the next request.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use host::clock;
use hyper::client::conn::http1::SendRequest;

use super::body::Upload;

/// Servers close idle connections; an older one is not worth a try.
const IDLE_MAX: Duration = Duration::from_secs(50);
const WAITING_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: bool,
}

/// A connection that carries one request at a time.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) peer: Peer,
    pub(crate) address: SocketAddr,
    pub(crate) sender: SendRequest<Upload>,
}

#[derive(Debug, Default)]
pub(crate) struct Pool {
    waiting: Mutex<Vec<(Instant, Lease)>>,
}

impl Pool {
    /// Returns the most recently used live connection to `peer`.
    pub(crate) fn take(&self, peer: &Peer) -> Option<Lease> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|(since, lease)| since.elapsed() < IDLE_MAX && !lease.sender.is_closed());
        let at = waiting.iter().rposition(|(_, lease)| lease.peer == *peer)?;
        let (_, lease) = waiting.remove(at);
        Some(lease)
    }

    pub(crate) fn put(&self, lease: Lease) {
        if lease.sender.is_closed() {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= WAITING_MAX {
            waiting.remove(0);
        }
        waiting.push((clock::monotonic(), lease));
    }
}
