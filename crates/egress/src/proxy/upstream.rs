//! Connections to servers: addresses resolved once and judged, a connection to one of exactly those
//! addresses, and a request sent over it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use host::web_proxy::{ProxyServer, TunnelError, WebScheme};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::attempt::Meter;
use super::body::Upload;
use super::header::head_size;
use super::pool::{Lease, Peer};
use super::shared::ProxyState;
use crate::policy::{DenyReason, HostName};

/// A request that was not answered by its server: refused by the policy, or failed on the way.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(transparent)]
pub(crate) enum RequestError {
    Refused(#[from] DenyReason),
    Failed(#[from] UpstreamFailure),
}

/// Failure on the way to a server. The text follows the name of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum UpstreamFailure {
    #[error("could not be resolved")]
    Unresolved,
    #[error("could not be reached")]
    Unreachable,
    #[error("did not answer in time")]
    TimedOut,
    #[error("did not prove who it is (TLS)")]
    Tls,
    #[error("broke off before it had answered")]
    BrokenOff,
    #[error("answered in an encoding that it was not asked for")]
    Encoded,
    #[error("cannot be called, since its key could not be read on the host")]
    NoKey,
    #[error("cannot be reached: the proxy of this network (HTTPS_PROXY) does not answer")]
    ProxyAway,
    #[error("cannot be reached: the proxy of this network (HTTPS_PROXY) refuses it")]
    ProxyRefused,
}

impl RequestError {
    /// Returns the code for logs and clients.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Failed(UpstreamFailure::Unresolved) => "unresolved",
            Self::Failed(UpstreamFailure::Unreachable) => "unreachable",
            Self::Failed(UpstreamFailure::TimedOut) => "timed_out",
            Self::Failed(UpstreamFailure::Tls) => "tls",
            Self::Failed(UpstreamFailure::BrokenOff) => "broken_off",
            Self::Failed(UpstreamFailure::Encoded) => "encoded",
            Self::Failed(UpstreamFailure::NoKey) => "no_key",
            Self::Failed(UpstreamFailure::ProxyAway) => "proxy_away",
            Self::Failed(UpstreamFailure::ProxyRefused) => "proxy_refused",
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Refused(_) => StatusCode::FORBIDDEN,
            Self::Failed(UpstreamFailure::TimedOut) => StatusCode::GATEWAY_TIMEOUT,
            Self::Failed(
                UpstreamFailure::Unresolved
                | UpstreamFailure::Unreachable
                | UpstreamFailure::Tls
                | UpstreamFailure::BrokenOff
                | UpstreamFailure::Encoded
                | UpstreamFailure::NoKey
                | UpstreamFailure::ProxyAway
                | UpstreamFailure::ProxyRefused,
            ) => StatusCode::BAD_GATEWAY,
        }
    }

    /// Returns the sentence for the client that requested `host` at `port`.
    pub(super) fn explain(&self, host: &str, port: u16) -> String {
        match self {
            Self::Refused(refusal) => refusal.explain(host, port),
            Self::Failed(failure) => format!("failed: {host}:{port} {failure}"),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum UpstreamTarget {
    /// A target that a box requested, already allowed by name.
    Asked(HostName, u16),
    /// A target that the user outside chose: any port, and possibly an address in place of a name.
    Chosen(String, u16),
}

#[derive(Clone, Debug)]
pub(crate) struct UpstreamRoute {
    pub(crate) place: UpstreamTarget,
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// A response, and the connection it arrives over.
#[derive(Debug)]
pub(crate) struct UpstreamResponse {
    pub(crate) response: Response<Incoming>,
    pub(crate) lease: Lease,
}

impl UpstreamTarget {
    fn host_and_port(&self) -> (&str, u16) {
        match self {
            Self::Asked(host, port) => (host.as_str(), *port),
            Self::Chosen(host, port) => (host, *port),
        }
    }
}

impl ProxyState {
    /// Resolves a target and judges all its addresses.
    pub(super) async fn locate(
        &self,
        place: &UpstreamTarget,
    ) -> Result<Vec<SocketAddr>, RequestError> {
        let (host, port) = place.host_and_port();
        let addresses = match host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => match timeout(self.connect_limit(), self.addresses.of(host, port)).await {
                Ok(Ok(addresses)) => addresses,
                Ok(Err(_)) => return Err(UpstreamFailure::Unresolved.into()),
                Err(_) => return Err(UpstreamFailure::TimedOut.into()),
            },
        };
        match place {
            UpstreamTarget::Asked(..) => self.policy.judge_addresses(port, &addresses)?,
            UpstreamTarget::Chosen(..) => self.policy.judge_public(&addresses)?,
        }
        Ok(addresses)
    }

    /// Connects to a target, at one of the judged addresses and no other, or through the proxy of the network outside.
    pub(super) async fn connect(
        &self,
        place: &UpstreamTarget,
        scheme: WebScheme,
    ) -> Result<(TcpStream, SocketAddr), RequestError> {
        let limit = self.connect_limit();
        let (host, port) = place.host_and_port();
        if let Some(server) = self.proxy.server_for(scheme, host, port) {
            let connected = timeout(limit, self.connect_through(server, place));
            return connected.await.unwrap_or_else(|_| Err(UpstreamFailure::TimedOut.into()));
        }
        let connected = timeout(limit, async {
            let addresses = self.locate(place).await?;
            // An unresponsive address must leave time for the next one.
            let share = limit / u32::try_from(addresses.len().clamp(1, 4)).unwrap_or(4);
            for address in addresses {
                if let Ok(Ok(stream)) = timeout(share, TcpStream::connect(address)).await {
                    stream.set_nodelay(true).unwrap_or_default();
                    return Ok((stream, address));
                }
            }
            Err(UpstreamFailure::Unreachable.into())
        });
        connected.await.unwrap_or_else(|_| Err(UpstreamFailure::TimedOut.into()))
    }

    /// Connects through a proxy, which resolves names itself and would lead to addresses that are refused here. A name
    /// that a rule lists, or that the user chose, is passed on; any other is passed on as the address that was judged.
    async fn connect_through(
        &self,
        server: &ProxyServer,
        place: &UpstreamTarget,
    ) -> Result<(TcpStream, SocketAddr), RequestError> {
        let (host, port) = place.host_and_port();
        let is_listed = match place {
            UpstreamTarget::Asked(host, port) => self.policy.lists(host, *port),
            UpstreamTarget::Chosen(..) => true,
        };
        // Behind a proxy many machines resolve no outside names, so a listed one need not be.
        let patience = self.connect_limit() / 3;
        let located = timeout(patience, self.locate(place)).await;
        let located = located.unwrap_or_else(|_| Err(UpstreamFailure::TimedOut.into()));
        let target = match located {
            Ok(_) if is_listed => host.to_owned(),
            Ok(addresses) => addresses.first().map(|it| it.ip().to_string()).unwrap_or_default(),
            Err(RequestError::Failed(_)) if is_listed => host.to_owned(),
            Err(error) => return Err(error),
        };
        let failed = |error| match error {
            TunnelError::Unreachable | TunnelError::Garbled => UpstreamFailure::ProxyAway,
            TunnelError::Refused | TunnelError::Unauthorized => UpstreamFailure::ProxyRefused,
        };
        server.connect(&target, port).await.map_err(|error| failed(error).into())
    }

    /// Sends a request over an idle connection, or over a new one. A connection that turns out to be dead is
    /// skipped as long as the request has not been sent.
    pub(crate) async fn send(
        &self,
        way: &UpstreamRoute,
        mut request: Request<Upload>,
        meter: &Meter,
        time_limit: Duration,
    ) -> Result<UpstreamResponse, RequestError> {
        let (host, port) = way.place.host_and_port();
        let peer = Peer { host: host.to_owned(), port, tls: way.tls.is_some() };
        let mut head_bytes = head_size(&request.uri().to_string(), request.headers());
        loop {
            let (mut lease, is_new) = match self.pool.take(&peer) {
                Some(lease) => (lease, false),
                None => (self.open_lease(way, &peer).await?, true),
            };
            // Only now is anything sent; the body is counted chunk by chunk.
            meter.count_up(std::mem::take(&mut head_bytes))?;
            let Ok(sent) = timeout(time_limit, lease.sender.try_send_request(request)).await else {
                return Err(UpstreamFailure::TimedOut.into());
            };
            match sent {
                Ok(response) => return Ok(UpstreamResponse { response, lease }),
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(UpstreamFailure::BrokenOff.into()),
                },
            }
        }
    }

    fn connect_limit(&self) -> Duration {
        Duration::from_secs(self.policy.limits.connect_secs)
    }

    async fn open_lease(&self, way: &UpstreamRoute, peer: &Peer) -> Result<Lease, RequestError> {
        let scheme = if way.tls.is_some() { WebScheme::Https } else { WebScheme::Http };
        let (stream, address) = self.connect(&way.place, scheme).await?;
        let sender = match &way.tls {
            None => shake_hands(stream).await?,
            Some(config) => {
                let Ok(name) = ServerName::try_from(peer.host.clone()) else {
                    return Err(UpstreamFailure::Tls.into());
                };
                let limit = self.connect_limit();
                let connector = TlsConnector::from(Arc::clone(config));
                match timeout(limit, connector.connect(name, stream)).await {
                    Ok(Ok(stream)) => shake_hands(stream).await?,
                    Ok(Err(_)) => return Err(UpstreamFailure::Tls.into()),
                    Err(_) => return Err(UpstreamFailure::TimedOut.into()),
                }
            }
        };
        Ok(Lease { peer: peer.clone(), address, sender })
    }
}

async fn shake_hands<S>(stream: S) -> Result<http1::SendRequest<Upload>, RequestError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Ok((sender, connection)) = http1::handshake(TokioIo::new(stream)).await else {
        return Err(UpstreamFailure::BrokenOff.into());
    };
    // It ends by itself once the sender and the bodies are dropped.
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    Ok(sender)
}
