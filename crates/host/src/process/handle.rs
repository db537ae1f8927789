//! Identity of another process beyond its id: ids are reused.

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use super::ProcessError;

/// A process, distinguished by its start time from others that had the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessHandle {
    pub pid: i32,
    /// Start time, in clock ticks since boot.
    pub start_ticks: u64,
}

impl ProcessHandle {
    /// Returns the handle of the process that has this id now.
    pub fn of(pid: i32) -> Result<Self, ProcessError> {
        let facts = observe(pid)?.ok_or(io::ErrorKind::NotFound.into());
        let facts = facts.map_err(|source| unreachable("find", pid, source))?;
        Ok(Self { pid, start_ticks: facts.start_ticks })
    }

    pub fn current() -> Result<Self, ProcessError> {
        Self::of(getpid().as_raw_nonzero().get())
    }

    /// Returns whether the process still runs. A zombie does not.
    pub fn is_alive(&self) -> Result<bool, ProcessError> {
        let facts = observe(self.pid)?;
        Ok(facts.is_some_and(|facts| facts.runs && facts.start_ticks == self.start_ticks))
    }
}

/// Sends a signal to a process and returns whether it still existed. The process is held by descriptor before
/// it is compared, so the id cannot change its meaning in between.
pub fn send_signal(handle: &ProcessHandle, signal: Signal) -> Result<bool, ProcessError> {
    let failed = |source: Errno| unreachable("signal", handle.pid, source.into());
    let Some(pid) = Some(handle.pid).filter(|&id| id > 0).and_then(Pid::from_raw) else {
        return Err(unreachable("signal", handle.pid, io::ErrorKind::InvalidInput.into()));
    };
    let held = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(held) => held,
        Err(Errno::SRCH) => return Ok(false),
        Err(errno) => return Err(failed(errno)),
    };
    if !handle.is_alive()? {
        return Ok(false);
    }
    match pidfd_send_signal(held, signal) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(errno) => Err(failed(errno)),
    }
}

struct Facts {
    runs: bool,
    start_ticks: u64,
}

fn observe(pid: i32) -> Result<Option<Facts>, ProcessError> {
    let bytes = match std::fs::read(format!("/proc/{pid}/stat")) {
        Ok(bytes) => bytes,
        Err(error) if is_gone(&error) => return Ok(None),
        Err(error) => return Err(unreachable("look at", pid, error)),
    };
    match parse_stat(&bytes) {
        Some(facts) => Ok(Some(facts)),
        None => Err(unreachable(
            "understand what the system says about",
            pid,
            io::ErrorKind::InvalidData.into(),
        )),
    }
}

/// Returns whether the process is gone. Reading its file while it ends fails with "no such process".
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || Errno::from_io_error(error) == Some(Errno::SRCH)
}

/// Parses the state and the start time. The program name stands in parentheses and may contain parentheses
/// itself, so fields are counted from the last one: the state comes first, and the start time is the
/// twentieth.
fn parse_stat(bytes: &[u8]) -> Option<Facts> {
    let after_name = bytes.iter().rposition(|&byte| byte == b')')? + 1;
    let text = std::str::from_utf8(bytes.get(after_name..)?).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let runs = !matches!(fields.next()?, "Z" | "X" | "x");
    let start_ticks = fields.nth(18)?.parse().ok()?;
    Some(Facts { runs, start_ticks })
}

fn unreachable(action: &'static str, pid: i32, source: io::Error) -> ProcessError {
    ProcessError::Reach { action, pid, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_cannot_lie_about_its_start_by_its_name() {
        let line =
            b"42 (x) Z 1 2 3 (a\xff) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8731 9 9\n";
        let facts = parse_stat(line).unwrap();
        assert!(facts.runs);
        assert_eq!(facts.start_ticks, 8731);
    }

    #[test]
    fn what_has_ended_does_not_run() {
        let line = b"42 (sh) Z 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8731 9 9\n";
        assert!(!parse_stat(line).unwrap().runs);
    }

    #[test]
    fn a_short_line_is_no_answer() {
        assert!(parse_stat(b"42 (sh) S 1 42").is_none());
        assert!(parse_stat(b"").is_none());
    }

    #[test]
    fn this_process_is_alive_and_its_namesake_is_not() {
        let me = ProcessHandle::current().unwrap();
        assert!(me.is_alive().unwrap());
        let other = ProcessHandle { start_ticks: me.start_ticks + 1, ..me };
        assert!(!other.is_alive().unwrap());
        assert!(!send_signal(&other, Signal::KILL).unwrap());
        for pid in [-1, 0] {
            assert!(send_signal(&ProcessHandle { pid, start_ticks: 0 }, Signal::KILL).is_err());
        }
    }
}
