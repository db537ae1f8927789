//! HTTP client of one forge: kept connections, limits on everything, retries only where they are safe.
//!
//! - `count` counts of requests
//! - `exchange` one request and its response, or the point at which it failed
//! - `page` complete lists
//! - `pool` the connections
//! - `retry` the decision to send a request again
//! - `status` the meaning of a status

mod count;
mod exchange;
mod hook;
mod page;
mod pool;
mod retry;
mod status;

use std::fmt;

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use model::redact::Redactor;
use model::secret::Secret;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::address::WebBase;
use crate::error::{ForgeError, ForgeResult};
use crate::forge::{ForgeOptions, PlainHttp};
use exchange::ExchangeError;
use retry::{may_repeat, read_wait};

pub use count::{CallResult, call_counts};
pub use hook::HookError;
pub(crate) use page::MissingLink;
pub use pool::HttpPool;
pub use retry::RetryPolicy;

/// Headers and lists of one kind of forge.
#[derive(Debug)]
pub(crate) struct Protocol {
    /// Word before the token in its header.
    pub(crate) token_word: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// Query field with the size of a page of a list.
    pub(crate) page_size_field: &'static str,
    /// Largest page that a server gives by default.
    pub(crate) page_size: usize,
    /// Header with the number of all entries of a list.
    pub(crate) total_header: &'static str,
    pub(crate) missing_link: MissingLink,
}

/// Client of one forge with one token.
pub(crate) struct Client {
    host: String,
    protocol: &'static Protocol,
    pool: HttpPool,
    authorization: Option<HeaderValue>,
    redactor: Redactor,
    retry: RetryPolicy,
}

#[derive(Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: Method,
    /// With the query.
    pub(crate) url: String,
    pub(crate) body: Option<Value>,
    /// Action for an error message, after "could not".
    pub(crate) action: String,
    pub(crate) repeat: Repeat,
    /// Size limit of the response.
    pub(crate) answer_max: usize,
}

/// Safety of sending a request again when the effect of the first is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    Harmless,
    /// A repetition would create a second object.
    Never,
}

