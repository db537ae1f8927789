//! Commands as data: program and arguments, text for people, and the record of the outcome.
//!
//! `host` starts them, `run_store` writes the log.

mod quote;
mod record;

pub use record::{CommandExit, CommandRecord, render_record};

use quote::quote;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

/// A program to be started, by arguments and never by a shell.
///
/// Its environment may hold secrets, so `Debug` shows only the names.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program: a path, or a name to be looked up in this spec's own `PATH`.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// The whole environment: nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
}

impl CommandSpec {
    /// A program without arguments or environment. It runs in `/` by default, not in the current directory.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), args: Vec::new(), cwd: PathBuf::from("/"), env: Vec::new() }
    }

    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    #[must_use]
    pub fn args<T: Into<OsString>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = cwd.into();
        self
    }

    /// Sets a variable, in place of an earlier value.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.env.retain(|(earlier, _)| *earlier != name);
        self.env.push((name, value.into()));
        self
    }
}

impl fmt::Debug for CommandSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&OsStr> = self.env.iter().map(|(name, _)| name.as_os_str()).collect();
        f.debug_struct("CommandSpec")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("cwd", &self.cwd)
            .field("env", &names)
            .finish()
    }
}

/// Renders the command as one line that people can read and mostly paste into a shell. Directory and environment are left
/// out; bytes that are not UTF-8 are lost.
pub fn render_command(spec: &CommandSpec) -> String {
    let words =
        std::iter::once(spec.program.as_os_str()).chain(spec.args.iter().map(OsString::as_os_str));
    words.map(|word| quote(&word.to_string_lossy()).into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_rendered_as_one_line() {
        let spec = CommandSpec::new("git").args(["commit", "-m", "it's\ndone"]).arg("a b").arg("");
        assert_eq!(render_command(&spec), r"git commit -m $'it\'s\ndone' 'a b' ''");
    }

    #[test]
    fn a_spec_inherits_nothing_and_a_variable_has_one_value() {
        let spec = CommandSpec::new("/bin/x").env("A", "1").env("B", "2").env("A", "3").cwd("/tmp");
        assert_eq!(spec.env, [("B".into(), "2".into()), ("A".into(), "3".into())]);
        assert_eq!(spec.cwd, PathBuf::from("/tmp"));
        assert_eq!(CommandSpec::new("x").cwd, PathBuf::from("/"));
    }

    #[test]
    fn values_of_the_environment_are_not_shown() {
        let spec = CommandSpec::new("x").env("TOKEN", "hunter2");
        let shown = format!("{spec:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
        assert!(!render_command(&spec).contains("hunter2"));
    }
}
