//! A sidecar that serves, a client on its socket, and a record that can be looked at.

use std::collections::BTreeSet;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use forge::{Attachment, Forge, ForgeAddress, ForgeOptions, RetryPolicy, Scope, ScopedForge};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use model::redact::Redactor;
use model::secret::Secret;
use serde_json::{Value, json};
use sidecar::{CallLimits, CallLog, CallLogError, CallOutcome, CallRecord, Dispatcher, DoneQueue};
use tempfile::TempDir;
use testkit::fake_forge::GiteaFlavour;
use testkit::fake_forge::{FakeForge, Flavour, TOKEN};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A record in memory, which can be made to fail.
#[derive(Default)]
pub(crate) struct Memory {
    entries: Mutex<Vec<CallRecord>>,
    pub(crate) broken: AtomicBool,
}

impl CallLog for Memory {
    fn record(&self, entry: &CallRecord) -> Result<(), CallLogError> {
        if self.broken.load(Ordering::Relaxed) {
            return Err("the disk is full".into());
        }
        self.entries.lock().unwrap().push(entry.clone());
        Ok(())
    }
}

/// A sidecar in front of a fake forge, with issue 1 assigned to its run.
pub(crate) struct World<F: Flavour = GiteaFlavour> {
    pub(crate) server: FakeForge<F>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) dir: TempDir,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(CallLimits::default()).await
    }
}

impl<F: Flavour> World<F> {
    pub(crate) async fn with(limits: CallLimits) -> Self {
        Self::owning(&[], limits).await
    }

    /// With pull requests that an earlier run has opened; the server does not have them yet.
    pub(crate) async fn owning(pulls: &[u64], limits: CallLimits) -> Self {
        Self::build(pulls, Vec::new(), limits).await
    }

    /// With files that the run may read.
    pub(crate) async fn with_attachments(files: Vec<Attachment>, limits: CallLimits) -> Self {
        Self::build(&[], files, limits).await
    }

    async fn build(pulls: &[u64], files: Vec<Attachment>, limits: CallLimits) -> Self {
        let server = FakeForge::<F>::start();
        assert_eq!(server.add_issue("Do it", "What is wanted.", &[], &[]), 1);
        let scoped = open_scoped(&server, pulls).await;
        let forge = Arc::new(scoped.with_attachments(files));
        let (memory, dir) = (Arc::new(Memory::default()), tempfile::tempdir().unwrap());
        std::fs::create_dir(dir.path().join("queue")).unwrap();
        let queue = DoneQueue::open(&dir.path().join("queue"), "app_1").unwrap();
        let redactor = Arc::new(Redactor::new([Secret::new(TOKEN)]));
        let call_log: Arc<dyn CallLog> = Arc::<Memory>::clone(&memory);
        let dispatcher = Arc::new(Dispatcher::new(forge, call_log, queue, redactor, limits));
        let listener = UnixListener::bind(dir.path().join("forge.sock")).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            sidecar::serve(listener, dispatcher, async { stopped.await.unwrap_or(()) })
                .await
                .unwrap();
        });
        Self { server, memory, dir, stop: Some(stop), serving }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("forge.sock")
    }

    /// Posts a body to a path. Returns the status and the answer.
    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> (u16, Value) {
        let stream = UnixStream::connect(self.socket()).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = hyper::Request::post(path)
            .header("host", "forge")
            .header("content-type", "application/json")
            .body(Full::new(body.into()))
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Calls a method, and returns its result or its error.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, Value> {
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let (status, mut answer) = self.post("/", request.to_string()).await;
        assert_eq!((status, &answer["id"]), (200, &json!(7)), "{answer}");
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }

    /// The sentences of the record, without intents.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let entries = self.entries();
        let told = entries.iter().filter(|entry| entry.outcome != CallOutcome::Intended);
        told.map(|entry| entry.sentence.clone()).collect()
    }

    pub(crate) fn entries(&self) -> Vec<CallRecord> {
        self.memory.entries.lock().unwrap().clone()
    }

    /// Stops the sidecar and waits until it has.
    pub(crate) async fn stop(mut self) -> Self {
        self.stop.take().unwrap().send(()).unwrap();
        (&mut self.serving).await.unwrap();
        self
    }
}

async fn open_scoped<F: Flavour>(server: &FakeForge<F>, pulls: &[u64]) -> ScopedForge {
    let remote = ForgeAddress::parse_remote(&server.remote_url()).unwrap();
    let retry =
        RetryPolicy { attempts: 2, backoff: Duration::from_millis(5), ..RetryPolicy::default() };
    let options = ForgeOptions { retry, ..ForgeOptions::default() };
    let forge = Forge::open(&remote, &Secret::new(TOKEN), &options).await.unwrap();
    let redactor = Arc::new(Redactor::new([Secret::new(TOKEN)]));
    ScopedForge::new(
        forge,
        Scope { issue: 1, pulls: BTreeSet::from_iter(pulls.iter().copied()) },
        redactor,
    )
}
