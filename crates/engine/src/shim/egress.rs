//! Egress of the box while it runs: one socket in the guest folder, served by this process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use egress::{Egress, EgressConfig, EgressError, EgressReport, EgressState, KeySource, KeyStore};
use sandbox::spec::BoxSpec;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::box_dir::BoxDir;

/// The socket's name in the guest folder; the spec's relay leads to it.
pub const EGRESS_SOCKET: &str = "egress.sock";

/// Time limit for closing open connections at the end.
const LAST_BYTES: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub(super) enum EgressServerError {
    #[error("could not open the socket of the egress proxy")]
    Socket(#[source] io::Error),
    #[error(transparent)]
    Egress(#[from] EgressError),
}

pub(super) struct EgressServer {
    state: Arc<EgressState>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<EgressReport>,
}

impl EgressServer {
    pub(super) async fn open(
        spec: &BoxSpec,
        config: &EgressConfig,
    ) -> Result<Self, EgressServerError> {
        let listener = BoxDir::new(&spec.box_dir).bind_guest_socket(EGRESS_SOCKET);
        let listener = listener.map_err(EgressServerError::Socket)?;
        let source = config.model.as_ref().map_or(KeySource::None, |model| model.key.clone());
        let egress = Egress::open(config.clone(), KeyStore::new(source)).await?;
        let (stop, stopped) = oneshot::channel();
        let state = egress.state();
        let serving = tokio::spawn(egress.serve(listener, stopped));
        Ok(Self { state, stop, serving })
    }

    /// The counters of traffic.
    pub(super) fn state(&self) -> Arc<EgressState> {
        Arc::clone(&self.state)
    }

    /// Closes open connections and returns the report; `None` if that failed.
    pub(super) async fn close(self) -> Option<EgressReport> {
        drop(self.stop);
        tokio::time::timeout(LAST_BYTES, self.serving).await.ok()?.ok()
    }
}
