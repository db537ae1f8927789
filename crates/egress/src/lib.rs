//! Egress: the proxy through which a box reaches the network.
//!
//! A box has no network interface. Inside it one address leads, byte for byte, to one Unix socket on the
//! host, and this crate serves that socket: a proxy for tunnels and plain requests that lets through what the
//! [`policy`] of the run allows, and the [`model_route`], which puts the real key into calls to the model.
//! The [`record`] has one line for each of them.
//!
//! Egress profiles (`none`, `model-only`, `packages`, `open`) are in `policy/profile.rs`, the hosts of
//! `packages` in `policy/registry.rs`. The engine creates the socket, the products choose the policy.

mod config;
mod env;
pub mod model_route;
pub mod policy;
mod proxy;
pub mod record;
mod resolve;
mod state;

use std::sync::Arc;

use host::web_proxy::WebProxy;
use tokio::net::UnixListener;

pub use config::{EgressConfig, EgressError, EgressReport};
pub use env::{model_base_url, proxy_env};
pub use model_route::{KeySource, KeyStore, ModelRouteSpec, ModelUsage};
pub use policy::{AllowRule, EgressLimits, EgressPolicy, EgressProfile, RuleError, is_public};
pub use record::{EgressSummary, render_summary};
pub use resolve::{Resolved, Resolver, SystemResolver};
pub use state::EgressState;

use proxy::ProxyState;

/// The egress of one run, ready to serve.
#[derive(Debug)]
pub struct Egress {
    shared: Arc<ProxyState>,
}

impl Egress {
    /// Opens the log, continuing that of an earlier supervisor of the same run, and prepares to serve.
    pub async fn open(config: EgressConfig, keys: KeyStore) -> Result<Self, EgressError> {
        Self::open_with(config, keys, Arc::new(SystemResolver), WebProxy::from_env()?).await
    }

    /// Like [`Egress::open`], with a given resolver and proxy of the network outside.
    pub async fn open_with(
        config: EgressConfig,
        keys: KeyStore,
        resolver: Arc<dyn Resolver>,
        proxy: WebProxy,
    ) -> Result<Self, EgressError> {
        Ok(Self { shared: Arc::new(ProxyState::open(config, keys, resolver, proxy).await?) })
    }

    /// Returns the counters, which keep changing while the run is served.
    #[must_use]
    pub fn state(&self) -> Arc<EgressState> {
        Arc::clone(&self.shared.state)
    }

    #[must_use]
    pub fn summary(&self) -> EgressSummary {
        self.shared.log.summary()
    }

    /// Serves `listener` until `stop` completes, closes the remaining connections, and returns the report.
    pub async fn serve(self, listener: UnixListener, stop: impl Future) -> EgressReport {
        proxy::accept_until(&self.shared, &listener, stop).await;
        let summary = self.shared.log.finish().await;
        EgressReport { summary, usage: self.shared.state.usage() }
    }
}
