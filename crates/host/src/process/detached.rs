//! Supervisors: processes that outlive the one that started them.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::process::Stdio;

use model::command::CommandSpec;
use nix::unistd::{getpid, getsid};
use rustix::fs::{MemfdFlags, fcntl_get_seals, memfd_create};
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
    spawn_with(spec, stdin, Stdio::null(), stderr)
}

/// Like [`spawn_detached`], with one log for everything that the child prints.
pub fn spawn_detached_logged(
    spec: &CommandSpec,
    stdin: File,
    log: File,
) -> Result<ProcessHandle, ProcessError> {
    let stdout = log.try_clone().map_err(ProcessError::io("log", spec))?;
    spawn_with(spec, stdin, stdout.into(), log)
}

/// Like [`spawn_detached`], with bytes that only the child can read, by [`take_handed_over`]. They are in neither its
/// arguments nor its environment nor any file, where they would be for as long as it lives.
pub fn spawn_detached_with(
    spec: &CommandSpec,
    stdin: File,
    stderr: File,
    bytes: &[u8],
) -> Result<ProcessHandle, ProcessError> {
    let stdout = hold_in_memory(bytes).map_err(ProcessError::io("hand secrets to", spec))?;
    spawn_with(spec, stdin, stdout.into(), stderr)
}

/// Returns the bytes of [`spawn_detached_with`] and erases them; none if there are none. They come in place of the standard
/// output, the only descriptor that a child gets without a moment in which any other child could inherit it.
pub fn take_handed_over() -> io::Result<Vec<u8>> {
    let stdout = io::stdout().as_fd().try_clone_to_owned()?;
    // Only a file in memory has seals.
    if fcntl_get_seals(&stdout).is_err() {
        return Ok(Vec::new());
    }
    let mut file = File::from(stdout);
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    file.set_len(0)?;
    file.rewind()?;
    Ok(bytes)
}

fn hold_in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("handed-over", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    Ok(file)
}

fn spawn_with(
    spec: &CommandSpec,
    stdin: File,
    stdout: Stdio,
    stderr: File,
) -> Result<ProcessHandle, ProcessError> {
    let options = ChildOptions {
        stdin: stdin.into(),
        stdout,
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
