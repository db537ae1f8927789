//! The single place where programs start.
//!
//! The environment is exactly the one given, and a child inherits only the three standard descriptors and
//! those named. A spawn happens on the calling thread: a child that asks to die with its parent dies with the
//! thread that started it, so supervisors call this from their main thread.

use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{PoisonError, RwLock};

use model::command::CommandSpec;
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use tokio::process::Child;

use super::ProcessError;

#[derive(Debug)]
pub struct ChildOptions<'a> {
    pub stdin: Stdio,
    pub stdout: Stdio,
    pub stderr: Stdio,
    /// The user it becomes, with no supplementary groups; only root can ask for another one.
    pub run_as: Option<RunAs>,
    /// Descriptors it inherits under the numbers they have here.
    pub keep_fds: &'a [BorrowedFd<'a>],
    pub group: Group,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunAs {
    pub uid: u32,
    pub gid: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Its own, so that it can be ended with all it started.
    Own,
    /// Ours. A child that will lead a session must not lead a group before.
    Ours,
}

impl Default for ChildOptions<'_> {
    fn default() -> Self {
        Self {
            stdin: Stdio::null(),
            stdout: Stdio::null(),
            stderr: Stdio::null(),
            run_as: None,
            keep_fds: &[],
            group: Group::Own,
        }
    }
}

/// Starts a program with the given wiring. The child is killed when its handle is dropped, so that an
/// abandoned wait leaves nothing behind. Must be called inside a tokio runtime.
pub fn spawn_child(spec: &CommandSpec, options: ChildOptions<'_>) -> Result<Child, ProcessError> {
    spawn(spec, options, KillOnDrop::Yes)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KillOnDrop {
    Yes,
    No,
}

pub(super) fn spawn(
    spec: &CommandSpec,
    options: ChildOptions<'_>,
    kill_on_drop: KillOnDrop,
) -> Result<Child, ProcessError> {
    let mut command = command(spec);
    command.stdin(options.stdin).stdout(options.stdout).stderr(options.stderr);
    if let Some(RunAs { uid, gid }) = options.run_as {
        // As root, the standard library clears the supplementary groups before it sets the user.
        command.gid(gid).uid(uid);
    }
    if options.group == Group::Own {
        command.process_group(0);
    }
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(kill_on_drop == KillOnDrop::Yes);
    with_inheritable(options.keep_fds, || command.spawn()).map_err(|source| ProcessError::Start {
        program: spec.program.display().to_string(),
        dir: spec.cwd.clone(),
        source,
    })
}

#[expect(clippy::disallowed_methods, reason = "this is the door")]
fn command(spec: &CommandSpec) -> Command {
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.args)
        .current_dir(&spec.cwd)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)));
    command
}

/// Lock over starts. While descriptors are inheritable, no other thread may start a program, or they would
/// leak into that one. Ordinary starts share the lock; those that keep descriptors hold it exclusively.
static STARTS: RwLock<()> = RwLock::new(());

fn with_inheritable<T>(
    fds: &[BorrowedFd<'_>],
    start: impl FnOnce() -> std::io::Result<T>,
) -> std::io::Result<T> {
    if fds.is_empty() {
        let _shared = STARTS.read().unwrap_or_else(PoisonError::into_inner);
        return start();
    }
    let _alone = STARTS.write().unwrap_or_else(PoisonError::into_inner);
    let mut marked = Inheritable { before: Vec::with_capacity(fds.len()) };
    for &fd in fds {
        let flags = fcntl_getfd(fd)?;
        fcntl_setfd(fd, flags - FdFlags::CLOEXEC)?;
        marked.before.push((fd, flags));
    }
    start()
}

/// Restores the flags of descriptors, also when the start fails.
struct Inheritable<'a> {
    before: Vec<(BorrowedFd<'a>, FdFlags)>,
}

impl Drop for Inheritable<'_> {
    fn drop(&mut self) {
        for &(fd, flags) in &self.before {
            // The flag was set on this very descriptor a moment ago, so no error is expected.
            fcntl_setfd(fd, flags).ok();
        }
    }
}
