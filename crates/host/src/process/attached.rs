//! Programs that use the terminal themselves, such as an editor.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use model::command::{CommandExit, CommandSpec};

use super::ProcessError;
use super::spawn::{ChildOptions, Group, spawn_child};

/// Runs a program on our own terminal, in our own process group, so that keys reach it. It has no time limit.
pub async fn run_attached(spec: &CommandSpec) -> Result<CommandExit, ProcessError> {
    let options = ChildOptions {
        stdin: Stdio::inherit(),
        stdout: Stdio::inherit(),
        stderr: Stdio::inherit(),
        group: Group::Ours,
        ..ChildOptions::default()
    };
    let mut child = spawn_child(spec, options)?;
    let status = child.wait().await.map_err(ProcessError::io("wait for", spec))?;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => CommandExit::Exited(code),
        (None, signal) => CommandExit::Signalled(signal.unwrap_or_default()),
    })
}
