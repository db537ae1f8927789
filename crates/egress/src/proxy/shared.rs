//! What all connections of a run share.

use std::sync::Arc;
use std::time::Duration;

use super::attempt::Attempt;
use super::pool::Pool;
use crate::config::{EgressConfig, EgressError};
use crate::model_route::KeyStore;
use crate::model_route::route::ModelRoute;
use crate::policy::{EgressPolicy, Refusal};
use crate::record::{Journal, Kind};
use crate::resolve::{Addresses, Resolver};
use crate::state::EgressState;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) policy: EgressPolicy,
    pub(crate) model: Option<ModelRoute>,
    pub(crate) journal: Journal,
    pub(crate) state: Arc<EgressState>,
    pub(crate) addresses: Addresses,
    pub(crate) pool: Pool,
}

impl Shared {
    pub(crate) async fn open(
        config: EgressConfig,
        keys: KeyStore,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, EgressError> {
        let model = match config.model {
            Some(spec) => Some(ModelRoute::open(spec, keys).await?),
            None => None,
        };
        let (journal, old) = Journal::open(&config.run, &config.log_path)?;
        let state = Arc::new(EgressState::new());
        state.restore(&old);
        let keep = Duration::from_secs(config.policy.limits.dns_cache_secs);
        let addresses = Addresses::new(resolver, keep);
        let policy = config.policy;
        Ok(Self { policy, model, journal, state, addresses, pool: Pool::default() })
    }

    /// Begins something that will get a line in the log, unless the run has used up its number.
    pub(crate) fn begin(
        self: &Arc<Self>,
        kind: Kind,
        host: &str,
        port: u16,
    ) -> Result<Attempt, Refusal> {
        let limit = self.policy.limits.requests;
        if self.state.count_request() > limit {
            self.journal.count_unlogged();
            return Err(Refusal::RequestCap { limit });
        }
        Ok(Attempt::new(self, kind, host, port))
    }

    /// Whether the run may move any bytes at all.
    pub(super) fn judge_caps(&self) -> Result<(), Refusal> {
        let (up, down) = (self.policy.limits.bytes_up, self.policy.limits.bytes_down);
        if self.state.bytes_up() >= up {
            return Err(Refusal::UploadCap { limit: up });
        }
        if self.state.bytes_down() >= down {
            return Err(Refusal::DownloadCap { limit: down });
        }
        Ok(())
    }
}
