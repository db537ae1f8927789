//! The predicate of SLSA provenance, version 1: how something was made, from what, and where.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::statement::{Predicate, Resource};

/// SLSA provenance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Provenance {
    /// What was to be done.
    pub build_definition: BuildDefinition,
    /// How it was done.
    pub run_details: RunDetails,
}

impl Predicate for Provenance {
    const TYPE: &'static str = "https://slsa.dev/provenance/v1";
}

/// What was to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildDefinition {
    /// What the parameters below mean, as a URI.
    pub build_type: String,
    /// What others asked for.
    pub external_parameters: Map<String, Value>,
    /// What the host decided.
    pub internal_parameters: Map<String, Value>,
    /// What went into it.
    pub resolved_dependencies: Vec<Resource>,
}

/// How it was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunDetails {
    /// Who did it.
    pub builder: Builder,
    /// Which time it was.
    pub metadata: Invocation,
    /// What was left beside the result.
    pub byproducts: Vec<Resource>,
}

/// Who did it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Builder {
    /// The host, as a URI.
    pub id: String,
    /// Versions of what ran there.
    pub version: Map<String, Value>,
}

/// Which time it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Invocation {
    /// The run.
    pub invocation_id: String,
    /// When it began.
    pub started_on: Timestamp,
    /// When it was over; unknown for one that never was closed in order.
    pub finished_on: Option<Timestamp>,
}
