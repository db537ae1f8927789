//! Summary of a bottle in the database of several hosts: what a look at its issue needs, because its folder is on the disk of
//! one host only.

use orchestrator_db::{IssueKey, Store};
use serde::{Deserialize, Serialize};

use super::bottle::Record;
use crate::exit::{Failure, OrGeneral};

/// Facts about a bottle that its host stores.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BottleSummary {
    pub(crate) record: Record,
    /// The agent's question, if a person was called for it.
    #[serde(default)]
    pub(crate) question: Option<String>,
    /// The last lines of the newest log, if a person was called.
    #[serde(default)]
    pub(crate) log: String,
}

impl BottleSummary {
    pub(crate) fn of(record: &Record) -> Self {
        Self { record: record.clone(), question: None, log: String::new() }
    }

    pub(crate) fn to_text(&self) -> Result<String, Failure> {
        serde_json::to_string(self).or_general()
    }
}

/// The summary of an issue's bottle; `None` if its host has not stored one that this version can read.
pub(crate) fn load_summary(
    store: &dyn Store,
    key: &IssueKey,
) -> Result<Option<BottleSummary>, Failure> {
    let text = store.bottle_summary(key).or_general()?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}
