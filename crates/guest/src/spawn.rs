//! The one place where this program starts others. It lives inside the box, where `host` does not reach.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

/// A program that is already mapped: it is found even if nothing else of the file system can be.
const OURSELVES: &str = "/proc/self/exe";

/// A command to run `program`.
#[expect(
    clippy::disallowed_methods,
    reason = "host::process belongs to the other side of the wall; the guest stays tiny and static"
)]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// A command to run this same program in another role.
pub(crate) fn command_ourselves(role: &str) -> Command {
    let mut command = command(OURSELVES);
    command.arg(role);
    command
}

/// The status as shells count it: the code, or 128 and the signal.
pub(crate) fn status_code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(guest::EXIT_GUEST_FAILED)
}
