//! Opening files of a run in the user's pager.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use engine::agent_log::LogText;
use engine::box_dir::BoxDir;
use host::process::run_attached;
use model::command::CommandExit;
use tempfile::NamedTempFile;

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
    let text = readable_copy(path).or_exit(WfExit::General)?;
    let path = text.as_ref().map_or(path, NamedTempFile::path);
    let mut spec = command_line(&pager, "pager")?.arg(path);
    spec.env = host::env::vars_os();
    spec.env.retain(|(name, _)| name != "LESS" && name != "LESSOPEN");
    let spec = spec.env("LESSSECURE", "1");
    match run_attached(&spec).await.or_exit(WfExit::General)? {
        CommandExit::Exited(0) => Ok(()),
        exit => Err(Failure::new(WfExit::General, format!("the pager failed ({exit:?})"))),
    }
}

/// Renders the log of an agent with events as text, in a file for the pager; `None` for any other file.
fn readable_copy(path: &Path) -> io::Result<Option<NamedTempFile>> {
    let is_log = path.file_name().is_some_and(|name| name == IMPLEMENT_LOG);
    let Some(run_dir) = path.parent().filter(|_| is_log) else { return Ok(None) };
    let box_dir = BoxDir::new(run_dir.join("boxes").join("implement"));
    let Some(mut log) = LogText::of_box(&box_dir) else { return Ok(None) };
    let lines = std::fs::read(path)?;
    let lines = String::from_utf8_lossy(&lines);
    let mut copy = NamedTempFile::new()?;
    for line in lines.split_inclusive('\n') {
        copy.write_all(log.push_line(line).as_bytes())?;
    }
    copy.write_all(log.finish().as_bytes())?;
    Ok(Some(copy))
}
