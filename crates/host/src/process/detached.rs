//! Supervisors: processes that outlive the one that started them.

use std::fs::File;
use std::io;
use std::process::Stdio;

use model::command::CommandSpec;
use nix::unistd::{getpid, getsid};
use rustix::process::setsid;

use super::ProcessError;
use super::handle::ProcessHandle;
use super::spawn::{ChildOptions, Group, KillOnDrop, spawn};

/// Starts a process that outlives this one. `stdin` is usually a locked file, so that the lock lives as long
/// as the child; `stderr` is its log; its standard output is discarded.
///
/// The child stays in our process group until it calls [`become_session_leader`], which it should do first of
/// all: making it leader of a group here would forbid it to lead a session.
pub fn spawn_detached(
    spec: &CommandSpec,
    stdin: File,
    stderr: File,
) -> Result<ProcessHandle, ProcessError> {
    let options = ChildOptions {
        stdin: stdin.into(),
        stdout: Stdio::null(),
        stderr: stderr.into(),
        group: Group::Ours,
        ..ChildOptions::default()
    };
    let child = spawn(spec, options, KillOnDrop::No)?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    let pid = pid.ok_or(io::ErrorKind::NotFound.into());
    let pid = pid.map_err(ProcessError::io("find", spec))?;
    // The handle is read before the child is released: it cannot be waited for until then, so its id is still
    // its own even if it has ended. The runtime waits for it afterwards.
    ProcessHandle::of(pid)
}

/// Leaves the parent's session, so that neither a closed terminal nor a signal to its process group ends this
/// process. Does nothing if this process leads a session already.
///
/// Uses nix: the session's id is 0 when its leader lives outside our pid namespace, as in many containers,
/// and rustix assumes that an id is never 0.
pub fn become_session_leader() -> Result<(), ProcessError> {
    let me = getpid();
    if getsid(None).is_ok_and(|session| session == me) {
        return Ok(());
    }
    setsid().map(|_session| ()).map_err(|errno| ProcessError::Reach {
        action: "start a session for",
        pid: me.as_raw(),
        source: errno.into(),
    })
}
