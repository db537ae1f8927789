//! Journal of the active run, written before each step, so that the next command can finish what a crash interrupted

use jiff::Timestamp;
use model::id::{MicroCommitId, Sha};
use serde::{Deserialize, Serialize};

use super::state_file::StateFile;

/// A run that is under way, or was when its process died. A run that ended normally has removed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenRun {
    pub(crate) stem: String,
    pub(crate) directory: String,
    /// Key of its current stage.
    pub(crate) stage: String,
    pub(crate) started: Timestamp,
    pub(crate) micro_commit: Option<MicroCommitId>,
    /// The commit to accept, set once every gate has passed. From then on recovery rolls the run forward.
    pub(crate) accepted: Option<Sha>,
}

impl StateFile for OpenRun {
    const SUFFIX: &'static str = "run.json";

    /// Only an acceptance must survive a power failure; the rest only shows where a failed run died.
    fn is_durable(&self) -> bool {
        self.accepted.is_some()
    }
}
