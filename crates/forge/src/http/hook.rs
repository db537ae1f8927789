//! Webhooks that are sent: one POST to an address of the operator's, without a token of any forge.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::header::{CONTENT_TYPE, USER_AGENT};
use tokio::time::timeout;

use super::exchange::AGENT;
use super::pool::HttpPool;

/// Bytes of a response that are read; its status is all that counts.
const RESPONSE_MAX: usize = 64 * 1024;

/// Failure of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// The receiver answered with a status that is no success. Redirects are not followed.
    #[error("the receiver answered {0}")]
    Status(u16),
    #[error("the receiver could not be reached: {0}")]
    Unreachable(String),
    #[error("the receiver did not answer within {} s", .0.as_secs())]
    Silent(Duration),
}

impl HttpPool {
    /// Posts JSON to an address, with these headers.
    pub async fn post_hook(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: String,
        limit: Duration,
    ) -> Result<(), HookError> {
        let unreachable = |error: &dyn std::fmt::Display| HookError::Unreachable(error.to_string());
        if url.starts_with("https://") {
            self.prepare_tls().await.map_err(|error| unreachable(&error))?;
        }
        let mut builder =
            Request::post(url).header(USER_AGENT, AGENT).header(CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        let request = builder.body(Full::from(body)).map_err(|error| unreachable(&error))?;
        let exchange = async {
            let response = self.client().request(request).await;
            let (head, body) = response.map_err(|error| unreachable(&error))?.into_parts();
            // Read to its end, so that the connection can be used again.
            drop(Limited::new(body, RESPONSE_MAX).collect().await);
            match head.status.is_success() {
                true => Ok(()),
                false => Err(HookError::Status(head.status.as_u16())),
            }
        };
        timeout(limit, exchange).await.unwrap_or(Err(HookError::Silent(limit)))
    }
}
