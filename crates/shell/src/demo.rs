//! Demos: a temporary folder with everything in it, and a user in that folder who types the program's own commands.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use host::git::{GitError, ObjectFormat, SealedRepo, check_version};
use model::command::{CommandExit, CommandSpec, render_command};
use model::exit::ExitStatus;
use tempfile::TempDir;

use crate::failure::{Failure, OrExit};
use crate::start::{MULTI_CALL, Program};
use crate::ui::Ui;

/// Variables of the real user that the user of a demo has too: how to find programs, and how to print.
const INHERITED: [&str; 7] = ["PATH", "TMPDIR", "TERM", "COLORTERM", "NO_COLOR", "LANG", "LC_ALL"];

const GIT_SETTINGS: &str = "[user]\n\tname = You\n\temail = you@example.invalid\n";

#[derive(Debug, Clone, Args)]
pub struct DemoOptions {
    /// Where boxes come from [default: bwrap where it is installed]
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Keep the temporary folder, to look around in it
    #[arg(long)]
    keep: bool,
}

impl DemoOptions {
    /// The backend of the demo's boxes. Bubblewrap comes first here: a container engine would need an image.
    pub fn backend(&self) -> Option<String> {
        let bwrap = || host::tool::which("bwrap").map(|_| "bwrap".to_owned());
        self.backend.clone().or_else(bwrap)
    }
}

/// Temporary folder of a demo. It is removed at the end, unless it is to be kept; a demo that fails leaves it.
#[derive(Debug)]
pub struct DemoFolder {
    folder: TempDir,
    is_kept: bool,
}

impl DemoFolder {
    pub fn create<S: ExitStatus>(
        program: &Program,
        options: &DemoOptions,
    ) -> Result<Self, Failure<S>> {
        let prefix = format!("{}-demo-", program.name);
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir().or_exit(S::GENERAL);
        let mut folder = folder.map_err(|failure| {
            failure.with_remedy("set TMPDIR to a folder that can be written to")
        })?;
        folder.disable_cleanup(true);
        Ok(Self { folder, is_kept: options.keep })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes the folder, or prints a command to look at and one to remove it.
    pub fn finish(mut self, ui: &Ui, look: &str) -> io::Result<()> {
        let path = self.path().display().to_string();
        if self.is_kept {
            ui.result("look", look);
            ui.result("clean up", &format!("rm -r {path}"));
            return Ok(());
        }
        self.folder.disable_cleanup(false);
        self.folder.close()?;
        ui.result("cleaned up", &format!("{path} is removed; --keep keeps it"));
        Ok(())
    }
}

/// Makes a bare repository from a history in git's import language. A git that is too old for runs is named here, before
/// one of its answers is not understood.
pub async fn make_repository(path: &Path, history: &str) -> Result<(), GitError> {
    check_version().await?;
    let repo = SealedRepo::init_bare(path, ObjectFormat::Sha1).await?;
    repo.fast_import(history).await
}

/// User of a demo: has a home of their own below the demo's folder, and types commands of the program.
#[derive(Debug)]
pub struct DemoUser<'a> {
    ui: &'a Ui,
    program: &'static Program,
    /// The program, its home and its directory.
    spec: CommandSpec,
    folder: PathBuf,
}

impl<'a> DemoUser<'a> {
    pub fn new<S: ExitStatus>(
        ui: &'a Ui,
        program: &'static Program,
        folder: &DemoFolder,
        checkout: &Path,
    ) -> Result<Self, Failure<S>> {
        let (folder, home) = (folder.path(), folder.path().join("home"));
        host::file::create_dirs(&home).or_exit(S::GENERAL)?;
        std::fs::write(home.join(".gitconfig"), GIT_SETTINGS).or_exit(S::GENERAL)?;
        let exe = host::env::current_exe().or_exit(S::GENERAL)?;
        let is_multi_call = exe.file_name().is_some_and(|name| name == MULTI_CALL);
        let mut spec = CommandSpec::new(exe).cwd(checkout);
        if is_multi_call {
            spec = spec.arg(program.name);
        }
        for name in INHERITED {
            if let Some(value) = host::env::var_os(name) {
                spec = spec.env(name, value);
            }
        }
        let spec = spec.env("HOME", home).env("USER", "you").env("GIT_CONFIG_NOSYSTEM", "1");
        Ok(Self { ui, program, spec, folder: folder.to_path_buf() })
    }

    #[must_use]
    pub fn with_env(self, name: &str, value: impl Into<std::ffi::OsString>) -> Self {
        Self { spec: self.spec.env(name, value), ..self }
    }

    /// Prints what the user thinks, as comments in a shell.
    pub fn comment(&self, lines: &[&str]) {
        self.ui.status("");
        for line in lines {
            self.ui.status(&format!("# {line}"));
        }
    }

    /// Prints a command line and runs it. A status other than the expected one ends the demo.
    pub async fn run<S: ExitStatus>(&self, words: &[&str], expected: u8) -> Result<(), Failure<S>> {
        let line = render_command(&CommandSpec::new(self.program.name).args(words.iter().copied()));
        self.ui.status(&format!("$ {line}"));
        let spec = self.spec.clone().args(self.ui.flags().iter().chain(words).copied());
        let exit = host::process::run_attached(&spec).await.or_exit(S::GENERAL)?;
        if exit == CommandExit::Exited(expected.into()) {
            return Ok(());
        }
        let ended = match exit {
            CommandExit::Exited(code) => format!("status {code}"),
            CommandExit::Signalled(signal) => format!("signal {signal}"),
            CommandExit::TimedOut | CommandExit::NotStarted => "no status".to_owned(),
        };
        let message = format!("the demo's command `{line}` ended with {ended}, not {expected}");
        let remedy = format!("look into {}; {} doctor", self.folder.display(), self.program.name);
        Err(Failure::new(S::GENERAL, message).with_remedy(remedy))
    }
}
