//! Stages that run foreign code, each in a sealed box of its own: agents and tests. The flow prepares their input and
//! judges their output.
//!
//! Agents and tests work on copies. An agent's commits are imported into a repository of the host; no file of the user
//! changes here.

mod agent;
mod cleanup;
mod collect;
mod resolve_agent;
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

pub(crate) use cleanup::{WorkLocation, has_copy, remove_copy, stop_boxes};
pub(crate) use runner::StageRunner;

use crate::disk::workstream::Workstream;
use crate::rules::plan::MicroCommit;
use crate::rules::profile::Profile;

/// The workstream, run and log that a stage belongs to.
#[derive(Clone, Copy)]
pub(crate) struct StageContext<'a> {
    pub(crate) workstream: &'a Workstream,
    pub(crate) profile: &'a Profile,
    pub(crate) product: &'a WorktreeRepo,
    /// The run's directory, for logs and boxes.
    pub(crate) run_dir: &'a Path,
    pub(crate) cancel: &'a Cancel,
    /// Log of every command.
    pub(crate) log: &'a GitLog,
}

/// One micro-commit to implement.
#[derive(Clone, Copy)]
pub(crate) struct ImplementRequest<'a> {
    pub(crate) context: StageContext<'a>,
    pub(crate) commit: &'a MicroCommit,
    /// The text of its block in the plan.
    pub(crate) block: &'a str,
    /// The commit of the worktree.
    pub(crate) head: &'a Sha,
    /// Earlier failures and answers, for the prompt.
    pub(crate) history: &'a [String],
}

/// One diff to review.
#[derive(Clone, Copy)]
pub(crate) struct ReviewRequest<'a> {
    pub(crate) context: StageContext<'a>,
    pub(crate) commit: &'a MicroCommit,
    pub(crate) block: &'a str,
    /// The commit that the diff leads to.
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
    /// The file for its output.
    pub(crate) log: &'a Path,
    /// The folder of its artifacts in the workspace, and the folder that they are copied to.
    pub(crate) left: &'a str,
    pub(crate) results: &'a Path,
    /// Redacts every byte that is kept.
    pub(crate) redactor: &'a Redactor,
}

/// Work of an agent, collected from its workspace.
#[derive(Debug, Clone)]
pub(crate) enum CollectedWork {
    /// The branch did not move.
    Nothing,
    /// Commits, imported into a repository of the host.
    Commits { repo: SealedRepo, name: RefName, tip: Sha },
    /// Work that is refused, with the reason.
    Refused(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SuiteExit {
    /// 124 when it ran out of time.
    pub(crate) exit_code: i32,
    pub(crate) duration: Duration,
}

/// Reason why a stage did not run to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StageRunError {
    #[error("stopped: {0}")]
    Stopped(String),
    /// The profile is wrong, or asks for something that this machine lacks.
    #[error("{0}")]
    Config(String),
    #[error("{0}")]
    Failed(String),
}

impl StageRunError {
    /// A failure with its whole chain of causes.
    fn failed(error: impl std::error::Error + 'static) -> Self {
        Self::Failed(model::error_chain(&error))
    }

    /// A fault of the profile with its whole chain of causes.
    fn config(error: impl std::error::Error + 'static) -> Self {
        Self::Config(model::error_chain(&error))
    }
}

/// The signal that ends a box.
const KILL: i32 = 9;

impl StageContext<'_> {
    /// Logs a command that ran in a box.
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

    /// Refuses to start anything after a cancellation.
    fn refuse_stopped(&self) -> Result<(), StageRunError> {
        match self.cancel.reason() {
            Some(reason) => Err(StageRunError::Stopped(reason.to_string())),
            None => Ok(()),
        }
    }
}
