//! Opening files of a run in the user's pager.

use std::path::{Path, PathBuf};

use host::process::run_attached;
use model::command::CommandExit;

use super::super::clarify::command_line;
use crate::disk::run_dir::{DIFF, IMPLEMENT_LOG, SUMMARY};
use crate::disk::{OpenRun, ProjectDirs, StateFile};
use crate::exit::{Failure, OrExit, WfExit, WfResult};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paper {
    Diff,
    /// The agent's log, or the summary of the run.
    Log,
}

impl Paper {
    /// Finds the file: in the active run, or else in the last one.
    pub(super) fn find(self, dirs: &ProjectDirs, id: &str) -> WfResult<PathBuf> {
        let workstream = dirs.find_workstream(id)?;
        let open = OpenRun::load(dirs, &workstream.meta.id)?.map(|run| run.directory);
        let runs = [open, workstream.meta.last_run_id];
        let names: &[&str] = match self {
            Self::Diff => &[DIFF],
            Self::Log => &[IMPLEMENT_LOG, SUMMARY],
        };
        let dirs = runs.into_iter().flatten().map(|run| dirs.runs_dir().join(run));
        let mut files = dirs.flat_map(|dir| names.iter().map(move |name| dir.join(name)));
        files.find(|path| path.is_file()).ok_or_else(|| {
            Failure::usage(format!(
                "{id} has no {} yet",
                names.first().copied().unwrap_or_default()
            ))
        })
    }
}

/// Opens a file until the pager exits. `LESSSECURE` keeps it from running commands: an agent wrote the text.
pub(super) async fn open_paper(path: &Path) -> WfResult<()> {
    let pager = host::env::var("PAGER").filter(|pager| !pager.trim().is_empty());
    let pager = pager.unwrap_or_else(|| "less".to_owned());
    let mut spec = command_line(&pager, "pager")?.arg(path);
    spec.env = host::env::vars_os();
    spec.env.retain(|(name, _)| name != "LESS" && name != "LESSOPEN");
    let spec = spec.env("LESSSECURE", "1");
    match run_attached(&spec).await.or_exit(WfExit::General)? {
        CommandExit::Exited(0) => Ok(()),
        exit => Err(Failure::new(WfExit::General, format!("the pager failed ({exit:?})"))),
    }
}
