//! One call on the sidecar's socket, beside a bare axum echo on another one. What the forge itself takes is left out:
//! a refused write never reaches it, and of a read its time is subtracted.

use std::collections::BTreeSet;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use forge::{Forge, ForgeAddress, ForgeOptions, Scope, ScopedForge};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use model::redact::Redactor;
use model::secret::Secret;
use serde_json::{Value, json};
use sidecar::{CallLimits, CallLog, CallLogError, CallRecord, Dispatcher, DoneQueue};
use testkit::fake_forge::FakeGitea;
use testkit::fake_forge::TOKEN;
use testkit::measure::{Comparison, quantile, row};
use tokio::net::UnixStream;

const ROUNDS: usize = 4_000;
const READ_ROUNDS: usize = 300;

/// Keeps nothing: the record's own time is its own matter.
struct Nowhere;

impl CallLog for Nowhere {
    fn record(&self, _entry: &CallRecord) -> Result<(), CallLogError> {
        Ok(())
    }
}

type Client = SendRequest<Full<Bytes>>;

async fn connect(socket: &Path) -> Client {
    let stream = UnixStream::connect(socket).await.expect("a server");
    let (client, connection) = handshake(TokioIo::new(stream)).await.expect("a connection");
    tokio::spawn(connection);
    client
}

async fn ask(client: &mut Client, body: &Bytes) -> Duration {
    client.ready().await.expect("a connection that is kept");
    let begun = Instant::now();
    let request = hyper::Request::post("/")
        .header("host", "forge")
        .header("content-type", "application/json")
        .body(Full::new(body.clone()))
        .expect("a request");
    let response = client.send_request(request).await.expect("an answer");
    response.into_body().collect().await.expect("a body");
    begun.elapsed()
}

async fn open_forge(server: &FakeGitea) -> Forge {
    let remote = ForgeAddress::parse_remote(&server.remote_url()).expect("a server");
    Forge::open(&remote, &Secret::new(TOKEN), &ForgeOptions::default()).await.expect("a forge")
}

fn body(method: &str, params: Value) -> Bytes {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string().into()
}

/// A sidecar and an echo on sockets in this folder.
async fn start(dir: &Path, server: &FakeGitea) {
    let redactor = || Arc::new(Redactor::new([Secret::new(TOKEN)]));
    let scope = Scope { issue: 1, pulls: BTreeSet::new() };
    let scoped = ScopedForge::new(open_forge(server).await, scope, redactor());
    let queue = DoneQueue::open(dir, "bench").expect("a queue");
    let most = u64::MAX;
    let limits =
        CallLimits { reads_max: most, writes_max: most, slow_after: most, ..CallLimits::default() };
    let dispatcher =
        Dispatcher::new(Arc::new(scoped), Arc::new(Nowhere), queue, redactor(), limits);
    let listener = UnixListener::bind(dir.join("forge.sock")).expect("a socket");
    tokio::spawn(sidecar::serve(listener, Arc::new(dispatcher), std::future::pending()));
    let echo = Router::new().route("/", post(async |body: Bytes| body));
    let listener = tokio::net::UnixListener::bind(dir.join("echo.sock")).expect("a socket");
    tokio::spawn(async move { axum::serve(listener, echo).await });
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = FakeGitea::start();
    server.add_issue("Do it", "What is wanted.", &[], &[]);
    start(dir.path(), &server).await;
    let mut ours = connect(&dir.path().join("forge.sock")).await;
    let mut echo = connect(&dir.path().join("echo.sock")).await;
    refused(&mut ours, &mut echo).await;
    read(&mut ours, &mut echo, &open_forge(&server).await).await;
}

async fn refused(ours: &mut Client, echo: &mut Client) {
    let call = body("post_comment", json!({ "number": 12, "body": "hello" }));
    let (mut our_times, mut echo_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        our_times.push(ask(ours, &call).await);
        echo_times.push(ask(echo, &call).await);
    }
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let comparison = Comparison {
            ours: quantile(our_times.clone(), share),
            yardstick: quantile(echo_times.clone(), share),
        };
        let name = format!("sidecar: round trip, {name}");
        comparison.print(&name, "bare axum echo, Unix socket", 1.5, Duration::ZERO);
    }
    let per_second =
        |times: &[Duration]| times.len() as f64 / times.iter().sum::<Duration>().as_secs_f64();
    row(&format!(
        "sidecar: {:.0} calls per second on one connection, echo {:.0}",
        per_second(&our_times),
        per_second(&echo_times)
    ));
}

/// A read through the sidecar, less the same read without it.
async fn read(ours: &mut Client, echo: &mut Client, forge: &Forge) {
    let call = body("read_issue", json!({ "number": 1 }));
    let (mut with, mut without, mut echo_times) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..READ_ROUNDS {
        with.push(ask(ours, &call).await);
        let begun = Instant::now();
        forge.read_issue(1).await.expect("an issue");
        without.push(begun.elapsed());
        echo_times.push(ask(echo, &call).await);
    }
    let [with, without, echo] = [with, without, echo_times].map(|times| quantile(times, 0.5));
    let comparison = Comparison { ours: with.saturating_sub(without), yardstick: echo };
    comparison.print(
        "sidecar: read_issue less the forge's own time",
        "bare axum echo, Unix socket",
        1.5,
        Duration::ZERO,
    );
}
