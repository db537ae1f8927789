//! Programs on this machine: paths and reported versions.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::command::{CommandExit, CommandSpec};
use rustix::fs::{Access, access};

use crate::env;
use crate::process::{RunLimits, run};
use crate::signal::Cancel;

/// Finds a program on the search path of this process.
pub fn which(program: &str) -> Option<PathBuf> {
    which_in(program, &env::var_os("PATH")?)
}

/// Returns the version of a program: the first line it prints, or `None` if it is missing, fails or takes too
/// long. For display; decisions need a stricter query.
pub async fn tool_version(program: &str, args: &[&str], timeout: Duration) -> Option<String> {
    let mut spec = CommandSpec::new(program).args(args).env("LC_ALL", "C");
    for name in ["PATH", "HOME"] {
        if let Some(value) = env::var_os(name) {
            spec = spec.env(name, value);
        }
    }
    let grace = Duration::from_secs(1);
    let limits =
        RunLimits { timeout: Some(timeout), stdout_cap: 4096, grace, ..RunLimits::default() };
    let output = run(&spec, &limits, &Cancel::new()).await.ok()?;
    if output.exit == CommandExit::Exited(0) { first_line(&output.stdout) } else { None }
}

/// Finds a program in a search path. Relative entries are skipped: their meaning depends on the working
/// directory, which may be an untrusted repository.
fn which_in(program: &str, path: &OsStr) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| is_program(path));
    }
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(program))
        .find(|candidate| is_program(candidate))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

fn first_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_first_executable_file_on_the_path_is_found() {
        let dir = tempfile::tempdir().unwrap();
        for (name, mode) in [("a", 0o644), ("b", 0o755)] {
            fs::create_dir(dir.path().join(name)).unwrap();
            let file = dir.path().join(name).join("tool");
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths(["a", "b"].map(|name| dir.path().join(name))).unwrap();
        assert_eq!(which_in("tool", &path), Some(dir.path().join("b/tool")));
        assert_eq!(which_in("a", dir.path().as_os_str()), None);
    }

    #[test]
    fn relative_entries_of_the_path_are_passed_over() {
        assert_eq!(which_in("Cargo.toml", OsStr::new(":.:")), None);
    }

    #[test]
    fn the_first_line_with_words_is_the_version() {
        assert_eq!(first_line(b"\n  git version 2.39 \nmore").as_deref(), Some("git version 2.39"));
        assert_eq!(first_line(b"\n"), None);
    }

    #[tokio::test]
    async fn a_missing_or_failing_tool_has_no_version() {
        let limit = Duration::from_secs(5);
        assert_eq!(tool_version("surely-no-such-program", &[], limit).await, None);
        assert_eq!(tool_version("false", &[], limit).await, None);
        assert_eq!(tool_version("echo", &["v1"], limit).await.as_deref(), Some("v1"));
    }
}
