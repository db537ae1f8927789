//! Specification of a model route, as data without secrets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use hyper::Uri;
use model::wire::WireApi;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::dialect::Dialect;
use super::key::KeySource;
use super::price::Prices;
use super::usage::ModelUsage;
use crate::policy::{HostFault, HostName, port_of};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRouteSpec {
    /// The base URL, as in `https://api.example.com`; the part after `/-/model` is appended.
    pub upstream: Upstream,
    pub auth: AuthStyle,
    pub key: KeySource,
    /// The key that the box was given and that every call must carry; empty disables the check.
    #[serde(default)]
    pub dummy_key: String,
    /// The wire APIs whose calls are forwarded.
    #[serde(default = "all_apis")]
    pub apis: Vec<WireApi>,
    #[serde(default)]
    pub caps: Caps,
    #[serde(default)]
    pub prices: Prices,
    /// The largest request body, in bytes.
    #[serde(default = "default_body_bytes")]
    pub max_body_bytes: u64,
    /// Certificates to trust besides those of the system, in PEM; for a server with its own authority.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// True if the base URL has the version, so that `/v1` of a call is dropped.
    #[serde(default)]
    pub drops_version: bool,
    #[serde(default)]
    pub dialect: Dialect,
    /// The model that the user chose, for a dialect that has it in the path.
    #[serde(default)]
    pub model: Option<String>,
}

/// Header in which a server expects the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthStyle {
    /// `x-api-key: KEY`
    XApiKey,
    /// `authorization: Bearer KEY`
    Bearer,
    /// `api-key: KEY`
    ApiKey,
    /// Both `x-api-key` and `authorization`.
    Both,
    /// `authorization: Bearer TOKEN` with the mark of a login of Claude Code.
    ClaudeLogin,
    /// `authorization: Bearer TOKEN` with the id of the account, for a ChatGPT login of Codex.
    ChatgptLogin,
}

/// Caps on the use of the model. A call reserves its most before it starts, so that only the answer of a call that runs
/// alone can exceed a cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Caps {
    /// Cost in dollars; needs prices.
    pub max_usd: Option<f64>,
    pub max_tokens: Option<u64>,
    pub max_requests: Option<u64>,
}

impl Caps {
    /// Returns what is left of the caps for another box of the same run.
    #[must_use]
    pub fn less(&self, used: &ModelUsage) -> Self {
        Self {
            max_usd: self.max_usd.map(|max| (max - used.usd).max(0.0)),
            max_tokens: self.max_tokens.map(|max| max.saturating_sub(used.tokens())),
            max_requests: self.max_requests.map(|max| max.saturating_sub(used.requests)),
        }
    }
}

fn all_apis() -> Vec<WireApi> {
    WireApi::ALL.to_vec()
}

fn default_body_bytes() -> u64 {
    64 << 20
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    #[error("{0:?} is not the base address of a model server, such as https://api.example.com")]
    Upstream(String),
    #[error("{text:?} has no usable host: {fault}")]
    Host { text: String, fault: HostFault },
    /// A cap in money without any price would never be reached.
    #[error("a cap in dollars needs prices")]
    Prices,
}

impl ModelRouteSpec {
    /// Creates a route with all wire APIs, no caps and no prices.
    #[must_use]
    pub fn new(upstream: Upstream, auth: AuthStyle, key: KeySource, dummy_key: &str) -> Self {
        Self {
            upstream,
            auth,
            key,
            dummy_key: dummy_key.to_owned(),
            apis: all_apis(),
            caps: Caps::default(),
            prices: Prices::default(),
            max_body_bytes: default_body_bytes(),
            ca_file: None,
            drops_version: false,
            dialect: Dialect::Plain,
            model: None,
        }
    }

    pub fn check(&self) -> Result<(), SpecError> {
        if self.caps.max_usd.is_some() && self.prices.is_empty() {
            return Err(SpecError::Prices);
        }
        Ok(())
    }
}

/// The base URL of a model server: scheme, host, port and a path prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Upstream {
    pub(crate) tls: bool,
    /// A name, or an address without brackets: only the user outside may name one, a process in the box may not.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Empty, or a path without a trailing slash.
    pub(crate) path: String,
}

