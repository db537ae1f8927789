//! Inherited descriptors. One that the launcher failed to close must not reach the agent.

use std::io;
use std::os::fd::RawFd;

/// First descriptor after the standard streams, which are meant for the command.
const FIRST_EXTRA: RawFd = 3;

/// Closes everything but the three standard streams. Only at the very start: later it would close our own.
pub(crate) fn close_all() -> io::Result<()> {
    let mut open: Vec<RawFd> = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()));
    }
    for fd in open.into_iter().filter(|fd| *fd >= FIRST_EXTRA) {
        // One of them is the directory listing itself, which is already closed.
        nix::unistd::close(fd).ok();
    }
    Ok(())
}
