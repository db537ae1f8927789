//! The HTTP proxy of the user's network, as `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` name it.
//!
//! Servers are reached through it by `CONNECT`, so it sees names and no content. This machine itself is always reached
//! directly.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base64ct::{Base64, Encoding};
use model::secret::Secret;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Every variable that is read; a lower-case one outranks its upper-case twin, as in curl.
pub const VARIABLES: [&str; 8] = [
    "https_proxy",
    "HTTPS_PROXY",
    "http_proxy",
    "HTTP_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
];

/// Largest head of an answer to `CONNECT`.
const HEAD_MAX: usize = 16 << 10;

/// Proxies for the two schemes, and the hosts that are reached directly.
#[derive(Clone, Debug, Default)]
pub struct WebProxy {
    https: Option<ProxyServer>,
    http: Option<ProxyServer>,
    exceptions: Vec<Exception>,
}

/// A proxy and the credentials for it.
#[derive(Clone, Debug)]
pub struct ProxyServer {
    host: String,
    port: u16,
    /// `user:password`, in the form of the header.
    credentials: Option<Secret>,
}

/// Use of a connection, which decides about the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebScheme {
    Https,
    Http,
}

/// An entry of `NO_PROXY`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exception {
    Everything,
    /// A name and everything below it, or an address.
    Host {
        name: String,
        port: Option<u16>,
    },
    /// Addresses with the same first bits.
    Network {
        first: IpAddr,
        bits: u8,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{variable} is not the address of an HTTP proxy such as http://proxy.example:3128")]
pub struct WebProxyError {
    variable: &'static str,
}

/// Failure on the way through a proxy. The text follows the name of the server behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TunnelError {
    #[error("cannot be reached: the proxy does not take the connection")]
    Unreachable,
    #[error("cannot be reached: the proxy asks for a user and a password (407)")]
    Unauthorized,
    #[error("cannot be reached: the proxy refuses it")]
    Refused,
    #[error("cannot be reached: the proxy does not speak HTTP")]
    Garbled,
}

impl WebProxy {
    /// Reads the environment.
    pub fn from_env() -> Result<Self, WebProxyError> {
        Self::from_lookup(crate::env::var)
    }

    /// Reads variables that `lookup` returns.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, WebProxyError> {
        let find = |names: [&'static str; 2]| {
            let found = names.into_iter().find_map(|name| Some((name, lookup(name)?)));
            found.filter(|(_, value)| !value.trim().is_empty())
        };
        let all = find(["all_proxy", "ALL_PROXY"]);
        let server = |names| match find(names).or_else(|| all.clone()) {
            Some((variable, value)) => {
                ProxyServer::parse(&value).map(Some).ok_or(WebProxyError { variable })
            }
            None => Ok(None),
        };
        let https = server(["https_proxy", "HTTPS_PROXY"])?;
        let http = server(["http_proxy", "HTTP_PROXY"])?;
        let exceptions = find(["no_proxy", "NO_PROXY"]).map(|(_, value)| parse_exceptions(&value));
        Ok(Self { https, http, exceptions: exceptions.unwrap_or_default() })
    }

    /// Returns the proxy for a server; `None` if it is reached directly.
    #[must_use]
    pub fn server_for(&self, scheme: WebScheme, host: &str, port: u16) -> Option<&ProxyServer> {
        let server = match scheme {
            WebScheme::Https => self.https.as_ref()?,
            WebScheme::Http => self.http.as_ref()?,
        };
        let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
        let address = host.parse::<IpAddr>().ok();
        let is_here = host == "localhost"
            || host.ends_with(".localhost")
            || address.is_some_and(|address| address.is_loopback());
        let is_excepted = self.exceptions.iter().any(|it| it.covers(&host, address, port));
        (!is_here && !is_excepted).then_some(server)
    }

    /// Returns the passwords, which must not be written to a log.
    pub fn secrets(&self) -> impl Iterator<Item = Secret> {
        let servers = self.https.iter().chain(&self.http);
        servers.filter_map(|server| server.credentials.clone())
    }
}

