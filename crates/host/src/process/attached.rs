//! Programs that use the terminal themselves, such as an editor.

use std::process::Stdio;

use model::command::{CommandExit, CommandSpec};

use super::ProcessError;
use super::run::exit_of;
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
    crate::trace::command(spec);
    let mut child = spawn_child(spec, options)?;
    let status = child.wait().await.map_err(ProcessError::io("wait for", spec))?;
    Ok(exit_of(status))
}
