//! Readiness of kernel descriptors such as timers and pidfds, registered with the tokio runtime.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a descriptor with the runtime, for reading only. Must be called inside a tokio runtime.
#[expect(
    deprecated,
    reason = "its successor is unsafe, for types that may lie about their descriptor; an OwnedFd cannot"
)]
pub(crate) fn watch_readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}
