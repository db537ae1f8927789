//! Attempt to create a user namespace, in a separate process, because a successful one enters it.

use std::process::{Child, Stdio};

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};

use crate::spawn;

/// The first argument that selects this role.
pub(crate) const ROLE: &str = "probe-userns";

/// Largest error number that fits; higher statuses have other meanings, such as death by a signal.
const LAST_ERRNO: i32 = 124;

/// 128 + SIGSYS.
const KILLED_BY_FILTER: i32 = 159;

/// Makes the attempt: returns 0 on success, else the error number, which fits a status.
pub(crate) fn run() -> u8 {
    match unshare(CloneFlags::CLONE_NEWUSER) {
        Ok(()) => 0,
        Err(errno) => u8::try_from(errno as i32).unwrap_or(u8::MAX),
    }
}

/// A running attempt, so that other checks can run meanwhile.
pub(crate) struct Probe(std::io::Result<Child>);

pub(crate) fn start() -> Probe {
    let mut command = spawn::command_ourselves(ROLE);
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Probe(command.spawn())
}

impl Probe {
    /// Waits for the attempt and returns whether it was refused, and the observation. An unknown result
    /// counts as not refused.
    pub(crate) fn finish(self) -> (bool, String) {
        match self.0.and_then(|mut child| child.wait()) {
            Ok(status) => judge(spawn::status_code(status)),
            Err(error) => (false, format!("could not be tried: {error}")),
        }
    }
}

fn judge(status: i32) -> (bool, String) {
    match status {
        0 => (false, "got one".to_owned()),
        1..=LAST_ERRNO => (true, Errno::from_raw(status).desc().to_owned()),
        KILLED_BY_FILTER => (true, "the filter kills whoever tries".to_owned()),
        other => (false, format!("could not be tried: status {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_is_blocked() {
        assert_eq!(judge(Errno::EPERM as i32), (true, "Operation not permitted".to_owned()));
        assert!(judge(KILLED_BY_FILTER).0);
        assert_eq!(judge(0), (false, "got one".to_owned()));
    }

    #[test]
    fn a_probe_that_died_proves_nothing() {
        assert_eq!(judge(137), (false, "could not be tried: status 137".to_owned()));
    }
}
