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
    /// The run, by its id.
    pub run: String,
    /// What it may reach.
    pub policy: EgressPolicy,
    /// Its way to the model, if it has one.
    #[serde(default)]
    pub model: Option<ModelRouteSpec>,
    /// Where the log goes.
    pub log_path: PathBuf,
}

/// What came of a run's egress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EgressReport {
    /// Who was reached, who was not, and how much was moved.
    pub summary: EgressSummary,
    /// What was used of the model.
    pub usage: ModelUsage,
}

/// Why a run's egress cannot be served.
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
