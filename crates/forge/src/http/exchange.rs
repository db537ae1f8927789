//! One request and its whole answer over a connection of its own, or how far it came.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::{Ask, Client, Reply};

/// A page of fifty pull requests with long texts is a few megabytes.
const BODY_MAX: usize = 32 * 1024 * 1024;
const AGENT: &str = concat!("bottleworks/", env!("CARGO_PKG_VERSION"));

const SILENT: &str = "did not answer in time";
const BROKE_OFF: &str = "broke off before it had answered";

/// How far a request came that got no answer. The words are the end of a sentence about the forge.
#[derive(Debug)]
pub(super) enum Fault {
    /// Nothing left, so nothing was done.
    NotSent(&'static str),
    /// It left, and nobody knows what was done.
    BrokenOff(&'static str),
    /// The answer is larger than anything sensible.
    TooLarge,
}

impl Client {
    pub(super) async fn exchange(&self, ask: &Ask) -> Result<Reply, Fault> {
        let request = self.render_request(ask)?;
        let stream = match timeout(self.patience.connect, self.connect()).await {
            Ok(stream) => stream?,
            Err(_) => return Err(Fault::NotSent("could not be connected to in time")),
        };
        let Some(config) = &self.tls else { return self.talk(stream, request).await };
        let Ok(name) = ServerName::try_from(self.base.host.clone()) else {
            return Err(Fault::NotSent("has a name that no certificate can hold"));
        };
        let connector = TlsConnector::from(Arc::clone(config));
        match timeout(self.patience.connect, connector.connect(name, stream)).await {
            Ok(Ok(stream)) => self.talk(stream, request).await,
            Ok(Err(_)) => Err(Fault::NotSent("did not prove who it is (TLS)")),
            Err(_) => Err(Fault::NotSent("did not finish the TLS handshake in time")),
        }
    }

    fn render_request(&self, ask: &Ask) -> Result<Request<Full<Bytes>>, Fault> {
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(&ask.path)
            .header(HOST, self.base.authority())
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, self.dialect.accept)
            .header(CONNECTION, "close");
        for (name, value) in self.dialect.headers {
            request = request.header(*name, *value);
        }
        if let Some(value) = &self.authorization {
            request = request.header(AUTHORIZATION, value.clone());
        }
        let body = match &ask.body {
            None => Full::default(),
            Some(value) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Full::from(value.to_string())
            }
        };
        // Every part was made here, so this does not happen; if it did, nothing has left.
        request.body(body).or(Err(Fault::NotSent("has an address that no request can hold")))
    }

    async fn connect(&self) -> Result<TcpStream, Fault> {
        let (host, port) = (self.base.host.as_str(), self.base.port);
        let Ok(addresses) = tokio::net::lookup_host((host, port)).await else {
            return Err(Fault::NotSent("could not be resolved"));
        };
        let addresses: Vec<SocketAddr> = addresses.collect();
        // So that an address that swallows everything leaves time for the next one.
        let share = self.patience.connect / u32::try_from(addresses.len().clamp(1, 4)).unwrap_or(4);
        for address in addresses {
            if let Ok(Ok(stream)) = timeout(share, TcpStream::connect(address)).await {
                stream.set_nodelay(true).unwrap_or_default();
                return Ok(stream);
            }
        }
        Err(Fault::NotSent("did not take the connection"))
    }

    async fn talk<S>(&self, stream: S, request: Request<Full<Bytes>>) -> Result<Reply, Fault>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let talking = timeout(self.patience.answer, async {
            let Ok((mut sender, connection)) = http1::handshake(TokioIo::new(stream)).await else {
                return Err(Fault::NotSent(BROKE_OFF));
            };
            // A set ends its members with itself: no connection outlives the wait for its answer.
            let mut driver = JoinSet::new();
            driver.spawn(connection);
            let Ok(response) = sender.send_request(request).await else {
                return Err(Fault::BrokenOff(BROKE_OFF));
            };
            let (head, body) = response.into_parts();
            match Limited::new(body, BODY_MAX).collect().await {
                Ok(body) => {
                    Ok(Reply { status: head.status, headers: head.headers, body: body.to_bytes() })
                }
                Err(error) if error.is::<LengthLimitError>() => Err(Fault::TooLarge),
                Err(_) => Err(Fault::BrokenOff(BROKE_OFF)),
            }
        });
        talking.await.unwrap_or(Err(Fault::BrokenOff(SILENT)))
    }
}
