//! One request and its whole response, or the point at which it failed.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::Request;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use hyper_util::client::legacy::Error as HyperError;
use hyper_util::client::legacy::connect::capture_connection;
use tokio::time::timeout;

use super::pool::ConnectError;
use super::{Client, HttpRequest, HttpResponse};

/// Size limit of a response. A page of fifty pull requests with long texts is a few megabytes.
pub(super) const BODY_MAX: usize = 32 * 1024 * 1024;
const AGENT: &str = concat!("bottleworks/", env!("CARGO_PKG_VERSION"));

const SILENT: &str = "did not answer in time";
const BROKE_OFF: &str = "broke off before it had answered";

/// Failure of a request without a response. The texts are the end of a sentence about the forge.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// Nothing was sent, so there is no effect.
    NotSent(&'static str),
    /// The request was sent, and its effect is unknown.
    BrokenOff(&'static str),
    /// The response exceeds the size limit.
    TooLarge,
}

impl Client {
    pub(super) async fn exchange(
        &self,
        request: &HttpRequest,
    ) -> Result<HttpResponse, ExchangeError> {
        let answer_max = request.answer_max;
        let mut request = self.render_request(request)?;
        let mut connected = capture_connection(&mut request);
        let mut sending = self.pool.client().request(request);
        // The time for the response starts with the connection, which has limits of its own.
        let early = tokio::select! {
            early = &mut sending => Some(early),
            _connection = connected.wait_for_connection_metadata() => None,
        };
        let response = async {
            let response = match early {
                Some(response) => response,
                None => sending.await,
            };
            let (head, body) = response.map_err(|error| read_error(&error))?.into_parts();
            match Limited::new(body, answer_max).collect().await {
                Ok(body) => Ok(HttpResponse {
                    status: head.status,
                    headers: head.headers,
                    body: body.to_bytes(),
                }),
                Err(error) if error.is::<LengthLimitError>() => Err(ExchangeError::TooLarge),
                Err(_) => Err(ExchangeError::BrokenOff(BROKE_OFF)),
            }
        };
        let response = timeout(self.retry.answer, response).await;
        // Returns the connection to the pool before the next request looks for one there.
        tokio::task::yield_now().await;
        response.unwrap_or(Err(ExchangeError::BrokenOff(SILENT)))
    }

    fn render_request(&self, request: &HttpRequest) -> Result<Request<Full<Bytes>>, ExchangeError> {
        let mut builder = Request::builder()
            .method(request.method.clone())
            .uri(&request.url)
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, self.protocol.accept);
        for (name, value) in self.protocol.headers {
            builder = builder.header(*name, *value);
        }
        if let Some(value) = &self.authorization {
            builder = builder.header(AUTHORIZATION, value.clone());
        }
        let body = match &request.body {
            None => Full::default(),
            Some(value) => {
                builder = builder.header(CONTENT_TYPE, "application/json");
                Full::from(value.to_string())
            }
        };
        // Every part was built here, so this does not happen; if it did, nothing was sent.
        let odd = ExchangeError::NotSent("has an address that no request can hold");
        builder.body(body).or(Err(odd))
    }
}

fn read_error(error: &HyperError) -> ExchangeError {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
    match cause {
        Some(ConnectError(reason)) => ExchangeError::NotSent(reason),
        None if error.is_connect() => ExchangeError::NotSent(BROKE_OFF),
        None => ExchangeError::BrokenOff(BROKE_OFF),
    }
}
