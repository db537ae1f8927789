//! The proxy: HTTP/1.1 on the socket of a run.
//!
//! It handles three kinds of request. `CONNECT` opens a tunnel, an absolute `http` URL is forwarded, and paths below
//! `/-/` are the proxy's own: the model route and a page with the policy. Every refusal carries its reason.

mod answer;
mod attempt;
mod body;
mod forward;
mod header;
mod hello;
mod pool;
mod pump;
mod service;
mod shared;
mod tunnel;
mod upstream;

use std::io::Write;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

pub(crate) use answer::{ProxyResponse, explain_to_model_client, forward_masked};
pub(crate) use attempt::EgressAttempt;
pub(crate) use body::{CallBody, Upload};
pub(crate) use header::strip_hop_by_hop;
pub(crate) use shared::ProxyState;
pub(crate) use upstream::{
    RequestError, UpstreamFailure, UpstreamResponse, UpstreamRoute, UpstreamTarget,
};

const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\
    content-type: text/plain\r\ncontent-length: 67\r\n\r\n\
    blocked: this run has too many connections open; close some of them";

/// Accepts connections until `stop` completes, then closes the remaining ones. Each of them still gets its
/// line in the log.
pub(crate) async fn accept_until(
    shared: &Arc<ProxyState>,
    listener: &UnixListener,
    stop: impl Future,
) {
    let mut stop = pin!(stop);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => admit(shared, &mut connections, stream),
            // Most likely out of descriptors; other connections must close first.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    connections.shutdown().await;
}

fn admit(shared: &Arc<ProxyState>, connections: &mut JoinSet<()>, stream: UnixStream) {
    let slot = Slot { number: shared.state.connection_opened(), shared: Arc::clone(shared) };
    if slot.number > shared.policy.limits.connections {
        shared.log.count_unlogged();
        // Without waiting: a small write to a new socket always has room.
        if let Ok(mut stream) = stream.into_std() {
            stream.write_all(TOO_MANY).unwrap_or_default();
        }
        return;
    }
    let shared = Arc::clone(shared);
    connections.spawn(async move {
        service::serve_connection(shared, stream).await;
        drop(slot);
    });
}

/// A permit for one of the connections that may be open at the same time.
struct Slot {
    shared: Arc<ProxyState>,
    number: usize,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.state.connection_closed();
    }
}
