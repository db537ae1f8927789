//! Pool of connections to servers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use host::tls::{TlsError, load_client_config};
use host::web_proxy::{TunnelError, WebProxy, WebProxyError, WebScheme};
use http_body_util::Full;
use hyper::Uri;
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower_service::Service;

/// Idle limit, shorter than that of servers, so that few requests meet a connection that is being closed.
const IDLE_LIMIT: Duration = Duration::from_secs(20);
const IDLE_MAX_PER_SERVER: usize = 4;

/// Connections to all servers of one caller. Clones share them. They belong to the runtime that created them,
/// so a pool must not move to another one.
#[derive(Debug, Clone)]
pub struct HttpPool {
    client: HyperClient<ServerConnector, Full<Bytes>>,
    connector: ServerConnector,
}

impl HttpPool {
    /// Creates a pool; nothing is read or connected yet. `ca_file` has certificates to trust beyond the
    /// system's, and `connect_limit` applies to a connection and again to its TLS handshake.
    pub fn new(ca_file: Option<&Path>, connect_limit: Duration) -> Self {
        Self::behind(WebProxy::from_env(), ca_file, connect_limit)
    }

    /// Like [`Self::new`], with a given proxy instead of the one that the environment names.
    pub fn behind(
        proxy: Result<WebProxy, WebProxyError>,
        ca_file: Option<&Path>,
        connect_limit: Duration,
    ) -> Self {
        let tls = Arc::default();
        let ca_file = ca_file.map(Path::to_path_buf);
        let connector = ServerConnector { tls, ca_file, connect_limit, proxy: Arc::new(proxy) };
        let client = HyperClient::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_LIMIT)
            .pool_max_idle_per_host(IDLE_MAX_PER_SERVER)
            .build(connector.clone());
        Self { client, connector }
    }

    /// Loads the certificates, once, so that their errors are known before anything is sent.
    pub(super) async fn prepare_tls(&self) -> Result<(), TlsError> {
        self.connector.tls().await.map(|_config| ())
    }

    pub(super) fn client(&self) -> &HyperClient<ServerConnector, Full<Bytes>> {
        &self.client
    }
}

/// Opens connections, with TLS where the address requires it.
#[derive(Debug, Clone)]
pub(super) struct ServerConnector {
    tls: Arc<OnceCell<Arc<ClientConfig>>>,
    ca_file: Option<PathBuf>,
    connect_limit: Duration,
    proxy: Arc<Result<WebProxy, WebProxyError>>,
}

/// Reason why there is no connection, as the end of a sentence about the server.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("{0}")]
pub(super) struct ConnectError(pub(super) &'static str);

/// Either kind of stream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

type AnyStream = TokioIo<Box<dyn Stream>>;

impl Connection for Box<dyn Stream> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Service<Uri> for ServerConnector {
    type Response = AnyStream;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<AnyStream, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.connect(&uri).await.map(TokioIo::new) })
    }
}

impl ServerConnector {
    async fn tls(&self) -> Result<&Arc<ClientConfig>, TlsError> {
        self.tls.get_or_try_init(|| load_client_config(self.ca_file.clone())).await
    }

    async fn connect(&self, uri: &Uri) -> Result<Box<dyn Stream>, ConnectError> {
        let has_tls = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = uri.port_u16().unwrap_or(if has_tls { 443 } else { 80 });
        let scheme = if has_tls { WebScheme::Https } else { WebScheme::Http };
        let connecting = self.connect_any(scheme, host, port);
        let Ok(stream) = timeout(self.connect_limit, connecting).await else {
            return Err(ConnectError("could not be connected to in time"));
        };
        let stream = stream?;
        if !has_tls {
            return Ok(Box::new(stream));
        }
        let Ok(name) = ServerName::try_from(host.to_owned()) else {
            return Err(ConnectError("has a name that no certificate can hold"));
        };
        let config = self.tls().await.or(Err(ConnectError("cannot be spoken to with TLS")))?;
        let connector = TlsConnector::from(Arc::clone(config));
        match timeout(self.connect_limit, connector.connect(name, stream)).await {
            Ok(Ok(stream)) => Ok(Box::new(stream)),
            Ok(Err(_)) => Err(ConnectError("did not prove who it is (TLS)")),
            Err(_) => Err(ConnectError("did not finish the TLS handshake in time")),
        }
    }

    /// Connects through the proxy of the network, where it is for this server.
    async fn connect_any(
        &self,
        scheme: WebScheme,
        host: &str,
        port: u16,
    ) -> Result<TcpStream, ConnectError> {
        let Ok(proxy) = self.proxy.as_ref() else {
            return Err(ConnectError(
                "cannot be reached: HTTPS_PROXY is not the address of an HTTP proxy such as http://proxy.example:3128",
            ));
        };
        let Some(server) = proxy.server_for(scheme, host, port) else {
            return self.connect_tcp(host, port).await;
        };
        let reason = |error| match error {
            TunnelError::Unreachable | TunnelError::Garbled => {
                "cannot be reached: the proxy of this network (HTTPS_PROXY) does not answer"
            }
            TunnelError::Unauthorized => {
                "cannot be reached: the proxy of this network asks for a user and a password (HTTPS_PROXY)"
            }
            TunnelError::Refused => {
                "cannot be reached: the proxy of this network (HTTPS_PROXY) refuses it"
            }
        };
        let connected = server.connect(host, port).await;
        connected.map(|(stream, _)| stream).map_err(|error| ConnectError(reason(error)))
    }

    async fn connect_tcp(&self, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
        let Ok(addresses) = tokio::net::lookup_host((host, port)).await else {
            return Err(ConnectError("could not be resolved"));
        };
        let addresses: Vec<SocketAddr> = addresses.collect();
        // Each address gets a share, so that an unresponsive one leaves time for the next.
        let share = self.connect_limit / u32::try_from(addresses.len().clamp(1, 4)).unwrap_or(4);
        for address in addresses {
            if let Ok(Ok(stream)) = timeout(share, TcpStream::connect(address)).await {
                stream.set_nodelay(true).unwrap_or_default();
                return Ok(stream);
            }
        }
        Err(ConnectError("did not take the connection"))
    }
}
