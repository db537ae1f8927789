//! Our proxy, served as a shim serves it: one thread, one runtime, one socket, and a log on disk.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use egress::policy::{AllowRule, EgressPolicy, EgressProfile};
use egress::{Egress, EgressConfig, KeySource, KeyStore, ModelRouteSpec, Resolved, Resolver};
use host::web_proxy::WebProxy;
use tempfile::TempDir;
use tokio::net::UnixListener;

use crate::serving::serve_on_a_thread;

/// The one name that the box may ask for.
pub(crate) const NAME: &str = "outside.example";

/// A proxy that serves until this process ends.
pub(crate) struct Proxy {
    pub(crate) socket: PathBuf,
    _dir: TempDir,
}

impl Proxy {
    /// Starts a proxy for which [`NAME`] means `outside`.
    pub(crate) fn start(outside: SocketAddr, model: Option<ModelRouteSpec>) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let socket = dir.path().join("egress.sock");
        let listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        listener.set_nonblocking(true).expect("a socket that need not wait");
        let policy = EgressPolicy {
            allow: vec![AllowRule::parse(NAME).expect("a rule")],
            permit_private: vec![outside],
            ..EgressPolicy::new(EgressProfile::ModelOnly)
        };
        let log_path = dir.path().join("egress.jsonl");
        let config = EgressConfig { run: "bench".to_owned(), policy, model, log_path };
        serve_on_a_thread(move || serve(listener, config, outside));
        Self { socket, _dir: dir }
    }
}

async fn serve(
    listener: std::os::unix::net::UnixListener,
    config: EgressConfig,
    outside: SocketAddr,
) {
    let source = config.model.as_ref().map_or(KeySource::None, |model| model.key.clone());
    let resolver = Arc::new(OneAddress(outside));
    let egress = Egress::open_with(config, KeyStore::new(source), resolver, WebProxy::default())
        .await
        .expect("open");
    let listener = UnixListener::from_std(listener).expect("a listener");
    egress.serve(listener, std::future::pending::<()>()).await;
}

/// Every name has this address, whatever the port: so the usual ports can be asked for without being taken.
#[derive(Debug)]
struct OneAddress(SocketAddr);

impl Resolver for OneAddress {
    fn resolve<'a>(&'a self, _host: &'a str, _port: u16) -> Resolved<'a> {
        Box::pin(async { Ok(vec![self.0]) })
    }
}
