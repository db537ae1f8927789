//! What people did not accept, and why: told to the agent that tries again (D81).

use std::path::Path;

use model::id::MicroCommitId;
use serde::{Deserialize, Serialize};

use super::{DiskError, read_optional, save};
use crate::rules::schema::render_json;

const FILE: &str = "rejections.json";

/// One micro-commit that a person sent back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rejection {
    pub(crate) commit: MicroCommitId,
    pub(crate) sha: String,
    #[serde(alias = "words")]
    pub(crate) message: String,
    pub(crate) by: String,
    pub(crate) at: String,
}

/// All of a workstream, oldest first.
pub(crate) fn load_rejections(workstream: &Path) -> Result<Vec<Rejection>, DiskError> {
    let path = workstream.join(FILE);
    let Some(bytes) = read_optional(&path)? else { return Ok(Vec::new()) };
    serde_json::from_slice(&bytes).map_err(|error| DiskError::invalid(&path, error))
}

/// Adds one; the caller holds the global lock.
pub(crate) fn add_rejection(workstream: &Path, rejection: Rejection) -> Result<(), DiskError> {
    let mut all = load_rejections(workstream)?;
    all.push(rejection);
    save(&workstream.join(FILE), render_json(&all).as_bytes())
}
