//! State shared by all connections of a run.

use std::sync::Arc;
use std::time::Duration;

use host::web_proxy::WebProxy;

use super::attempt::EgressAttempt;
use super::pool::Pool;
use crate::config::{EgressConfig, EgressError};
use crate::model_route::KeyStore;
use crate::model_route::route::ModelRoute;
use crate::policy::{DenyReason, EgressPolicy};
use crate::record::{EgressLog, TrafficKind};
use crate::resolve::{Addresses, Resolver};
use crate::state::EgressState;

#[derive(Debug)]
pub(crate) struct ProxyState {
    pub(crate) policy: EgressPolicy,
    pub(crate) model: Option<ModelRoute>,
    pub(crate) log: EgressLog,
    pub(crate) state: Arc<EgressState>,
    pub(crate) addresses: Addresses,
    pub(crate) pool: Pool,
    /// The proxy of the network outside, where there is one.
    pub(crate) proxy: WebProxy,
}

impl ProxyState {
    pub(crate) async fn open(
        config: EgressConfig,
        keys: KeyStore,
        resolver: Arc<dyn Resolver>,
        proxy: WebProxy,
    ) -> Result<Self, EgressError> {
        let state = Arc::new(EgressState::new());
        let model = match config.model {
            Some(spec) => Some(ModelRoute::open(spec, keys, &state).await?),
            None => None,
        };
        let (log, old) = EgressLog::open(&config.run, &config.log_path)?;
        state.restore(&old);
        let keep = Duration::from_secs(config.policy.limits.dns_cache_secs);
        let addresses = Addresses::new(resolver, keep);
        let policy = config.policy;
        Ok(Self { policy, model, log, state, addresses, pool: Pool::default(), proxy })
    }

    /// Starts an attempt that will get a line in the log, unless the run has reached its limit on requests.
    pub(crate) fn begin(
        self: &Arc<Self>,
        kind: TrafficKind,
        host: &str,
        port: u16,
    ) -> Result<EgressAttempt, DenyReason> {
        let limit = self.policy.limits.requests;
        if self.state.count_request() > limit {
            self.log.count_unlogged();
            return Err(DenyReason::RequestCap { limit });
        }
        Ok(EgressAttempt::new(self, kind, host, port))
    }

    /// Returns whether the run may move any bytes at all.
    pub(super) fn judge_caps(&self) -> Result<(), DenyReason> {
        let (up, down) = (self.policy.limits.bytes_up, self.policy.limits.bytes_down);
        if self.state.bytes_up() >= up {
            return Err(DenyReason::UploadCap { limit: up });
        }
        if self.state.bytes_down() >= down {
            return Err(DenyReason::DownloadCap { limit: down });
        }
        Ok(())
    }
}