impl Upstream {
    /// Parses `https://host[:port][/path]`, or the same with `http`.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let wrong = || SpecError::Upstream(text.to_owned());
        let Ok(uri) = text.parse::<Uri>() else { return Err(wrong()) };
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(wrong());
        }
        let host = authority.host();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let host = match bare.parse::<IpAddr>() {
            Ok(address) => address.to_string(),
            Err(_) => HostName::parse(host)
                .map_err(|fault| SpecError::Host { text: text.to_owned(), fault })?
                .to_string(),
        };
        let port = port_of(authority.as_str(), if tls { 443 } else { 80 }).ok_or_else(wrong)?;
        Ok(Self { tls, host, port, path: uri.path().trim_end_matches('/').to_owned() })
    }

    /// Returns the addresses that the URL itself names: an address, or both of `localhost`.
    pub fn literal_addresses(&self) -> Vec<SocketAddr> {
        let local = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        let addresses = match self.host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) if self.host == "localhost" => local.to_vec(),
            Err(_) => Vec::new(),
        };
        addresses.into_iter().map(|address| SocketAddr::new(address, self.port)).collect()
    }

    /// Returns the host, without its port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns whether the path has a version of an API, such as `/v1` or `/v1beta/openai`.
    pub fn has_version(&self) -> bool {
        let is_version = |segment: &str| {
            let rest = segment.strip_prefix('v');
            rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        };
        self.path.split('/').any(is_version)
    }

    /// Returns the value of the `Host` header.
    pub(crate) fn authority(&self) -> String {
        let is_v6 = self.host.contains(':');
        let host = if is_v6 { format!("[{}]", self.host) } else { self.host.clone() };
        let is_usual = self.port == if self.tls { 443 } else { 80 };
        if is_usual { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

impl TryFrom<String> for Upstream {
    type Error = SpecError;

    fn try_from(text: String) -> Result<Self, SpecError> {
        Self::parse(&text)
    }
}

impl From<Upstream> for String {
    fn from(upstream: Upstream) -> Self {
        upstream.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_are_written_out_are_named() {
        let named = |text: &str| Upstream::parse(text).unwrap().literal_addresses();
        assert_eq!(named("http://10.0.0.5:8080/v1"), ["10.0.0.5:8080".parse().unwrap()]);
        assert_eq!(named("https://[fd00::1]"), ["[fd00::1]:443".parse().unwrap()]);
        let local = ["127.0.0.1:80".parse().unwrap(), "[::1]:80".parse().unwrap()];
        assert_eq!(named("http://localhost"), local);
        assert_eq!(named("http://models.example"), []);
    }

    #[test]
    fn a_base_address_is_brought_to_one_spelling() {
        let shown = |text: &str| Upstream::parse(text).unwrap().to_string();
        assert_eq!(shown("https://API.example.com/"), "https://api.example.com");
        assert_eq!(shown("https://api.example.com:443/a/v1/"), "https://api.example.com/a/v1");
        assert_eq!(shown("http://127.0.0.1:8080/s/x"), "http://127.0.0.1:8080/s/x");
        assert_eq!(shown("http://[::1]:8080"), "http://[::1]:8080");
    }

    #[test]
    fn an_address_may_have_the_version() {
        for (text, expected) in [
            ("http://127.0.0.1:11434", false),
            ("http://127.0.0.1:11434/v1", true),
            ("https://x.example/api/paas/v4/", true),
            ("https://x.example/v1beta/openai", true),
            ("https://x.openai.azure.com/openai/v1", true),
            ("https://x.example/vault/api", false),
        ] {
            assert_eq!(Upstream::parse(text).unwrap().has_version(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_base_address_is_refused() {
        let bad = ["api.example.com", "ftp://x.example", "https://u:p@x.example", "https://", ""];
        for text in bad.into_iter().chain(["https://x.example/?a=b", "https://x.example:99999"]) {
            assert!(Upstream::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_second_box_has_what_the_first_one_left() {
        let caps = Caps { max_usd: Some(1.0), max_tokens: Some(100), max_requests: None };
        let used =
            ModelUsage { usd: 0.25, input: 30, output: 10, requests: 3, ..Default::default() };
        let left = Caps { max_usd: Some(0.75), max_tokens: Some(60), max_requests: None };
        assert_eq!(caps.less(&used), left);
        let all = ModelUsage { usd: 2.0, input: 200, ..Default::default() };
        assert_eq!(caps.less(&all).max_tokens, Some(0));
        assert!(ModelUsage::default().reached(&caps.less(&all)).is_some());
    }

    #[test]
    fn a_spec_is_data_and_a_cap_in_money_needs_prices() {
        let text = r#"{"upstream":"https://api.example.com","auth":"x-api-key",
            "key":{"env":"MODEL_KEY"},"dummy_key":"d","caps":{"max_usd":2.5}}"#;
        let spec: ModelRouteSpec = serde_json::from_str(text).unwrap();
        assert_eq!(spec.check(), Err(SpecError::Prices));
        let again: ModelRouteSpec =
            serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
        assert_eq!(again, spec);
    }
}
