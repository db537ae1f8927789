//! Programs: started, limited in time and output, and ended with everything they started.
//!
//! [`run`] is for programs that are waited for, [`spawn_child`] for the sandbox, which wires a child up
//! itself, and [`spawn_detached`] for a supervisor that outlives this process. The guarantee about ending
//! covers the process group: only a sandbox can hold a process that leaves its group.

mod attached;
mod detached;
mod exited;
mod group;
mod handle;
mod log;
mod log_times;
mod pump;
mod run;
mod segment;
mod spawn;

use std::io;
use std::path::PathBuf;

use model::command::CommandSpec;
use thiserror::Error;

pub use attached::run_attached;
pub use detached::{
    become_session_leader, spawn_detached, spawn_detached_logged, spawn_detached_with,
    take_handed_over,
};
pub use group::signal_group;
pub use handle::{ProcessHandle, send_signal};
pub use log::{LogSummary, LogWriter, parse_left_out};
pub use log_times::LogTimes;
pub use run::{Leftovers, LogOutput, ProcessOutput, RunLimits, run, run_to_log, run_with_input};
pub use rustix::process::Signal;
pub use segment::{LogSegment, find_segments};
pub use spawn::{ChildOptions, Group, RunAs, spawn_child};

pub(crate) use run::{StdinSource, run_spec};

/// A process operation that failed. `action` is a verb.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// It did not start: not found, not executable, or its directory is gone.
    #[error("could not start {program} in {dir}", dir = dir.display())]
    Start { program: String, dir: PathBuf, source: io::Error },
    #[error("could not {action} {program}")]
    Io { action: &'static str, program: String, source: io::Error },
    #[error("could not {action} process {pid}")]
    Reach { action: &'static str, pid: i32, source: io::Error },
}

impl ProcessError {
    fn io(action: &'static str, spec: &CommandSpec) -> impl FnOnce(io::Error) -> Self {
        let program = spec.program.display().to_string();
        move |source| Self::Io { action, program, source }
    }
}
