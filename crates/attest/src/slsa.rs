//! The predicate of SLSA provenance, version 1: the inputs, process and builder of a result.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::statement::{Predicate, Resource};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Provenance {
    pub build_definition: BuildDefinition,
    pub run_details: RunDetails,
}

impl Predicate for Provenance {
    const TYPE: &'static str = "https://slsa.dev/provenance/v1";
}

/// Inputs of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildDefinition {
    /// Schema of the parameters, as a URI.
    pub build_type: String,
    /// Parameters from the user.
    pub external_parameters: Map<String, Value>,
    /// Parameters from the host.
    pub internal_parameters: Map<String, Value>,
    pub resolved_dependencies: Vec<Resource>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunDetails {
    pub builder: Builder,
    pub metadata: Invocation,
    /// Files left beside the result.
    pub byproducts: Vec<Resource>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Builder {
    /// The host, as a URI.
    pub id: String,
    /// Versions of its components.
    pub version: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Invocation {
    pub invocation_id: String,
    pub started_on: Timestamp,
    /// End time; unknown for a run that was never closed in order.
    pub finished_on: Option<Timestamp>,
}
