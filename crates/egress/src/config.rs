//! Configuration of a run's egress, and its report at the end.

use std::path::PathBuf;

use host::chain::ChainFileError;
use host::tls::TlsError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model_route::{ModelRouteSpec, ModelUsage, SpecError};
use crate::policy::EgressPolicy;
use crate::record::EgressSummary;

/// The egress of one run, as data without secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressConfig {
    /// Run id.
    pub run: String,
    /// Allowed hosts, ports and limits.
    pub policy: EgressPolicy,
    /// Route to the model, if there is one.
    #[serde(default)]
    pub model: Option<ModelRouteSpec>,
    /// Path of the log.
    pub log_path: PathBuf,
}

/// Result of a run's egress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EgressReport {
    /// Traffic by host, denials and byte counts.
    pub summary: EgressSummary,
    /// Usage of the model.
    pub usage: ModelUsage,
}

/// A run's egress that cannot be served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EgressError {
    /// The log cannot be written.
    #[error("the egress log cannot be written")]
    Log(#[from] ChainFileError),
    /// The model route contradicts itself.
    #[error("the model route cannot work")]
    Model(#[from] SpecError),
    /// TLS towards the model cannot be set up.
    #[error("the model route has no TLS")]
    Tls(#[from] TlsError),
}
