//! Configuration of a run's egress, and its report at the end.

use std::path::PathBuf;

use host::chain::ChainFileError;
use host::tls::TlsError;
use host::web_proxy::WebProxyError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model_route::{ModelRouteSpec, ModelUsage, SpecError};
use crate::policy::EgressPolicy;
use crate::record::EgressSummary;

/// The egress of one run, as data without secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressConfig {
    pub run: String,
    pub policy: EgressPolicy,
    #[serde(default)]
    pub model: Option<ModelRouteSpec>,
    pub log_path: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EgressReport {
    pub summary: EgressSummary,
    pub usage: ModelUsage,
}

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EgressError {
    #[error("the egress log cannot be written")]
    Log(#[from] ChainFileError),
    #[error("the model route cannot work")]
    Model(#[from] SpecError),
    #[error("the model route has no TLS")]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Proxy(#[from] WebProxyError),
}
