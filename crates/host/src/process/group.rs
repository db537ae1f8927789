//! Process groups: signalling one, and killing one that would be left behind.

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use super::ProcessError;

/// Sends a signal to every process of a group. A group that is already gone is success.
///
/// The caller must know that the id still means that group, which holds as long as its leader has not been
/// waited for.
pub fn signal_group(group: i32, signal: Signal) -> Result<(), ProcessError> {
    let failed = |source: io::Error| ProcessError::Reach {
        action: "signal the group of",
        pid: group,
        source,
    };
    // 1 would be every process of the system, and smaller ids are not groups.
    let Some(pid) = Some(group).filter(|&id| id > 1).and_then(Pid::from_raw) else {
        return Err(failed(io::ErrorKind::InvalidInput.into()));
    };
    match kill_process_group(pid, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => Err(failed(errno.into())),
    }
}

/// A group that is killed when its guard is dropped, unless its leader has been waited for: an
/// abandoned future must not leave processes behind.
#[derive(Debug)]
pub(crate) struct GroupGuard {
    group: Option<i32>,
}

impl GroupGuard {
    pub(crate) fn new(leader: u32) -> Self {
        Self { group: i32::try_from(leader).ok() }
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        self.group.map_or(Ok(()), |group| signal_group(group, signal))
    }

    /// Disarms the guard. Called when the leader is waited for: from then on the id may belong to another
    /// process.
    pub(crate) fn disarm(&mut self) {
        self.group = None;
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        // There is no caller to report to, and a group that is gone is not an error.
        self.signal(Signal::KILL).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_mean_more_than_one_group_are_refused() {
        for group in [-1, 0, 1] {
            assert!(signal_group(group, Signal::TERM).is_err(), "{group}");
        }
    }
}