impl ProxyServer {
    /// Parses `http://[user[:password]@]host[:port][/]`; the scheme may be missing, as in curl.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return None,
            None => text,
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        let is_port = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if is_port(port) => (host, port.parse().ok()?),
            Some((host, _)) if !host.starts_with('[') => return None,
            _ => (place, 80),
        };
        let host = host.trim_matches(['[', ']']);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_name) {
            return None;
        }
        let credentials = user.map(decode_percent).map(|user| {
            let user = if user.contains(&b':') { user } else { [user, b":".to_vec()].concat() };
            Secret::new(Base64::encode_string(&user))
        });
        Some(Self { host: host.to_owned(), port, credentials })
    }

    /// Opens a connection to `host` at `port` through the proxy. Returns it with the address of the proxy.
    pub async fn connect(
        &self,
        host: &str,
        port: u16,
    ) -> Result<(TcpStream, SocketAddr), TunnelError> {
        let mut stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .or(Err(TunnelError::Unreachable))?;
        let address = stream.peer_addr().or(Err(TunnelError::Unreachable))?;
        stream.set_nodelay(true).unwrap_or_default();
        let request = self.render_connect(host, port);
        stream.write_all(request.as_bytes()).await.or(Err(TunnelError::Unreachable))?;
        match read_status(&mut stream).await.or(Err(TunnelError::Garbled))? {
            Some(200..=299) => Ok((stream, address)),
            Some(407) => Err(TunnelError::Unauthorized),
            Some(_) => Err(TunnelError::Refused),
            None => Err(TunnelError::Garbled),
        }
    }

    fn render_connect(&self, host: &str, port: u16) -> String {
        let host = host.trim_matches(['[', ']']);
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let credentials = self.credentials.as_ref().map_or_else(String::new, |credentials| {
            format!("Proxy-Authorization: Basic {}\r\n", credentials.expose())
        });
        format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{credentials}\r\n")
    }
}

/// Reads the head of the answer, byte by byte: what follows it belongs to the server behind the proxy.
async fn read_status(stream: &mut TcpStream) -> io::Result<Option<u16>> {
    const SILENCE: Duration = Duration::from_secs(30);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_MAX {
        head.push(tokio::time::timeout(SILENCE, stream.read_u8()).await??);
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
    Ok(words.next().filter(|_| is_http).and_then(|status| status.parse().ok()))
}

impl Exception {
    fn covers(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        match self {
            Self::Everything => true,
            Self::Host { name, port: only } => {
                let is_below = || {
                    address.is_none()
                        && host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'))
                };
                only.is_none_or(|only| only == port) && (host == name || is_below())
            }
            Self::Network { first, bits } => {
                address.is_some_and(|address| have_same_start(*first, address, *bits))
            }
        }
    }
}

fn have_same_start(a: IpAddr, b: IpAddr, bits: u8) -> bool {
    let (a, b, width) = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let dropped = u32::from(width - bits.min(width));
    a.checked_shr(dropped) == b.checked_shr(dropped)
}

/// Parses a list of hosts, suffixes, addresses and networks, separated by commas or blanks. What cannot be parsed covers
/// nothing.
fn parse_exceptions(text: &str) -> Vec<Exception> {
    let words = text.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty());
    words.map(parse_exception).collect()
}

fn parse_exception(word: &str) -> Exception {
    if word == "*" {
        return Exception::Everything;
    }
    if let Some((first, bits)) = word.split_once('/')
        && let (Ok(first), Ok(bits)) = (first.parse(), bits.parse())
    {
        return Exception::Network { first, bits };
    }
    let is_address = word.parse::<IpAddr>().is_ok();
    let (name, port) = match word.rsplit_once(':') {
        Some((name, port)) if !is_address => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (word, None),
        },
        _ => (word, None),
    };
    let name = name.trim_start_matches('*').trim_matches(['.', '[', ']']).to_ascii_lowercase();
    Exception::Host { name, port }
}

