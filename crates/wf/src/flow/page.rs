//! Text of a web page, read under the rules that boxes have: public addresses, the usual ports, and every redirect judged
//! like the first address. `AGENT_PERMIT_PRIVATE` of the profile names exceptions.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use egress::policy::{DenyReason, HostName};
use egress::{EgressPolicy, EgressProfile};
use host::tls::TlsError;
use host::web_proxy::{ProxyServer, TunnelError, WebProxy, WebProxyError, WebScheme};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderName, LOCATION,
    USER_AGENT,
};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::rules::page_text::render_page_text;
use crate::rules::page_url::{PageScheme, PageUrl, PageUrlError};

/// Largest page.
const PAGE_MAX_BYTES: usize = 2 << 20;
/// Time for all of it, redirects included.
const TIME_LIMIT: Duration = Duration::from_secs(30);
const REDIRECTS_MAX: usize = 5;
const AGENT: &str = concat!("bottleworks-wf/", env!("CARGO_PKG_VERSION"));
const PAGE_TYPES: &str = "text/markdown, text/plain, text/html;q=0.9, application/xhtml+xml;q=0.8";

/// Reason why a page was not read. The text follows its address.
#[derive(Debug, Error)]
pub(crate) enum PageError {
    #[error("cannot be read: {0}")]
    Url(#[from] PageUrlError),
    #[error("{0}")]
    Denied(#[from] DenyReason),
    #[error("leads to {to}, which cannot be read")]
    Redirect {
        to: String,
        #[source]
        cause: Box<Self>,
    },
    #[error("is redirected more than {REDIRECTS_MAX} times")]
    Redirects,
    #[error("could not be resolved")]
    Unresolved,
    #[error("does not take the connection")]
    Unreachable,
    #[error("{0}")]
    Tunnel(#[from] TunnelError),
    #[error("cannot be reached: {0}")]
    Proxy(#[from] WebProxyError),
    #[error("cannot be read")]
    Setup(#[from] TlsError),
    #[error("did not prove who it is (TLS)")]
    Tls,
    #[error("broke off before it had answered")]
    BrokenOff,
    #[error("did not answer within {} seconds", TIME_LIMIT.as_secs())]
    TimedOut,
    #[error("asks for a login ({0})")]
    Login(u16),
    #[error("answers {0}")]
    Status(u16),
    #[error("is larger than {} MiB", PAGE_MAX_BYTES >> 20)]
    TooLarge,
    #[error("is no page of text but {0}")]
    NoText(String),
    #[error("is not encoded in UTF-8")]
    NotUtf8,
}

impl PageError {
    /// True if it was decided here, so that another try ends the same.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Url(_) | Self::Denied(_) | Self::Proxy(_) => true,
            Self::Redirect { cause, .. } => cause.is_refusal(),
            Self::Redirects
            | Self::Unresolved
            | Self::Unreachable
            | Self::Tunnel(_)
            | Self::Setup(_)
            | Self::Tls
            | Self::BrokenOff
            | Self::TimedOut
            | Self::Login(_)
            | Self::Status(_)
            | Self::TooLarge
            | Self::NoText(_)
            | Self::NotUtf8 => false,
        }
    }
}

/// Reads a page as text. `permitted` are the addresses that are allowed although they are not public.
pub(crate) async fn read_page(url: &str, permitted: Vec<SocketAddr>) -> Result<String, PageError> {
    let mut policy = EgressPolicy::new(EgressProfile::Open);
    policy.permit_private = permitted;
    let reader = PageReader { policy, proxy: WebProxy::from_env()? };
    let url = PageUrl::parse(url)?;
    timeout(TIME_LIMIT, reader.follow(url)).await.unwrap_or(Err(PageError::TimedOut))
}

struct PageReader {
    policy: EgressPolicy,
    proxy: WebProxy,
}

/// Way to an address: who chose it decides what a proxy is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chosen {
    ByUser,
    ByServer,
}

impl PageReader {
    async fn follow(&self, first: PageUrl) -> Result<String, PageError> {
        let mut url = first;
        let mut chosen = Chosen::ByUser;
        for _ in 0..=REDIRECTS_MAX {
            let led = |cause| match chosen {
                Chosen::ByUser => cause,
                Chosen::ByServer => {
                    PageError::Redirect { to: url.to_string(), cause: Box::new(cause) }
                }
            };
            let response = self.ask(&url, chosen).await.map_err(led)?;
            match response.status() {
                StatusCode::OK => return read_text(response).await.map_err(led),
                StatusCode::MOVED_PERMANENTLY
                | StatusCode::FOUND
                | StatusCode::SEE_OTHER
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT => {
                    let to = header(response.headers(), &LOCATION);
                    let next = url.join(&to);
                    url = next.map_err(|cause| PageError::Redirect {
                        to: model::inert::inert_line(&to),
                        cause: Box::new(cause.into()),
                    })?;
                    chosen = Chosen::ByServer;
                }
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    return Err(led(PageError::Login(response.status().as_u16())));
                }
                status => return Err(led(PageError::Status(status.as_u16()))),
            }
        }
        Err(PageError::Redirects)
    }

    async fn ask(&self, url: &PageUrl, chosen: Chosen) -> Result<Response<Incoming>, PageError> {
        let request = Request::get(&url.path)
            .header(HOST, url.authority())
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, PAGE_TYPES)
            .header(ACCEPT_ENCODING, "identity")
            .body(Empty::<Bytes>::new())
            .or(Err(PageError::Url(PageUrlError::Character)))?;
        let stream = self.connect(url, chosen).await?;
        let mut sender = match url.scheme {
            PageScheme::Http => shake_hands(stream).await?,
            PageScheme::Https => {
                let name = ServerName::try_from(url.host.clone()).or(Err(PageError::Tls))?;
                let config = host::tls::load_client_config(None).await?;
                let connector = TlsConnector::from(Arc::clone(&config));
                let secured = connector.connect(name, stream).await.or(Err(PageError::Tls))?;
                shake_hands(secured).await?
            }
        };
        sender.send_request(request).await.or(Err(PageError::BrokenOff))
    }

