//! The door to other programs and to the environment of the test process.
//!
//! Tests cannot go through `host`: they have to stay true when `host` is the thing that is broken.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of the programs of a plain system.
pub(crate) const SYSTEM_PATH: &str = "/usr/bin:/bin";

/// A command with an empty environment.
#[expect(clippy::disallowed_methods, reason = "the one place of this crate that starts programs")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    command
}

/// A variable of the test process itself.
#[expect(clippy::disallowed_methods, reason = "the one place of this crate that reads variables")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The first file of this name on the path of the test process, else on that of a plain system.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = variable("PATH").unwrap_or_default();
    let folders = path.split(':').chain(SYSTEM_PATH.split(':'));
    folders.map(|folder| Path::new(folder).join(name)).find(|file| file.is_file())
}
