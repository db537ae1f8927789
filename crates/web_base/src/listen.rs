//! The socket: connections with limits, so that slow, numerous or endless clients harm only themselves. When all places are
//! taken, the connection that has waited longest without an answered request makes room.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use axum::response::Response;
use host::signal::Cancel;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

const HEAD_LIMIT: Duration = Duration::from_secs(10);
const HEAD_MAX_BYTES: usize = 64 * 1024;
/// Concurrent connections. Beyond it connections that were never answered make room; if all were, clients wait.
const CONNECTIONS_MAX: usize = 512;
/// Pause after a failed accept (no file descriptors left): the listener stays ready, and the loop would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// Time for open requests when the server stops.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

pub async fn serve(listener: TcpListener, router: Router, stop: Cancel) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    let mut silent = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            _ = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        silent.retain(SilentConnection::is_open);
        if places.available_permits() == 0
            && let Some(oldest) = silent.pop_front()
        {
            oldest.task.abort();
        }
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let (router, stop, answered) = (router.clone(), stop.clone(), Arc::default());
        let service = MarkedService {
            router: TowerToHyperService::new(router),
            answered: Arc::clone(&answered),
        };
        let task = connections.spawn(async move {
            serve_connection_until(stream, service, stop).await;
            drop(place);
        });
        silent.push_back(SilentConnection { task, answered });
    }
    let drained = async { while connections.join_next().await.is_some() {} };
    drop(tokio::time::timeout(DRAIN_LIMIT, drained).await);
}

/// A connection that may not have had an answer yet.
struct SilentConnection {
    task: AbortHandle,
    answered: Arc<AtomicBool>,
}

impl SilentConnection {
    fn is_open(&self) -> bool {
        !self.task.is_finished() && !self.answered.load(Ordering::Relaxed)
    }
}

/// The routes for one connection; remembers that a request was answered.
struct MarkedService {
    router: TowerToHyperService<Router>,
    answered: Arc<AtomicBool>,
}

impl Service<Request<Incoming>> for MarkedService {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (answer, answered) = (self.router.call(request), Arc::clone(&self.answered));
        Box::pin(async move {
            let answer = answer.await;
            answered.store(true, Ordering::Relaxed);
            answer
        })
    }
}

/// Serves one connection. An error means that the client left or did not send HTTP; both end the connection.
async fn serve_connection_until(stream: TcpStream, service: MarkedService, stop: Cancel) {
    drop(stream.set_nodelay(true));
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).max_buf_size(HEAD_MAX_BYTES);
    let connection = server.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => drop(ended),
        _ = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn clients_that_send_nothing_keep_no_other_one_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new().route("/", get(|| async { "ok" }));
        let stop = Cancel::new();
        let serving = tokio::spawn(serve(listener, router, stop.clone()));
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS_MAX + 8 {
            let mut stream = TcpStream::connect(address).await.expect("a connection");
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").await.ok();
            silent.push(stream);
        }
        let asked = async {
            let mut stream = TcpStream::connect(address).await.expect("a connection");
            let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
            stream.write_all(request).await.expect("sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            answer
        };
        let answer = tokio::time::timeout(HEAD_LIMIT / 2, asked).await.expect("in time");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        stop.cancel(host::signal::CancelReason::Asked("the test is over".into()));
        drop(silent);
        serving.await.expect("it ends");
    }
}
