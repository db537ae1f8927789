//! Stages that run foreign code, each in a sealed box of its own: agents and tests. The flow prepares their input and
//! judges their output.
//!
//! Agents and tests work on copies. An agent's commits are imported into a repository of the host; no file of the user
//! changes here.

mod agent;
mod cleanup;
mod collect;
mod resolve;
mod resolve_agent;
mod run_alone;
mod runner;
mod session;
mod setup;
mod test_box;

use std::error::Error;
use std::fmt;
use std::path::Path;

use engine::record::ExitRecord;
use host::git::{GitLog, WorktreeRepo};
use host::signal::Cancel;
use model::command::{CommandExit, CommandRecord};
use model::id::Sha;
use model::redact::Redactor;
use model::verdict::Ended;

pub(crate) use cleanup::{WorkLocation, has_copy, remove_copy, stop_boxes, tidy};
pub(crate) use collect::CollectedWork;
pub(crate) use resolve_agent::permitted_addresses;
pub(crate) use run_alone::run_alone;
pub(crate) use runner::StageRunner;

use crate::disk::Workstream;
use crate::rules::profile::Profile;

/// One stage: its workstream, the commit that it works on, its run and its log.
#[derive(Clone, Copy)]
pub(crate) struct StageContext<'a> {
    pub(crate) runner: &'a StageRunner,
    pub(crate) workstream: &'a Workstream,
    pub(crate) profile: &'a Profile,
    pub(crate) product: &'a WorktreeRepo,
    pub(crate) head: &'a Sha,
    pub(crate) run_dir: &'a Path,
    pub(crate) cancel: &'a Cancel,
    /// Log of every command.
    pub(crate) log: &'a GitLog,
    pub(crate) redactor: &'a Redactor,
    pub(crate) setup: SetupUse,
}

/// Use of a kept set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetupUse {
    Kept,
    /// The set-up runs in the stage's own workspace.
    Anew,
}

/// Reason why a stage did not run to its end. It is no [`Error`] itself, so that every error converts into a failure.
#[derive(Debug)]
pub(crate) enum StageRunError {
    Stopped(String),
    /// The machine could not do its part: its disk is full.
    Machine(String),
    /// The profile is wrong, or asks for something that this machine lacks.
    Config(String),
    Failed(String),
}

pub(crate) type StageResult<T> = Result<T, StageRunError>;

impl StageRunError {
    /// A fault of the profile with its whole chain of causes.
    fn config(error: impl Error + 'static) -> Self {
        Self::Config(model::error_chain(&error))
    }
}

impl<E: Error + 'static> From<E> for StageRunError {
    fn from(error: E) -> Self {
        Self::Failed(model::error_chain(&error))
    }
}

impl fmt::Display for StageRunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(message) => write!(f, "stopped: {message}"),
            Self::Config(message) | Self::Failed(message) | Self::Machine(message) => {
                f.write_str(message)
            }
        }
    }
}

/// The signal that ends a box.
const KILL: i32 = 9;

impl StageContext<'_> {
    /// Logs a command that ran in a box.
    fn record(&self, argv: &[String], record: &ExitRecord, printed: &[u8]) {
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
    fn refuse_stopped(&self) -> StageResult<()> {
        match self.cancel.reason() {
            Some(reason) => Err(StageRunError::Stopped(reason.to_string())),
            None => Ok(()),
        }
    }

    /// The error of a box that ended because the machine's disk is full, whatever the box itself used.
    fn disk_full(&self) -> Option<StageRunError> {
        let free = host::file::free_space(self.run_dir).ok()?;
        let floor = self.profile.disk_floor_bytes();
        (free < floor).then(|| {
            let (free, floor) = (free >> 20, floor >> 20);
            StageRunError::Machine(format!(
                "the disk of {} has {free} MiB left, and {floor} MiB must stay free (BOX_DISK_FLOOR_MB): free some, for example with: wf prune --yes",
                self.run_dir.display()
            ))
        })
    }

    /// The error of a box that was stopped: the reason of the cancellation, or `otherwise`.
    fn stopped(&self, otherwise: &str) -> StageRunError {
        let reason = self.cancel.reason().map(|reason| reason.to_string());
        StageRunError::Stopped(reason.unwrap_or_else(|| otherwise.to_owned()))
    }
}
