//! The last step into a command: a new session, a clean signal mask, its own limits, then `execve`.
//!
//! The init keeps its signals blocked from before its first thread to its end, or one could be lost, and a
//! child inherits that mask. Safe Rust has no hook between fork and exec to undo it, hence this role. It also
//! sets limits that would kill the init itself.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use guest::config::RlimitSpec;
use nix::sys::signal::SigSet;

use crate::{GuestError, complain, limit, spawn, visible};

/// The first argument that selects this role.
pub(crate) const ROLE: &str = "exec";

/// Same for a command whose standard input is a terminal of its own.
pub(crate) const TERMINAL_ROLE: &str = "exec-at-terminal";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionKind {
    Plain,
    /// With its standard input as controlling terminal: keys become signals, and a closed terminal hangs up.
    AtTerminal,
}

/// Exit statuses of a command that did not start, by the convention of shells.
const EXIT_NOT_EXECUTABLE: u8 = 126;
pub(crate) const EXIT_NOT_FOUND: u8 = 127;

/// Prepares a command that runs `argv` through this role. The caller adds environment, folder and streams.
pub(crate) fn command<'a>(
    session: SessionKind,
    limits: &RlimitSpec,
    argv: impl IntoIterator<Item = &'a str>,
) -> Result<Command, serde_json::Error> {
    let mut command = spawn::command_ourselves(match session {
        SessionKind::Plain => ROLE,
        SessionKind::AtTerminal => TERMINAL_ROLE,
    });
    command.arg(serde_json::to_string(limits)?).args(argv);
    Ok(command)
}

/// Replaces this process with `program`. Returns a status only if that fails.
pub(crate) fn run(session: SessionKind, limits: &str, program: &str, args: &[OsString]) -> u8 {
    if let Err(why) = prepare(session, limits) {
        return complain(why, EXIT_NOT_EXECUTABLE);
    }
    let error = spawn::command(program).args(args).exec();
    let status = match error.kind() {
        ErrorKind::NotFound => EXIT_NOT_FOUND,
        _ => EXIT_NOT_EXECUTABLE,
    };
    complain(format_args!("could not start {program}: {error}"), status)
}

fn prepare(session: SessionKind, limits: &str) -> Result<(), GuestError> {
    let limits: RlimitSpec = serde_json::from_str(limits).map_err(GuestError::new)?;
    limit::set(&limits)?;
    visible::stay_visible()?;
    SigSet::empty().thread_set_mask().map_err(GuestError::could_not("clear the signal mask"))?;
    // A group leader cannot start a session; it already has a group of its own, which is what matters.
    rustix::process::setsid().ok();
    match session {
        SessionKind::Plain => Ok(()),
        SessionKind::AtTerminal => rustix::process::ioctl_tiocsctty(std::io::stdin())
            .map_err(GuestError::could_not("take the terminal")),
    }
}
