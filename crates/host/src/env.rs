//! The environment of this process: variables, directories, user and group.
//!
//! Nothing here writes: a child's environment is data in its `CommandSpec`, and the working directory never
//! changes.

use std::ffi::OsString;
use std::path::PathBuf;

use thiserror::Error;

/// A fact about this process that could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EnvError {
    #[error("could not read the current directory")]
    CurrentDir { source: std::io::Error },
    #[error("could not find the path of this program")]
    CurrentExe { source: std::io::Error },
}

/// Reads a variable; one that is not UTF-8 counts as absent.
pub fn var(name: &str) -> Option<String> {
    var_os(name)?.into_string().ok()
}

/// Reads a variable in the system's encoding.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn var_os(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Lists all variables, sorted by name so that records of them have a stable order.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn vars_os() -> Vec<(OsString, OsString)> {
    let mut all: Vec<_> = std::env::vars_os().collect();
    all.sort();
    all
}

/// Returns the directory that the program was started in.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn current_dir() -> Result<PathBuf, EnvError> {
    std::env::current_dir().map_err(|source| EnvError::CurrentDir { source })
}

/// Returns the path of this program, which starts itself again as its own supervisor.
pub fn current_exe() -> Result<PathBuf, EnvError> {
    std::env::current_exe().map_err(|source| EnvError::CurrentExe { source })
}

/// Returns the user's home directory, if `HOME` names an absolute one.
pub fn home() -> Option<PathBuf> {
    var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Returns whether this process has root's rights over files and processes.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the effective user id.
pub fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the effective group id.
pub fn gid() -> u32 {
    rustix::process::getegid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unset_variable_is_absent() {
        assert_eq!(var("BOTTLEWORKS_SURELY_UNSET"), None);
    }

    #[test]
    fn variables_come_sorted() {
        let all = vars_os();
        assert!(all.is_sorted());
    }

    #[test]
    fn root_is_user_zero() {
        assert_eq!(is_root(), uid() == 0);
    }
}
