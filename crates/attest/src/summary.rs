//! The predicate of a verification summary (SLSA, version 1): what a verifier found, for policy engines that ask no more.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::statement::{Predicate, Resource};

/// Level of a subject that failed.
pub const FAILED: &str = "FAILED";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerificationSummary {
    pub verifier: Verifier,
    pub time_verified: Timestamp,
    pub resource_uri: String,
    pub policy: Resource,
    /// All statements that the verification was about.
    pub input_attestations: Vec<Resource>,
    pub verification_result: VerificationResult,
    /// One level of each track; [`FAILED`] alone for a subject that failed.
    pub verified_levels: Vec<String>,
    pub slsa_version: String,
    /// Each check by name. Extensions of this predicate have URIs as names.
    #[serde(rename = "https://bottleworks.dev/policy/checks/v1")]
    pub checks: Vec<PolicyCheck>,
}

impl Predicate for VerificationSummary {
    const TYPE: &'static str = "https://slsa.dev/verification_summary/v1";
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verifier {
    pub id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum VerificationResult {
    Passed,
    Failed,
}

/// One demand of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyCheck {
    pub name: String,
    pub passed: bool,
    pub message: String,
}
