//! The seam to the boxes: the three things of a cycle that run code of others. Everything around them, what goes in and
//! how the outcome is judged, is done by the flow.
//!
//! An implementation starts one agent or one suite in one sealed box and brings back what it printed; for IMPLEMENT it
//! also brings the commits back and fast-forwards the worktree. What an agent claims is judged from git afterwards.

use std::path::Path;
use std::time::Duration;

use host::signal::Cancel;
use model::id::Sha;

use crate::disk::workstream::Workstream;
use crate::rules::plan::MicroCommit;
use crate::rules::profile::Profile;

/// What every order says about where it belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) workstream: &'a Workstream,
    pub(crate) profile: &'a Profile,
    /// The run's directory: logs and boxes go there.
    pub(crate) run_dir: &'a Path,
    pub(crate) cancel: &'a Cancel,
}

/// One micro-commit to implement.
#[cfg_attr(not(test), expect(dead_code, reason = "read by a workshop that has boxes"))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImplementOrder<'a> {
    pub(crate) scene: Scene<'a>,
    pub(crate) commit: &'a MicroCommit,
    /// The text of its block in the plan.
    pub(crate) block: &'a str,
    /// What the worktree is at.
    pub(crate) head: &'a Sha,
    /// What went wrong before and what people answered, for the prompt (D81).
    pub(crate) history: &'a [String],
}

/// One diff to review.
#[cfg_attr(not(test), expect(dead_code, reason = "read by a workshop that has boxes"))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReviewOrder<'a> {
    pub(crate) scene: Scene<'a>,
    pub(crate) commit: &'a MicroCommit,
    pub(crate) block: &'a str,
    /// The diff as a file: it is untrusted text, and may be long (D89).
    pub(crate) diff: &'a Path,
}

/// One suite to run in a box.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SuiteOrder<'a> {
    pub(crate) scene: Scene<'a>,
    pub(crate) name: &'a str,
    pub(crate) argv: &'a [String],
    pub(crate) timeout: Duration,
    /// Where its output goes.
    pub(crate) log: &'a Path,
    /// Where `test-results/<project>/<suite>` is to be copied to, if the suite leaves it.
    pub(crate) results: &'a Path,
}

/// What an agent left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentEnd {
    /// Its last words: where the answer is looked for.
    pub(crate) text: String,
}

/// How a suite ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SuiteEnd {
    /// 124 when the clock ended it (D85).
    pub(crate) exit_code: i32,
    pub(crate) duration: Duration,
}

/// Why a stage could not be run, or did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StageError {
    /// There is nothing here that could run it.
    #[error("{stage} needs an agent in a sealed box, which this wf cannot start")]
    NoBox { stage: &'static str },
    /// A person or the system told us to stop.
    #[error("stopped: {0}")]
    Stopped(String),
    /// The agent or its box failed.
    #[error("{0}")]
    Failed(String),
}

/// Runs code of others.
pub(crate) trait Workshop {
    /// Lets an agent implement a micro-commit on the workstream's branch.
    async fn implement(&self, order: ImplementOrder<'_>) -> Result<AgentEnd, StageError>;
    /// Lets an agent review a diff; it can change nothing.
    async fn review(&self, order: ReviewOrder<'_>) -> Result<AgentEnd, StageError>;
    /// Runs a test suite on the worktree as it is committed.
    async fn suite(&self, order: SuiteOrder<'_>) -> Result<SuiteEnd, StageError>;
}

/// A workshop without boxes: it says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoWorkshop;

impl Workshop for NoWorkshop {
    async fn implement(&self, _order: ImplementOrder<'_>) -> Result<AgentEnd, StageError> {
        Err(StageError::NoBox { stage: "IMPLEMENT" })
    }

    async fn review(&self, _order: ReviewOrder<'_>) -> Result<AgentEnd, StageError> {
        Err(StageError::NoBox { stage: "REVIEW" })
    }

    async fn suite(&self, _order: SuiteOrder<'_>) -> Result<SuiteEnd, StageError> {
        Err(StageError::NoBox { stage: "TEST with TEST_IN=box" })
    }
}
