//! An implementation that passed its checks and waits for tests and review. It is recorded before the branch moves, so
//! that a crash or a signal neither loses the commit nor makes it twice.

use model::id::{MicroCommitId, Sha};
use serde::{Deserialize, Serialize};

use super::state_file::StateFile;

/// A commit that is, or is about to be, the tip of the workstream's branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Implemented {
    pub(crate) micro_commit: MicroCommitId,
    /// Tip of the branch before it.
    pub(crate) before: Sha,
    pub(crate) tip: Sha,
    /// The run whose import repository holds it until the branch has it.
    pub(crate) run: String,
    /// Its ref in that repository.
    pub(crate) name: String,
}

impl StateFile for Implemented {
    const SUFFIX: &'static str = "implemented.json";
}
