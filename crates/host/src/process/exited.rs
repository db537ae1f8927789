//! Detection of a child's end without waiting for it.
//!
//! A child that has ended but was not waited for keeps its id, and with it the id of its group. Until it is
//! waited for, the rest of the group can be signalled without any risk of hitting an unrelated process.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::unix::AsyncFd;

use crate::async_fd::watch_readable;

#[derive(Debug)]
pub(super) struct ExitWatch {
    pidfd: AsyncFd<OwnedFd>,
}

impl ExitWatch {
    pub(super) fn new(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
        let pidfd = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
        Ok(Self { pidfd: watch_readable(pidfd)? })
    }

    /// Waits until the process has ended; later calls return at once.
    pub(super) async fn ended(&self) -> io::Result<()> {
        // The readiness is not cleared: an ended process stays so.
        self.pidfd.readable().await.map(|_ready| ())
    }
}
