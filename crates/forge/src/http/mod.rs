//! HTTP towards one forge: one request per connection, limits on everything, repeats only where they do no harm.
//!
//! - `exchange` one request and its answer, or how far it came
//! - `member` membership, which forges tell in statuses
//! - `page` lists to their end
//! - `retry` whether and when to ask again
//! - `status` what a status means

mod exchange;
mod member;
mod page;
mod retry;
mod status;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use host::tls::load_client_config;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use model::redact::Redactor;
use model::secret::Secret;
use rustls::ClientConfig;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::address::{Tls, WebBase};
use crate::error::ForgeError;
use exchange::Fault;
use retry::{Step, Tried, Trouble, is_busy, read_wait};

pub(crate) use page::{Paging, Silence};
pub use retry::Patience;

/// How one kind of forge wants to be spoken to.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// What stands before the token in its header.
    pub(crate) token_word: &'static str,
    pub(crate) accept: &'static str,
    /// Headers beyond the usual ones.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    pub(crate) paging: Paging,
}

/// Speaks to one forge with one token.
pub(crate) struct Client {
    base: WebBase,
    dialect: &'static Dialect,
    tls: Option<Arc<ClientConfig>>,
    authorization: Option<HeaderValue>,
    redactor: Redactor,
    patience: Patience,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// With the query.
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
    /// What is being done, as an error says it after "could not".
    pub(crate) action: String,
    pub(crate) repeat: Repeat,
}

/// Whether a request may be sent again when nobody knows what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Twice does the same as once.
    Harmless,
    /// Twice would make two.
    Never,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Client {
    /// Prepares to speak to a forge; nothing is sent yet.
    pub(crate) async fn open(
        base: WebBase,
        dialect: &'static Dialect,
        token: Option<&Secret>,
        ca_file: Option<&Path>,
        patience: Patience,
    ) -> Result<Self, ForgeError> {
        let authorization = match token {
            Some(token) => Some(render_authorization(token, dialect, &base)?),
            None => None,
        };
        let tls = match base.tls {
            Tls::On => Some(load_client_config(ca_file.map(Path::to_path_buf)).await?),
            Tls::Off => None,
        };
        let redactor = Redactor::new(token.cloned());
        Ok(Self { base, dialect, tls, authorization, redactor, patience })
    }

    pub(crate) fn base(&self) -> &WebBase {
        &self.base
    }

    pub(crate) fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Asks, again where that does no harm, until there is an answer that means success or an error worth showing.
    pub(crate) async fn call(&self, ask: &Ask) -> Result<Reply, ForgeError> {
        let reply = self.send(ask).await?;
        match self.read_status(ask, &reply) {
            None => Ok(reply),
            Some(error) => Err(error),
        }
    }

    /// Asks like [`Self::call`], and leaves it to the caller what the status means.
    pub(crate) async fn send(&self, ask: &Ask) -> Result<Reply, ForgeError> {
        let mut attempt = 1;
        loop {
            let outcome = self.exchange(ask).await;
            let tried = Tried {
                attempt,
                repeat: ask.repeat,
                trouble: trouble_of(&outcome),
                retry_after: outcome.as_ref().ok().and_then(|reply| read_wait(&reply.headers)),
            };
            match self.patience.next_step(&tried) {
                Step::Take => return self.read_outcome(ask, outcome),
                Step::Wait(time) => tokio::time::sleep(time).await,
            }
            attempt += 1;
        }
    }

    /// Asks, and reads the answer as JSON.
    pub(crate) async fn call_json<T: DeserializeOwned>(
        &self,
        ask: &Ask,
    ) -> Result<(T, HeaderMap), ForgeError> {
        let reply = self.call(ask).await?;
        match serde_json::from_slice(&reply.body) {
            Ok(read) => Ok((read, reply.headers)),
            Err(error) => Err(self.unreadable(ask, &error.to_string())),
        }
    }

    /// Asks for one thing as JSON, without its headers.
    pub(crate) async fn json<T: DeserializeOwned>(&self, ask: &Ask) -> Result<T, ForgeError> {
        Ok(self.call_json(ask).await?.0)
    }

    /// Whether something is there, where that is all the answer says.
    pub(crate) async fn is_there(&self, ask: &Ask) -> Result<bool, ForgeError> {
        match self.call(ask).await {
            Ok(_) => Ok(true),
            Err(ForgeError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read_outcome(&self, ask: &Ask, outcome: Result<Reply, Fault>) -> Result<Reply, ForgeError> {
        let (host, action) = (self.base.host.clone(), ask.action.clone());
        match outcome {
            Ok(reply) => Ok(reply),
            Err(Fault::NotSent(reason)) => Err(ForgeError::Unreachable { host, action, reason }),
            Err(Fault::BrokenOff(reason)) => Err(match ask.repeat {
                Repeat::Harmless => ForgeError::Unreachable { host, action, reason },
                Repeat::Never => ForgeError::Lost { host, action },
            }),
            Err(Fault::TooLarge) => Err(self.unreadable(ask, "it is far too large")),
        }
    }

    fn unreadable(&self, ask: &Ask, reason: &str) -> ForgeError {
        let (host, action) = (self.base.host.clone(), ask.action.clone());
        ForgeError::Unreadable { host, action, reason: self.show(reason) }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base, dialect: _, tls: _, authorization: _, redactor: _, patience } = self;
        f.debug_struct("Client").field("base", base).field("patience", patience).finish()
    }
}

impl Ask {
    pub(crate) fn get(path: String, action: impl Into<String>) -> Self {
        Self::new(Method::GET, path, None, action)
    }

    /// Makes something: twice would make two.
    pub(crate) fn post(path: String, body: Value, action: impl Into<String>) -> Self {
        Self { repeat: Repeat::Never, ..Self::new(Method::POST, path, Some(body), action) }
    }

    /// Sets or adds something that is there at most once, so doing it twice is doing it once.
    pub(crate) fn set(
        method: Method,
        path: String,
        body: Option<Value>,
        action: impl Into<String>,
    ) -> Self {
        Self::new(method, path, body, action)
    }

    fn new(method: Method, path: String, body: Option<Value>, action: impl Into<String>) -> Self {
        Self { method, path, body, action: action.into(), repeat: Repeat::Harmless }
    }
}

fn render_authorization(
    token: &Secret,
    dialect: &Dialect,
    base: &WebBase,
) -> Result<HeaderValue, ForgeError> {
    let fits = |byte: u8| byte.is_ascii_graphic();
    if token.is_empty() || !token.expose().bytes().all(fits) {
        return Err(ForgeError::BadToken { host: base.host.clone() });
    }
    match HeaderValue::from_str(&format!("{} {}", dialect.token_word, token.expose())) {
        Ok(mut value) => {
            value.set_sensitive(true);
            Ok(value)
        }
        Err(_) => Err(ForgeError::BadToken { host: base.host.clone() }),
    }
}

fn trouble_of(outcome: &Result<Reply, Fault>) -> Trouble {
    match outcome {
        Ok(reply) if is_busy(reply.status, &reply.headers) => Trouble::Busy,
        Ok(reply) if reply.status.is_server_error() => Trouble::Failed,
        Ok(_) | Err(Fault::TooLarge) => Trouble::None,
        Err(Fault::NotSent(_) | Fault::BrokenOff(_)) => Trouble::NoAnswer,
    }
}

/// A page that people can open, and nothing else.
pub(crate) fn read_page(url: Option<String>) -> Option<String> {
    let is_page = |url: &String| {
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        is_web && url.bytes().all(|byte| byte.is_ascii_graphic())
    };
    url.filter(is_page)
}
