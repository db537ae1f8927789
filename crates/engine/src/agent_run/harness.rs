//! The harness: the fixed script that starts every agent, and its files. They are in the host-owned folder of the box,
//! read-only inside.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use host::file::{FileError, write_transient};
use sandbox::spec::ProgramMount;

use crate::agent_plan::{AgentPlan, PROGRAM_DIR};

/// The script that every agent's box starts.
pub const HARNESS: &str = "/opt/forklift/harness/run.sh";

const HARNESS_DIR: &str = "/opt/forklift/harness";

/// The script; the image contains the same one.
const SCRIPT: &str = include_str!("../../../../docker/kitchen-sink/harness/run.sh");

/// Mounts beside the agent's own programs.
pub(super) fn mounts(box_dir: &Path, plan: &AgentPlan) -> Vec<ProgramMount> {
    let mount = |name: &str, inside: &str| ProgramMount {
        host: box_dir.join(name),
        inside: inside.to_owned(),
    };
    let program = plan.program.iter().map(|_| mount("command", PROGRAM_DIR));
    std::iter::once(mount("harness", HARNESS_DIR)).chain(program).collect()
}

pub(super) fn write(box_dir: &Path, plan: &AgentPlan) -> Result<(), FileError> {
    put(box_dir, "harness/run.sh", SCRIPT.as_bytes(), 0o755)?;
    for (name, text) in &plan.files {
        put(box_dir, &format!("guest/{name}"), text.as_bytes(), 0o644)?;
    }
    put(box_dir, "guest/harness/agent.argv", &argv_bytes(&plan.argv), 0o644)?;
    put(box_dir, "guest/harness/instructions.txt", plan.instructions.as_bytes(), 0o644)?;
    if let Some(context) = &plan.context {
        put(box_dir, "guest/harness/fork-context.md", context.as_bytes(), 0o644)?;
    }
    for (path, text) in &plan.home {
        put(box_dir, &format!("guest/harness/home/{path}"), text.as_bytes(), 0o644)?;
    }
    match &plan.program {
        Some(program) => copy_program(program, &box_dir.join("command")),
        None => Ok(()),
    }
}

/// Arguments separated by zero bytes, which no argument can contain.
fn argv_bytes(argv: &[String]) -> Vec<u8> {
    argv.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect()
}

/// Writes a file that the user of the box can read, whatever the caller's umask is.
fn put(box_dir: &Path, name: &str, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    let path = box_dir.join(name);
    let folders: Vec<&Path> = path.ancestors().skip(1).take_while(|it| *it != box_dir).collect();
    for folder in folders.into_iter().rev() {
        make_readable(folder)?;
    }
    write_transient(&path, bytes, mode)
}

fn make_readable(folder: &Path) -> Result<(), FileError> {
    std::fs::create_dir_all(folder).map_err(FileError::io("create", folder))?;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder, mode).map_err(FileError::io("make readable", folder))
}

/// Copies a program into a folder of its own, so that a box sees nothing else of the program's folder.
pub fn copy_program(program: &Path, folder: &Path) -> Result<(), FileError> {
    make_readable(folder)?;
    let target = folder.join(program.file_name().unwrap_or_default());
    std::fs::copy(program, &target).map_err(FileError::io("copy", program))?;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&target, mode).map_err(FileError::io("make executable", &target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_may_hold_anything_but_zero() {
        let argv = ["a b", "", "c\nd"].map(str::to_owned);
        assert_eq!(argv_bytes(&argv), b"a b\0\0c\nd\0");
    }
}