/// Decodes `%40` and the like; anything else stays as it is.
fn decode_percent(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut decoded = Vec::new();
    while let Some((first, others)) = rest.split_first() {
        let pair = others.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let code = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match code.filter(|_| *first == b'%') {
            Some(code) => {
                decoded.push(code);
                rest = &others[2..];
            }
            None => {
                decoded.push(*first);
                rest = others;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(variables: &[(&str, &str)]) -> Result<WebProxy, WebProxyError> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        WebProxy::from_lookup(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    /// The place of the proxy for an https server, or nothing.
    fn place(variables: &[(&str, &str)], host: &str, port: u16) -> Option<String> {
        let proxy = proxy(variables).unwrap();
        let server = proxy.server_for(WebScheme::Https, host, port)?;
        Some(format!("{}:{}", server.host, server.port))
    }

    #[test]
    fn the_variable_of_the_scheme_is_used_and_lower_case_first() {
        let both = [("HTTPS_PROXY", "http://upper:1"), ("https_proxy", "http://lower:2/")];
        assert_eq!(place(&both, "a.example", 443).as_deref(), Some("lower:2"));
        assert_eq!(place(&both[..1], "a.example", 443).as_deref(), Some("upper:1"));
        let all = [("ALL_PROXY", "all.example:3128"), ("HTTP_PROXY", "http://plain")];
        assert_eq!(place(&all, "a.example", 443).as_deref(), Some("all.example:3128"));
        let plain = proxy(&all).unwrap();
        let plain = plain.server_for(WebScheme::Http, "a.example", 80).unwrap();
        assert_eq!((plain.host.as_str(), plain.port), ("plain", 80));
        assert_eq!(place(&[("HTTPS_PROXY", "")], "a.example", 443), None);
        assert_eq!(
            place(&[("HTTPS_PROXY", "http://[fd00::1]:8080")], "a", 1).as_deref(),
            Some("fd00::1:8080")
        );
    }

    #[test]
    fn an_address_that_is_no_http_proxy_is_named_by_its_variable() {
        for wrong in [
            "socks5://p:1",
            "https://p:1",
            "http://",
            "http://p:99999",
            "http://p:x",
            "http://p q:1",
        ] {
            let error = proxy(&[("HTTPS_PROXY", wrong)]).unwrap_err().to_string();
            assert!(error.starts_with("HTTPS_PROXY is not the address"), "{wrong}: {error}");
        }
    }

    #[test]
    fn exceptions_and_this_machine_are_reached_directly() {
        let with = |list: &str, host: &str, port: u16| {
            place(&[("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", list)], host, port).is_none()
        };
        for host in ["localhost", "127.0.0.1", "::1", "[::1]", "x.localhost", "127.9.9.9"] {
            assert!(with("", host, 443), "{host}");
        }
        for (list, host, is_direct) in [
            ("corp.example", "corp.example", true),
            ("corp.example", "git.corp.example", true),
            (".corp.example", "GIT.corp.example.", true),
            ("*.corp.example", "git.corp.example", true),
            ("corp.example", "notcorp.example", false),
            ("corp.example:8443", "corp.example", false),
            ("a, corp.example:443", "corp.example", true),
            ("10.0.0.0/8", "10.20.30.40", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "ten.example", false),
            ("fd00::/8", "fd12::1", true),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("192.168.1.1", "192.168.1.1", true),
            ("1.1", "8.8.1.1", false),
            ("fd00::1", "fd00::1", true),
            ("*", "a.example", true),
            ("a b", "b", true),
        ] {
            assert_eq!(with(list, host, 443), is_direct, "{list} {host}");
        }
    }

    #[test]
    fn credentials_go_into_the_request_and_are_not_shown() {
        let proxy = proxy(&[("HTTPS_PROXY", "http://ada:p%40ss@p:1")]).unwrap();
        let server = proxy.server_for(WebScheme::Https, "a.example", 443).unwrap();
        assert_eq!(
            server.render_connect("a.example", 443),
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Basic \
             YWRhOnBAc3M=\r\n\r\n"
        );
        assert!(server.render_connect("fd00::1", 443).starts_with("CONNECT [fd00::1]:443 "));
        assert!(!format!("{proxy:?}").contains("YWRhOnBAc3M="));
        assert_eq!(proxy.secrets().count(), 1);
    }
}
