//! The only place where this program starts others. It runs inside the box, where `host` is not available.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

/// Path of this program, which works even if the rest of the file system is inaccessible.
const OURSELVES: &str = "/proc/self/exe";

#[expect(
    clippy::disallowed_methods,
    reason = "host::process belongs to the other side of the wall; the guest stays tiny and static"
)]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Creates a command for this same program in another role.
pub(crate) fn command_ourselves(role: &str) -> Command {
    let mut command = command(OURSELVES);
    command.arg(role);
    command
}

/// Returns the status by the convention of shells: the code, or 128 and the signal.
pub(crate) fn status_code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(guest::EXIT_GUEST_FAILED)
}
