//! HTTP towards one forge: one request per connection, limits on everything, repeats only where they do no harm.
//!
//! - `exchange` one request and its answer, or how far it came
//! - `retry` whether and when to ask again
//! - `status` what a status means
//! - `tls` whom to trust

mod exchange;
mod retry;
mod status;
mod tls;

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use host::clock;
use hyper::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Method, StatusCode};
use model::redact::Redactor;
use model::secret::Secret;
use rustls::ClientConfig;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::address::{Tls, WebBase};
use crate::error::ForgeError;
use exchange::Fault;
use retry::{Step, Tried, Trouble};

pub use retry::Patience;
pub use tls::TlsError;

/// Speaks to one forge with one token.
pub(crate) struct Client {
    base: WebBase,
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
        token: Option<&Secret>,
        ca_file: Option<&Path>,
        patience: Patience,
    ) -> Result<Self, ForgeError> {
        let authorization = match token {
            Some(token) => Some(render_authorization(token, &base)?),
            None => None,
        };
        let tls = match base.tls {
            Tls::On => Some(load_tls(ca_file.map(Path::to_path_buf)).await?),
            Tls::Off => None,
        };
        let redactor = Redactor::new(token.cloned());
        Ok(Self { base, tls, authorization, redactor, patience })
    }

    pub(crate) fn base(&self) -> &WebBase {
        &self.base
    }

    pub(crate) fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Asks, again where that does no harm, until there is an answer that means success or an error worth showing.
    pub(crate) async fn call(&self, ask: &Ask) -> Result<Reply, ForgeError> {
        let mut attempt = 1;
        loop {
            let outcome = self.exchange(ask).await;
            let tried = Tried {
                attempt,
                repeat: ask.repeat,
                trouble: trouble_of(&outcome),
                retry_after: outcome.as_ref().ok().and_then(retry_after),
            };
            match self.patience.next_step(&tried, random()) {
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

    /// Waits as long as before another attempt.
    pub(crate) async fn rest(&self, attempt: u32) {
        tokio::time::sleep(self.patience.backoff_after(attempt, random())).await;
    }

    fn read_outcome(&self, ask: &Ask, outcome: Result<Reply, Fault>) -> Result<Reply, ForgeError> {
        let (host, action) = (self.base.host.clone(), ask.action.clone());
        match outcome {
            Ok(reply) => match self.read_status(ask, &reply) {
                None => Ok(reply),
                Some(error) => Err(error),
            },
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
        let Self { base, tls: _, authorization: _, redactor: _, patience } = self;
        f.debug_struct("Client").field("base", base).field("patience", patience).finish()
    }
}

fn render_authorization(token: &Secret, base: &WebBase) -> Result<HeaderValue, ForgeError> {
    let fits = |byte: u8| byte.is_ascii_graphic();
    if token.is_empty() || !token.expose().bytes().all(fits) {
        return Err(ForgeError::BadToken { host: base.host.clone() });
    }
    match HeaderValue::from_str(&format!("token {}", token.expose())) {
        Ok(mut value) => {
            value.set_sensitive(true);
            Ok(value)
        }
        Err(_) => Err(ForgeError::BadToken { host: base.host.clone() }),
    }
}

/// Reads files, so not on a thread that others wait for.
async fn load_tls(ca_file: Option<PathBuf>) -> Result<Arc<ClientConfig>, TlsError> {
    let loading = tokio::task::spawn_blocking(move || tls::load_client_config(ca_file.as_deref()));
    loading.await.unwrap_or(Err(TlsError::GaveUp))
}

fn trouble_of(outcome: &Result<Reply, Fault>) -> Trouble {
    match outcome {
        Ok(reply) if reply.status == StatusCode::TOO_MANY_REQUESTS => Trouble::Busy,
        Ok(reply) if reply.status.is_server_error() => Trouble::Failed,
        Ok(_) | Err(Fault::TooLarge) => Trouble::None,
        Err(Fault::NotSent(_) | Fault::BrokenOff(_)) => Trouble::NoAnswer,
    }
}

fn retry_after(reply: &Reply) -> Option<Duration> {
    let text = reply.headers.get(RETRY_AFTER)?.to_str().ok()?;
    retry::parse_retry_after(text, clock::now())
}

/// Enough chance to keep two clients from asking in step; nothing depends on it being hard to guess.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