    /// Connects at one of the judged addresses and no other, or through the proxy of the network.
    async fn connect(&self, url: &PageUrl, chosen: Chosen) -> Result<TcpStream, PageError> {
        let scheme = match url.scheme {
            PageScheme::Https => WebScheme::Https,
            PageScheme::Http => WebScheme::Http,
        };
        let located = self.locate(url).await;
        if let Some(server) = self.proxy.server_for(scheme, &url.host, url.port) {
            return connect_through(server, url, chosen, located).await;
        }
        for address in located? {
            if let Ok(stream) = TcpStream::connect(address).await {
                return Ok(stream);
            }
        }
        Err(PageError::Unreachable)
    }

    /// Resolves the host and judges all its addresses.
    async fn locate(&self, url: &PageUrl) -> Result<Vec<SocketAddr>, PageError> {
        if let Ok(address) = url.host.parse::<IpAddr>() {
            let address = SocketAddr::new(address, url.port);
            return match self.policy.permit_private.contains(&address) {
                true => Ok(vec![address]),
                false => Err(DenyReason::IpLiteral.into()),
            };
        }
        let host = HostName::parse(&url.host).or(Err(DenyReason::BadTarget))?;
        self.policy.judge_name(&host, url.port)?;
        let found = tokio::net::lookup_host((host.as_str(), url.port)).await;
        let addresses: Vec<SocketAddr> = found.or(Err(PageError::Unresolved))?.collect();
        self.policy.judge_addresses(url.port, &addresses)?;
        Ok(addresses)
    }
}

/// A proxy resolves names itself and would lead to addresses that are refused here. A name that the user typed is passed on,
/// also where this machine cannot resolve it; one that a server chose is passed on as the address that was judged.
async fn connect_through(
    server: &ProxyServer,
    url: &PageUrl,
    chosen: Chosen,
    located: Result<Vec<SocketAddr>, PageError>,
) -> Result<TcpStream, PageError> {
    let target = match (chosen, located) {
        (Chosen::ByUser, Ok(_) | Err(PageError::Unresolved)) => url.host.clone(),
        (Chosen::ByServer, Ok(addresses)) => {
            addresses.first().map(|address| address.ip().to_string()).unwrap_or_default()
        }
        (_, Err(error)) => return Err(error),
    };
    Ok(server.connect(&target, url.port).await?.0)
}

async fn shake_hands<S>(stream: S) -> Result<http1::SendRequest<Empty<Bytes>>, PageError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.or(Err(PageError::BrokenOff))?;
    // It ends by itself once the sender and the body are dropped.
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    Ok(sender)
}

async fn read_text(response: Response<Incoming>) -> Result<String, PageError> {
    let kind = header(response.headers(), &CONTENT_TYPE).to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_owned();
    let is_html = ["text/html", "application/xhtml+xml"].contains(&kind.as_str());
    if !is_html && !kind.starts_with("text/") {
        let kind = if kind.is_empty() { "of an unknown type".to_owned() } else { kind };
        return Err(PageError::NoText(model::inert::inert_line(&kind)));
    }
    let encoding = header(response.headers(), &CONTENT_ENCODING);
    if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
        return Err(PageError::NoText("compressed, though it was asked not to be".to_owned()));
    }
    let body = Limited::new(response.into_body(), PAGE_MAX_BYTES).collect().await;
    let body = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => PageError::TooLarge,
        false => PageError::BrokenOff,
    })?;
    let bytes = body.to_bytes();
    let text = std::str::from_utf8(&bytes).or(Err(PageError::NotUtf8))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Ok(if is_html { render_page_text(text) } else { text.to_owned() })
}

/// A header as text; empty where it is missing or no text.
fn header(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}
