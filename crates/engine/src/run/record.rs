//! Record of a run: the part of all products, with the product's own part in the same JSON object.

use std::fmt::Debug;
use std::ops::{Deref, DerefMut};

use jiff::Timestamp;
use model::id::RunId;
use model::verdict::Ended;
use run_store::StoreError;
use run_store::metadata::load_upgraded;
use run_store::run_dir::RunDir;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent_result::AgentResult;
use crate::box_command::BoxCommandSummary;
use crate::evidence::Evidence;
use crate::export::Uncommitted;
use crate::publish::Publication;
use crate::record::ExitRecord;
use crate::workspace::WorkspaceNotes;

/// Version of the record's shape. Version 1 had the agent's result under another key in each product.
const VERSION: u32 = 2;

pub trait ProductRecord: Debug + Clone + Serialize + DeserializeOwned {
    type Verdict: Debug + Clone + Serialize + DeserializeOwned;

    /// The key that version 1 had for the agent's result.
    const AGENT_RESULT_V1: &'static str;
}

/// Last completed step of a run. A run that was interrupted continues after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The commits are pinned; nothing is made yet.
    Pinned,
    Prepared,
    SetUp,
    Launched,
    Ended,
    /// The agent's commits are in the host's repository.
    Imported,
    Judged,
    Checked,
    /// The result is published, or there is nothing to publish.
    Published,
    Closed,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound = "R: ProductRecord")]
pub struct RunRecord<R: ProductRecord> {
    pub version: u32,
    pub run: RunId,
    pub phase: Phase,
    pub started_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    pub workspace: Option<WorkspaceNotes>,
    #[serde(default)]
    pub setup: Option<BoxCommandSummary>,
    #[serde(rename = "box")]
    pub agent_box: Option<ExitRecord>,
    #[serde(default)]
    pub agent_result: Option<AgentResult>,
    pub evidence: Option<Evidence>,
    /// Files that the agent left in no commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<Uncommitted>,
    /// Reason for which nothing could be imported.
    pub import_refused: Option<String>,
    pub verdict: Option<R::Verdict>,
    pub publication: Option<Publication>,
    pub exit_status: Option<u8>,
    /// Hash of the operation log's last entry: without it, entries could be removed from the end unnoticed.
    pub operations_head: Option<String>,
    #[serde(flatten)]
    pub product: R,
}

#[derive(Debug, Clone)]
pub enum ImportOutcome {
    Nothing,
    /// The branch is gone, or the bundle was refused.
    Refused(String),
    Commits(Box<Evidence>),
}

impl<R: ProductRecord> RunRecord<R> {
    pub fn new(run: RunId, product: R) -> Self {
        Self {
            version: VERSION,
            run,
            phase: Phase::Pinned,
            started_at: host::clock::now(),
            finished_at: None,
            workspace: None,
            setup: None,
            agent_box: None,
            agent_result: None,
            evidence: None,
            uncommitted: None,
            import_refused: None,
            verdict: None,
            publication: None,
            exit_status: None,
            operations_head: None,
            product,
        }
    }

    /// Loads the record of a run, also one that an earlier version wrote.
    pub fn load(dir: &RunDir) -> Result<Self, StoreError> {
        load_upgraded(dir, |fields| {
            if fields.get("version").and_then(Value::as_u64) == Some(1) {
                let result = fields.remove(R::AGENT_RESULT_V1).unwrap_or_default();
                fields.insert("agent_result".to_owned(), result);
                fields.insert("version".to_owned(), VERSION.into());
            }
        })
    }

    /// Exit of the agent's box; a box without a record is a failure of the machine.
    pub fn ended(&self) -> Ended {
        match &self.agent_box {
            Some(record) => record.ended.clone(),
            None => Ended::Infra { reason: "the box left no record".to_owned() },
        }
    }

    pub fn import_outcome(&self) -> ImportOutcome {
        match (&self.import_refused, &self.evidence) {
            (Some(reason), _) => ImportOutcome::Refused(reason.clone()),
            (None, Some(evidence)) => ImportOutcome::Commits(Box::new(evidence.clone())),
            (None, None) => ImportOutcome::Nothing,
        }
    }

    pub fn tip(&self) -> Option<model::id::Sha> {
        self.evidence.as_ref().and_then(|evidence| evidence.tip.clone())
    }
}

impl<R: ProductRecord> Deref for RunRecord<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.product
    }
}

impl<R: ProductRecord> DerefMut for RunRecord<R> {
    fn deref_mut(&mut self) -> &mut R {
        &mut self.product
    }
}
