//! A run with its egress, seen from inside the box.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use egress::policy::{AllowRule, EgressPolicy, EgressProfile};
use egress::record::{EgressEntry, read_log};
use egress::{
    Egress, EgressConfig, EgressReport, EgressState, KeyStore, ModelRouteSpec, Resolved, Resolver,
};
use host::web_proxy::WebProxy;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(crate) const RUN: &str = "app_20250115_120000";
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// A resolver that knows what the test says, and an answer for each time it is asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Arc<Mutex<HashMap<String, VecDeque<Vec<SocketAddr>>>>>);

impl Names {
    pub(crate) fn set(&self, host: &str, addresses: &[&str]) {
        let parsed = addresses.iter().map(|text| text.parse().unwrap()).collect();
        self.0.lock().unwrap().entry(host.to_owned()).or_default().push_back(parsed);
    }
}

impl Resolver for Names {
    fn resolve<'a>(&'a self, host: &'a str, _port: u16) -> Resolved<'a> {
        let mut names = self.0.lock().unwrap();
        let answer = names.get_mut(host).map(|answers| {
            if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0].clone() }
        });
        Box::pin(async move { answer.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }
}

pub(crate) struct World {
    pub(crate) names: Names,
    pub(crate) state: Arc<EgressState>,
    pub(crate) log_path: PathBuf,
    socket: PathBuf,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<EgressReport>,
    dir: TempDir,
    kept: Mutex<Vec<TempDir>>,
}

/// Response to a request.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

pub(crate) fn open_policy(permitted: &[SocketAddr]) -> EgressPolicy {
    EgressPolicy { permit_private: permitted.to_vec(), ..EgressPolicy::new(EgressProfile::Open) }
}

pub(crate) fn rules(texts: &[&str]) -> Vec<AllowRule> {
    texts.iter().map(|text| AllowRule::parse(text).unwrap()).collect()
}

impl World {
    pub(crate) async fn start(policy: EgressPolicy) -> Self {
        Self::start_with(policy, None).await
    }

    pub(crate) async fn start_with(policy: EgressPolicy, model: Option<ModelRouteSpec>) -> Self {
        Self::start_behind(policy, model, WebProxy::default()).await
    }

    /// Starts on a machine that has a proxy outside.
    pub(crate) async fn start_behind(
        policy: EgressPolicy,
        model: Option<ModelRouteSpec>,
        proxy: WebProxy,
    ) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), policy, model, proxy).await
    }

    /// Ends the supervisor and starts another for the same run.
    pub(crate) async fn restart(self, policy: EgressPolicy, model: Option<ModelRouteSpec>) -> Self {
        self.stop.send(()).unwrap();
        timeout(PATIENCE, self.serving).await.unwrap().unwrap();
        std::fs::remove_file(&self.socket).unwrap();
        Self::start_in(self.dir, policy, model, WebProxy::default()).await
    }

    async fn start_in(
        dir: TempDir,
        policy: EgressPolicy,
        model: Option<ModelRouteSpec>,
        proxy: WebProxy,
    ) -> Self {
        let log_path = dir.path().join("egress.jsonl");
        let socket = dir.path().join("egress.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let names = Names::default();
        let source = model.as_ref().map_or(egress::KeySource::None, |spec| spec.key.clone());
        let config =
            EgressConfig { run: RUN.to_owned(), policy, model, log_path: log_path.clone() };
        let resolver = Arc::new(names.clone());
        let egress = Egress::open_with(config, KeyStore::new(source), resolver, proxy).await;
        let egress = egress.unwrap();
        let state = egress.state();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(egress.serve(listener, stopped));
        Self { names, state, log_path, socket, stop, serving, dir, kept: Mutex::default() }
    }

    /// Keeps a folder that the run needs until its end.
    pub(crate) fn keep(&self, dir: TempDir) {
        self.kept.lock().unwrap().push(dir);
    }

    /// Ends the run; gives its report and the lines of its log, whose chain was checked.
    pub(crate) async fn finish(self) -> (EgressReport, Vec<EgressEntry>) {
        self.stop.send(()).unwrap();
        let report = timeout(PATIENCE, self.serving).await.unwrap().unwrap();
        let replay = read_log(RUN, &std::fs::read(&self.log_path).unwrap()).unwrap();
        assert_eq!(replay.head.head, report.summary.log_head);
        (report, replay.lines)
    }

    pub(crate) async fn dial(&self) -> UnixStream {
        UnixStream::connect(&self.socket).await.unwrap()
    }

    /// Sends bytes as they are and reads until the proxy closes.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Got {
        let mut stream = self.dial().await;
        // A proxy that has had enough may close while bytes are still on their way.
        stream.write_all(bytes).await.unwrap_or_default();
        parse_got(&read_all(&mut stream).await)
    }

    /// A plain request through the proxy.
    pub(crate) async fn get(&self, url: &str) -> Got {
        let host = url.trim_start_matches("http://").split('/').next().unwrap();
        let text = format!("GET {url} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        self.raw(text.as_bytes()).await
    }

    /// Asks for a tunnel; gives the stream once it is granted, or what was said instead.
    pub(crate) async fn connect(&self, target: &str) -> Result<UnixStream, Got> {
        let mut stream = self.dial().await;
        let ask = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n");
        stream.write_all(ask.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let byte = timeout(PATIENCE, stream.read_u8()).await.unwrap().unwrap();
            head.push(byte);
        }
        let mut got = parse_got(&head);
        if got.status == 200 {
            return Ok(stream);
        }
        let length = header(&got.head, "content-length").unwrap().parse().unwrap();
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        got.body = String::from_utf8(body).unwrap();
        Err(got)
    }

    /// Asks for a tunnel, sends bytes into it, ends its own side, and gives what comes back.
    pub(crate) async fn through(&self, target: &str, bytes: &[u8]) -> Result<Vec<u8>, Got> {
        let mut stream = self.connect(target).await?;
        stream.write_all(bytes).await.unwrap_or_default();
        stream.shutdown().await.unwrap_or_default();
        Ok(read_all(&mut stream).await)
    }

    /// The same for a plain request, whose sender keeps its side open until it has the answer.
    pub(crate) async fn ask_through(&self, target: &str, request: &[u8]) -> String {
        let mut stream = self.connect(target).await.unwrap();
        stream.write_all(request).await.unwrap();
        String::from_utf8(read_all(&mut stream).await).unwrap()
    }
}

async fn read_all(stream: &mut UnixStream) -> Vec<u8> {
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().unwrap_or_default();
    answer
}

pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn parse_got(bytes: &[u8]) -> Got {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Got { status, head: head.to_owned(), body: body.to_owned() }
}

/// First bytes of a real TLS client.
pub(crate) fn client_hello(host: &str, with_name: bool) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    config.enable_sni = with_name;
    let name = host.to_owned().try_into().unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}
