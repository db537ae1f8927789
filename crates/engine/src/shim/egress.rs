//! The way out of the box while it runs: one socket in the guest folder, served by this process.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use egress::{Egress, EgressConfig, EgressError, EgressReport, EgressState, KeySource, KeyStore};
use sandbox::spec::BoxSpec;
use tokio::net::UnixListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The socket's name in the guest folder; the spec's relay leads to it.
pub const EGRESS_SOCKET: &str = "egress.sock";

/// How long open connections may take to be cut at the end.
const LAST_BYTES: Duration = Duration::from_secs(5);

/// The way out could not be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum EgressServerError {
    #[error("could not open the socket of the way out")]
    Socket(#[source] io::Error),
    #[error(transparent)]
    Egress(#[from] EgressError),
}

/// A way out that is being served.
pub(super) struct EgressServer {
    state: Arc<EgressState>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<EgressReport>,
}

impl EgressServer {
    /// Opens the socket and serves it. The box's user must be able to connect, and nobody but that box sees it.
    pub(super) async fn open(
        spec: &BoxSpec,
        config: &EgressConfig,
    ) -> Result<Self, EgressServerError> {
        let listener = bind(spec).map_err(EgressServerError::Socket)?;
        let source = config.model.as_ref().map_or(KeySource::None, |model| model.key.clone());
        let egress = Egress::open(config.clone(), KeyStore::new(source)).await?;
        let (stop, stopped) = oneshot::channel();
        let state = egress.state();
        let serving = tokio::spawn(egress.serve(listener, stopped));
        Ok(Self { state, stop, serving })
    }

    /// The counters, for whoever wants to know whether anything moves.
    pub(super) fn state(&self) -> Arc<EgressState> {
        Arc::clone(&self.state)
    }

    /// Cuts what is still open and tells what happened; nothing if even that failed.
    pub(super) async fn close(self) -> Option<EgressReport> {
        drop(self.stop);
        tokio::time::timeout(LAST_BYTES, self.serving).await.ok()?.ok()
    }
}

/// The path of a run may be longer than a socket's address allows, so the folder is named by its descriptor.
fn bind(spec: &BoxSpec) -> io::Result<UnixListener> {
    let folder = spec.guest_dir();
    fs::create_dir_all(&folder)?;
    let held = File::open(&folder)?;
    let listener =
        UnixListener::bind(format!("/proc/self/fd/{}/{EGRESS_SOCKET}", held.as_raw_fd()))?;
    fs::set_permissions(folder.join(EGRESS_SOCKET), Permissions::from_mode(0o666))?;
    Ok(listener)
}
