//! One file per subcommand.

pub(crate) mod attach;
pub(crate) mod clarify;
pub(crate) mod close;
pub(crate) mod complete;
pub(crate) mod conflicts;
pub(crate) mod delete;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod docs;
pub(crate) mod doctor;
mod follow;
pub(crate) mod init;
pub(crate) mod interview;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod merge;
mod merge_gate;
pub(crate) mod new;
pub(crate) mod open;
pub(crate) mod plan;
pub(crate) mod plan_edit;
pub(crate) mod pr;
pub(crate) mod project;
pub(crate) mod prune;
mod queue;
pub(crate) mod refresh;
pub(crate) mod reset;
pub(crate) mod review;
pub(crate) mod run;
mod run_all;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod skip;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod story;
pub(crate) mod switch;
pub(crate) mod uat;
pub(crate) mod update;
pub(crate) mod verdict;
pub(crate) mod watch;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use model::error_chain;
use model::id::WorkstreamId;
use shell::{KeptOutput, Ui};

use crate::cli::{RunArg, Which};
use crate::disk::project_dirs::log_volume;
use crate::disk::run_dir::find_run;
use crate::disk::{DiskError, ProjectDirs, Workstream, load_secrets};
use crate::exit::{Failure, OrExit, WfExit, WfResult};

#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) ui: Ui,
    pub(crate) here: PathBuf,
    project: Option<String>,
    /// Words of the command, after the program's name.
    line: Vec<String>,
}

/// Output of a command that runs for another program.
#[derive(Debug, Clone)]
pub(crate) struct KeptCall(Arc<Mutex<KeptOutput>>);

impl KeptCall {
    pub(crate) fn take(&self) -> KeptOutput {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl App {
    pub(crate) fn new(ui: &Ui, project: Option<String>) -> WfResult<Self> {
        let ui = ui.clone().at_most(log_volume()?);
        // Checked here, so that a mistake is found by every command and not only by those that wait.
        ProjectDirs::lock_timeout()?;
        let here = host::env::current_dir().or_exit(WfExit::General)?;
        let line = ui.command_line().into_iter().skip(1).collect();
        Ok(Self { ui, here, project, line })
    }

    /// A copy without output, for commands that run behind a full-screen view.
    pub(crate) fn silent(&self) -> Self {
        Self { ui: self.ui.silent(), ..self.clone() }
    }

    /// A copy for the command with these words, whose output is kept.
    pub(crate) fn keeping(&self, line: &[String]) -> (Self, KeptCall) {
        let (ui, kept) = self.ui.kept();
        (Self { ui, line: line.to_vec(), ..self.clone() }, KeptCall(kept))
    }

    pub(crate) fn dirs(&self) -> WfResult<ProjectDirs> {
        let dirs = ProjectDirs::resolve(self.project.as_deref(), &self.here)?;
        // A command that needs a secret reports why it cannot be read; other commands have nothing to redact then.
        shell::terminal::hide(load_secrets(&dirs).unwrap_or_default());
        for warning in &dirs.warnings {
            self.ui.warn(warning);
        }
        Ok(dirs)
    }

    /// Opens the project and the workstream of the command.
    pub(crate) fn open(&self, which: &Which) -> WfResult<(ProjectDirs, Workstream)> {
        let dirs = self.dirs()?;
        let workstream = self.workstream(&dirs, which)?;
        Ok((dirs, workstream))
    }

    /// Finds the workstream of the command: by name, by the current directory, or by `wf use`.
    pub(crate) fn workstream(&self, dirs: &ProjectDirs, which: &Which) -> WfResult<Workstream> {
        let typed =
            which.id.clone().or_else(|| self.workstream_here(dirs)).or_else(|| dirs.current());
        let typed = typed.ok_or_else(|| {
            Failure::usage(
                "which workstream? Name it, run the command in its worktree, or choose one: wf use ID",
            )
        })?;
        let workstream = dirs.find_workstream(&typed)?;
        for key in workstream.unknown_keys() {
            self.ui.warn(&format!("{}/meta.env: unknown key {key}", workstream.dir.display()));
        }
        Ok(workstream)
    }

    /// Reports whether the command line, the current directory or `wf use` names a workstream.
    pub(crate) fn names_workstream(&self, dirs: &ProjectDirs, which: &Which) -> bool {
        which.id.is_some() || self.workstream_here(dirs).is_some() || dirs.current().is_some()
    }

    fn workstream_here(&self, dirs: &ProjectDirs) -> Option<String> {
        let worktrees = dirs.worktrees_dir().canonicalize().ok()?;
        let id = self.here.strip_prefix(worktrees).ok()?.components().next()?;
        id.as_os_str().to_str().map(str::to_owned)
    }

    /// Finds the run of the command: by name, or the last one of a workstream.
    pub(crate) fn run_dir(&self, dirs: &ProjectDirs, arg: &RunArg) -> WfResult<PathBuf> {
        if let Some(typed) = arg.typed() {
            return Ok(find_run(&dirs.runs_dir(), typed)?);
        }
        let workstream = self.workstream(dirs, &Which { id: arg.workstream.clone() })?;
        let id = &workstream.meta.id;
        let last = workstream.meta.last_run_id.as_ref();
        Ok(find_run(&dirs.runs_dir(), last.ok_or_else(|| no_run(id))?)?)
    }

    /// Warns about folders that are not workstreams.
    pub(crate) fn warn_remains(&self, dirs: &ProjectDirs) -> WfResult<()> {
        for warning in dirs.folders_without_meta()? {
            self.ui.warn(&warning);
        }
        Ok(())
    }

    /// Warns about workstreams that cannot be read.
    pub(crate) fn warn_faults(&self, faults: &[DiskError]) {
        for fault in faults {
            self.ui.warn(&error_chain(fault));
        }
    }
}

fn no_run(id: &WorkstreamId) -> Failure {
    Failure::usage(format!("{id} has no run yet; start one: wf run {id}"))
}

/// Login name of the user, for records. The git identity would need git.
pub(crate) fn person() -> String {
    let name = ["USER", "LOGNAME"].iter().find_map(|name| host::env::var(name));
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("uid {}", host::env::uid()))
}
