//! The three things of a cycle that run code of others, each in a sealed box of its own. Everything around them, what
//! goes in and how the outcome is judged, is done by the flow.
//!
//! Agents and tests work on copies. What an agent made comes out as commits in a repository of the host's; nothing of the
//! person's is touched here.

mod collect;
mod draft;
mod implement;
mod leftover;
mod mission;
mod resolve_agent;
mod review;
mod runner;
mod session;
mod test_box;

use std::path::Path;
use std::time::Duration;

use engine::record::ExitRecord;
use host::git::{GitLog, RefName, SealedRepo, WorktreeRepo};
use host::signal::Cancel;
use model::command::{CommandExit, CommandRecord};
use model::id::Sha;
use model::redact::Redactor;
use model::verdict::Ended;

pub(crate) use leftover::{WorkLocation, has_copy, remove_copy, stop_boxes};
pub(crate) use runner::StageRunner;

use crate::disk::workstream::Workstream;
use crate::rules::plan::MicroCommit;
use crate::rules::profile::Profile;

/// What every order says about where it belongs.
#[derive(Clone, Copy)]
pub(crate) struct StageContext<'a> {
    pub(crate) workstream: &'a Workstream,
    pub(crate) profile: &'a Profile,
    pub(crate) product: &'a WorktreeRepo,
    /// The run's directory: logs and boxes go there.
    pub(crate) run_dir: &'a Path,
    pub(crate) cancel: &'a Cancel,
    /// Where every command is written down.
    pub(crate) log: &'a GitLog,
}

/// One micro-commit to implement.
#[derive(Clone, Copy)]
pub(crate) struct ImplementRequest<'a> {
    pub(crate) context: StageContext<'a>,
    pub(crate) commit: &'a MicroCommit,
    /// The text of its block in the plan.
    pub(crate) block: &'a str,
    /// What the worktree is at.
    pub(crate) head: &'a Sha,
    /// What went wrong before and what people answered, for the prompt.
    pub(crate) history: &'a [String],
}

/// One diff to review.
#[derive(Clone, Copy)]
pub(crate) struct ReviewRequest<'a> {
    pub(crate) context: StageContext<'a>,
    pub(crate) commit: &'a MicroCommit,
    pub(crate) block: &'a str,
    /// What the diff leads to.
    pub(crate) head: &'a Sha,
    /// The diff: untrusted text, handed over as a file.
    pub(crate) patch: &'a str,
    /// Tests that it deletes or weakens.
    pub(crate) weakened: &'a [String],
}

/// One suite to run in a box.
#[derive(Clone, Copy)]
pub(crate) struct SuiteRequest<'a> {
    pub(crate) context: StageContext<'a>,
    /// The commit to test.
    pub(crate) head: &'a Sha,
    pub(crate) name: &'a str,
    pub(crate) argv: &'a [String],
    pub(crate) timeout: Duration,
    /// Where its output goes.
    pub(crate) log: &'a Path,
    /// What the suite leaves, from the workspace, and where fresh files of it are copied to.
    pub(crate) left: &'a str,
    pub(crate) results: &'a Path,
    /// Stands before every byte that is kept.
    pub(crate) redactor: &'a Redactor,
}

/// What an agent left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentAnswer {
    /// Its last words: where the answer is looked for.
    pub(crate) text: String,
}

/// What an agent made.
#[derive(Debug, Clone)]
pub(crate) enum CollectedWork {
    /// The branch stands where it stood.
    Nothing,
    /// Commits, in a repository of the host's.
    Commits { repo: SealedRepo, name: RefName, tip: Sha },
    /// Something that is not taken.
    Refused(String),
}

/// How a suite ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SuiteExit {
    /// 124 when the clock ended it.
    pub(crate) exit_code: i32,
    pub(crate) duration: Duration,
}

/// Why a stage could not be run, or did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StageRunError {
    /// A person or the system told us to stop.
    #[error("stopped: {0}")]
    Stopped(String),
    /// The profile asks for what this machine does not have.
    #[error("{0}")]
    Config(String),
    /// The agent or its box failed.
    #[error("{0}")]
    Failed(String),
}

impl StageRunError {
    /// A failure with its whole chain of causes.
    fn failed(error: impl std::error::Error + 'static) -> Self {
        Self::Failed(model::error_chain(&error))
    }

    /// The same for what the profile says.
    fn config(error: impl std::error::Error + 'static) -> Self {
        Self::Config(model::error_chain(&error))
    }
}

/// The signal by which a box is ended.
const KILL: i32 = 9;

impl StageContext<'_> {
    /// Writes down what was run in a box.
    pub(super) fn record(&self, argv: &[String], record: &ExitRecord, printed: &[u8]) {
        let exit = match &record.ended {
            Ended::Exited { code } => CommandExit::Exited(*code),
            Ended::Signalled { signal } => CommandExit::Signalled(*signal),
            Ended::OutOfTime => CommandExit::TimedOut,
            Ended::OutOfMemory | Ended::OutOfSpace | Ended::Stopped | Ended::Frozen => {
                CommandExit::Signalled(KILL)
            }
            Ended::Infra { .. } => CommandExit::NotStarted,
        };
        (self.log)(CommandRecord {
            started_at: record.started_at,
            cwd: "/workspace".into(),
            command: argv.join(" "),
            exit,
            duration_ms: record.wall_ms,
            stdout: printed.to_vec(),
            stderr: Vec::new(),
            dropped_bytes: 0,
        });
    }

    /// Nothing is started for somebody who wants to stop.
    fn refuse_stopped(&self) -> Result<(), StageRunError> {
        match self.cancel.reason() {
            Some(reason) => Err(StageRunError::Stopped(reason.to_string())),
            None => Ok(()),
        }
    }
}
