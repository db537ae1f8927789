//! The socket: connections with limits, so that slow, numerous or endless clients harm only themselves.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use host::signal::Cancel;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const HEAD_LIMIT: Duration = Duration::from_secs(10);
const HEAD_MAX_BYTES: usize = 64 * 1024;
/// Concurrent connections; further clients wait in the listener's queue.
const CONNECTIONS_MAX: usize = 512;
/// Pause after a failed accept (no file descriptors left): the listener stays ready, and the loop would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// Time for open requests when the server stops.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

pub(crate) async fn serve(listener: TcpListener, router: Router, stop: Cancel) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let accepted = tokio::select! {
            _ = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let (router, stop) = (router.clone(), stop.clone());
        connections.spawn(async move {
            serve_connection_until(stream, router, stop).await;
            drop(place);
        });
    }
    let drained = async { while connections.join_next().await.is_some() {} };
    drop(tokio::time::timeout(DRAIN_LIMIT, drained).await);
}

/// Serves one connection. An error means that the client left or did not send HTTP; both end the connection.
async fn serve_connection_until(stream: TcpStream, router: Router, stop: Cancel) {
    drop(stream.set_nodelay(true));
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).max_buf_size(HEAD_MAX_BYTES);
    let connection =
        server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => drop(ended),
        _ = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
    }
}