#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Client {
    /// Creates a client of the server at `base`; nothing is sent yet. Refuses to send a token to another
    /// machine without TLS.
    pub(crate) async fn open(
        base: &WebBase,
        protocol: &'static Protocol,
        token: Option<&Secret>,
        options: &ForgeOptions,
    ) -> ForgeResult<Self> {
        let host = base.host().to_owned();
        let authorization = match token {
            Some(_) if options.plain_http == PlainHttp::Refused && base.sends_in_the_clear() => {
                return Err(ForgeError::PlainHttp { host });
            }
            Some(token) => Some(render_authorization(token, protocol, &host)?),
            None => None,
        };
        let own = || HttpPool::new(options.ca_file.as_deref(), options.retry.connect);
        let pool = options.pool.clone().unwrap_or_else(own);
        if base.has_tls() {
            pool.prepare_tls().await?;
        }
        let redactor = Redactor::new(token.cloned());
        Ok(Self { host, protocol, pool, authorization, redactor, retry: options.retry.clone() })
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn retry(&self) -> &RetryPolicy {
        &self.retry
    }

    /// Sends a request, with retries where they are safe, until there is a success or a final error.
    pub(crate) async fn call(&self, request: &HttpRequest) -> ForgeResult<HttpResponse> {
        let response = self.send(request).await?;
        self.check_status(request, &response)?;
        Ok(response)
    }

    /// Sends a request like [`Self::call`], and leaves the meaning of the status to the caller.
    pub(crate) async fn send(&self, request: &HttpRequest) -> ForgeResult<HttpResponse> {
        let mut number = 1;
        loop {
            let outcome = self.exchange(request).await;
            count::count(&outcome);
            let asked = outcome.as_ref().ok().and_then(|found| read_wait(&found.headers));
            match self.retry.next_delay(number, asked) {
                Some(delay) if may_repeat(&outcome, request.repeat) => {
                    tokio::time::sleep(delay).await;
                }
                Some(_) | None => return self.read_outcome(request, outcome),
            }
            number += 1;
        }
    }

    /// Sends a request and reads the response as JSON.
    pub(crate) async fn call_json<T: DeserializeOwned>(
        &self,
        request: &HttpRequest,
    ) -> ForgeResult<(T, HeaderMap)> {
        let response = self.call(request).await?;
        match serde_json::from_slice(&response.body) {
            Ok(read) => Ok((read, response.headers)),
            Err(error) => Err(self.unreadable(request, &error.to_string())),
        }
    }

    /// Reads a response as JSON, without its headers.
    pub(crate) async fn json<T: DeserializeOwned>(&self, request: &HttpRequest) -> ForgeResult<T> {
        Ok(self.call_json(request).await?.0)
    }

    /// Reads a resource that may be hidden from the token.
    pub(crate) async fn json_if_allowed<T: DeserializeOwned>(
        &self,
        request: &HttpRequest,
    ) -> ForgeResult<Option<T>> {
        match self.json(request).await {
            Ok(found) => Ok(Some(found)),
            Err(ForgeError::Forbidden { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a resource exists, where the status alone tells.
    pub(crate) async fn is_there(&self, request: &HttpRequest) -> ForgeResult<bool> {
        match self.call(request).await {
            Ok(_) => Ok(true),
            Err(ForgeError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads a file of this server, up to a size limit.
    pub(crate) async fn fetch_file(
        &self,
        url: String,
        action: &str,
        max: usize,
    ) -> ForgeResult<HttpResponse> {
        let request = HttpRequest { answer_max: max, ..HttpRequest::get(url, action) };
        self.send(&request).await
    }

    /// Fetches an address on another server that the forge named, without the token.
    pub(crate) async fn fetch_unsigned(
        &self,
        url: &str,
        action: &str,
        max: Option<usize>,
    ) -> ForgeResult<Vec<u8>> {
        self.pool.prepare_tls().await?;
        let unsigned = Self {
            host: self.host.clone(),
            protocol: self.protocol,
            pool: self.pool.clone(),
            authorization: None,
            redactor: Redactor::new(None),
            retry: self.retry.clone(),
        };
        let usual = HttpRequest::get(url.to_owned(), action);
        let request = HttpRequest { answer_max: max.unwrap_or(usual.answer_max), ..usual };
        Ok(unsigned.call(&request).await?.body.to_vec())
    }

    fn read_outcome(
        &self,
        request: &HttpRequest,
        outcome: Result<HttpResponse, ExchangeError>,
    ) -> ForgeResult<HttpResponse> {
        let (host, action) = (self.host.clone(), request.action.clone());
        outcome.map_err(|error| match (error, request.repeat) {
            (ExchangeError::TooLarge, _) => self.unreadable(request, "it is far too large"),
            (ExchangeError::BrokenOff(_), Repeat::Never) => ForgeError::Lost { host, action },
            (ExchangeError::NotSent(reason), _)
            | (ExchangeError::BrokenOff(reason), Repeat::Harmless) => {
                ForgeError::Unreachable { host, action, reason }
            }
        })
    }

    pub(crate) fn unreadable(&self, request: &HttpRequest, reason: &str) -> ForgeError {
        let (host, action) = (self.host.clone(), request.action.clone());
        ForgeError::Unreadable { host, action, reason: self.show(reason) }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("host", &self.host).finish_non_exhaustive()
    }
}

impl HttpRequest {
    pub(crate) fn get(url: String, action: impl Into<String>) -> Self {
        Self::set(Method::GET, url, None, action)
    }

    /// Builds a request that creates an object, which is not idempotent.
    pub(crate) fn post(url: String, body: Value, action: impl Into<String>) -> Self {
        Self { repeat: Repeat::Never, ..Self::set(Method::POST, url, Some(body), action) }
    }

    /// Builds a request that reads, sets or removes something, which is idempotent.
    pub(crate) fn set(
        method: Method,
        url: String,
        body: Option<Value>,
        action: impl Into<String>,
    ) -> Self {
        let (action, repeat) = (action.into(), Repeat::Harmless);
        Self { method, url, body, action, repeat, answer_max: exchange::BODY_MAX }
    }
}

fn render_authorization(
    token: &Secret,
    protocol: &Protocol,
    host: &str,
) -> ForgeResult<HeaderValue> {
    let bad = || ForgeError::BadToken { host: host.to_owned() };
    if token.is_empty() || !token.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(bad());
    }
    let value = HeaderValue::from_str(&format!("{} {}", protocol.token_word, token.expose()));
    let mut value = value.or(Err(bad()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns the address of a page that users can open, and nothing else.
pub(crate) fn read_page(url: Option<String>) -> Option<String> {
    let is_page = |url: &String| {
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        is_web && url.bytes().all(|byte| byte.is_ascii_graphic())
    };
    url.filter(is_page)
}
