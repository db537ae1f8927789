//! The socket: connections with limits, so that slow, many or endless clients hurt nobody but themselves.

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

/// A request's head must be there by then.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
const HEAD_MAX_BYTES: usize = 64 * 1024;
/// So many clients at once; more wait in the listener's queue.
const CONNECTIONS_MAX: usize = 512;
/// After a failed accept (no descriptors left), as the listener would stay ready and keep us spinning.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// For what is under way when everything stops.
const SETTLE_LIMIT: Duration = Duration::from_secs(5);

/// Serves until it is told to stop.
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
            converse(stream, router, stop).await;
            drop(place);
        });
    }
    let settled = async { while connections.join_next().await.is_some() {} };
    drop(tokio::time::timeout(SETTLE_LIMIT, settled).await);
}

/// An error means that the client went away or sent something that is no HTTP: either ends the connection.
async fn converse(stream: TcpStream, router: Router, stop: Cancel) {
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
