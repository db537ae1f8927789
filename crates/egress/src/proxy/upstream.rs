//! The way to the other side: addresses asked for once and judged, a connection to one of those very
//! addresses, and a request sent over it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::attempt::Meter;
use super::body::Upload;
use super::header::head_size;
use super::pool::{Lease, Peer};
use super::shared::Shared;
use crate::policy::{HostName, Refusal};

/// Why somebody was not reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// We would not.
    Refused(Refusal),
    /// We could not.
    Failed(Failure),
}

impl From<Refusal> for Obstacle {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Failure> for Obstacle {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What went wrong on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Unresolved,
    Unreachable,
    TimedOut,
    Tls,
    BrokenOff,
    NoKey,
}

impl Failure {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Unresolved => "unresolved",
            Self::Unreachable => "unreachable",
            Self::TimedOut => "timed_out",
            Self::Tls => "tls",
            Self::BrokenOff => "broken_off",
            Self::NoKey => "no_key",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unresolved => "could not be resolved",
            Self::Unreachable => "could not be reached",
            Self::TimedOut => "did not answer in time",
            Self::Tls => "did not prove who it is (TLS)",
            Self::BrokenOff => "broke off before it had answered",
            Self::NoKey => "cannot be called, since its key could not be read on the host",
        })
    }
}

/// Where to go.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// What a box asked for, already allowed by name.
    Asked(HostName, u16),
    /// What the person outside chose: any port, and an address in the place of a name.
    Chosen(String, u16),
}

/// Where to go, and how.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) place: Place,
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// An answer, and the connection it comes over.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) response: Response<Incoming>,
    pub(crate) lease: Lease,
}

impl Way {
    fn peer(&self) -> Peer {
        let (host, port) = match &self.place {
            Place::Asked(host, port) => (host.to_string(), *port),
            Place::Chosen(host, port) => (host.clone(), *port),
        };
        Peer { host, port, tls: self.tls.is_some() }
    }
}

impl Shared {
    /// The addresses of a place, all of them judged.
    pub(super) async fn locate(&self, place: &Place) -> Result<Vec<SocketAddr>, Obstacle> {
        let (host, port) = match place {
            Place::Asked(host, port) => (host.as_str(), *port),
            Place::Chosen(host, port) => (host.as_str(), *port),
        };
        let addresses = match host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => match timeout(self.connect_limit(), self.addresses.of(host, port)).await {
                Ok(Ok(addresses)) => addresses,
                Ok(Err(_)) => return Err(Failure::Unresolved.into()),
                Err(_) => return Err(Failure::TimedOut.into()),
            },
        };
        match place {
            Place::Asked(..) => self.policy.judge_addresses(port, &addresses)?,
            Place::Chosen(..) => self.policy.judge_public(&addresses)?,
        }
        Ok(addresses)
    }

    /// Connects to a place, at one of the addresses that were judged and no other.
    pub(super) async fn connect(&self, place: &Place) -> Result<(TcpStream, SocketAddr), Obstacle> {
        let limit = self.connect_limit();
        let connected = timeout(limit, async {
            let addresses = self.locate(place).await?;
            // So that an address that swallows everything leaves time for the next one.
            let share = limit / u32::try_from(addresses.len().clamp(1, 4)).unwrap_or(4);
            for address in addresses {
                if let Ok(Ok(stream)) = timeout(share, TcpStream::connect(address)).await {
                    stream.set_nodelay(true).unwrap_or_default();
                    return Ok((stream, address));
                }
            }
            Err(Failure::Unreachable.into())
        });
        connected.await.unwrap_or_else(|_| Err(Failure::TimedOut.into()))
    }

    /// Sends a request over a connection that waits, or over a new one. A connection that turns out
    /// to be dead is passed over as long as the request has not left.
    pub(crate) async fn send(
        &self,
        way: &Way,
        mut request: Request<Upload>,
        meter: &Meter,
        patience: Duration,
    ) -> Result<Reached, Obstacle> {
        let peer = way.peer();
        let mut head_bytes = head_size(&request.uri().to_string(), request.headers());
        loop {
            let (mut lease, is_new) = match self.pool.take(&peer) {
                Some(lease) => (lease, false),
                None => (self.open_lease(way, &peer).await?, true),
            };
            // Only now does anything leave; the body is counted piece by piece as it goes.
            meter.count_up(std::mem::take(&mut head_bytes))?;
            let Ok(sent) = timeout(patience, lease.sender.try_send_request(request)).await else {
                return Err(Failure::TimedOut.into());
            };
            match sent {
                Ok(response) => return Ok(Reached { response, lease }),
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(Failure::BrokenOff.into()),
                },
            }
        }
    }

    fn connect_limit(&self) -> Duration {
        Duration::from_secs(self.policy.limits.connect_secs)
    }

    async fn open_lease(&self, way: &Way, peer: &Peer) -> Result<Lease, Obstacle> {
        let (stream, address) = self.connect(&way.place).await?;
        let sender = match &way.tls {
            None => shake_hands(stream).await?,
            Some(config) => {
                let Ok(name) = ServerName::try_from(peer.host.clone()) else {
                    return Err(Failure::Tls.into());
                };
                let limit = self.connect_limit();
                let connector = TlsConnector::from(Arc::clone(config));
                match timeout(limit, connector.connect(name, stream)).await {
                    Ok(Ok(stream)) => shake_hands(stream).await?,
                    Ok(Err(_)) => return Err(Failure::Tls.into()),
                    Err(_) => return Err(Failure::TimedOut.into()),
                }
            }
        };
        Ok(Lease { peer: peer.clone(), address, sender })
    }
}

async fn shake_hands<S>(stream: S) -> Result<http1::SendRequest<Upload>, Obstacle>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Ok((sender, connection)) = http1::handshake(TokioIo::new(stream)).await else {
        return Err(Failure::BrokenOff.into());
    };
    // It ends by itself once the sender and the bodies are gone.
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    Ok(sender)
}
