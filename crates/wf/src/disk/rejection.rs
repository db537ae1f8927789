//! Rejections of micro-commits with their reasons, for the prompt of the next attempt.

use std::path::Path;

use model::id::MicroCommitId;
use serde::{Deserialize, Serialize};

use super::{DiskResult, load_json, save};
use crate::rules::schema::render_json;

const FILE: &str = "rejections.json";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rejection {
    pub(crate) commit: MicroCommitId,
    pub(crate) sha: String,
    #[serde(alias = "words")]
    pub(crate) message: String,
    pub(crate) by: String,
    pub(crate) at: String,
}

pub(crate) fn load_rejections(workstream: &Path) -> DiskResult<Vec<Rejection>> {
    Ok(load_json(&workstream.join(FILE))?.unwrap_or_default())
}

/// Adds one; the caller holds the global lock.
pub(crate) fn add_rejection(workstream: &Path, rejection: Rejection) -> DiskResult<()> {
    let mut all = load_rejections(workstream)?;
    all.push(rejection);
    save(&workstream.join(FILE), render_json(&all).as_bytes())
}
