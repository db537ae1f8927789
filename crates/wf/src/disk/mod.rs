//! Files of a project and its workstreams: paths, reading and atomic replacement.
//!
//! Every write is atomic. Every read is validated, and an error names the file.

pub(crate) mod effect_log;
pub(crate) mod event_log;
pub(crate) mod forecast_cache;
pub(crate) mod lock;
pub(crate) mod project_dirs;
pub(crate) mod question;
pub(crate) mod queue;
pub(crate) mod registry;
pub(crate) mod rejection;
pub(crate) mod run_dir;
pub(crate) mod secrets;
mod spread;
mod state_file;
pub(crate) mod story;
pub(crate) mod touched;
pub(crate) mod uat;
pub(crate) mod workflow;
pub(crate) mod workstream;

pub(crate) use effect_log::{Effect, ProjectEffects};
pub(crate) use project_dirs::ProjectDirs;
pub(crate) use registry::is_active;
pub(crate) use run_dir::{WfRunDir, list_runs, load_result};
pub(crate) use secrets::load_secrets;
pub(crate) use spread::spread;
pub(crate) use state_file::{
    Deletion, FeedbackSeen, Implemented, OpenRun, PendingChange, PendingForward,
    RemoteBranchPolicy, StateFile,
};
pub(crate) use workflow::Workflow;
pub(crate) use workstream::Workstream;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use host::file::FileError;
use host::lock::LockError;
use model::env_file::EnvFile;
use model::exit::WfExit;
use serde::de::DeserializeOwned;

use crate::rules::schema::Schema;
use crate::rules::suggest::see;

/// The mode of files that a project's people may all read.
pub(crate) const SHARED: u32 = 0o644;

#[derive(Debug, thiserror::Error)]
pub(crate) enum DiskError {
    #[error("could not {action} {path}", path = path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Chain(#[from] host::chain::ChainFileError),
    #[error("{path}: {problem}", path = path.display())]
    Invalid { path: PathBuf, problem: String },
    #[error("there is no {kind} '{name}'{}", see(hint, list))]
    Unknown { kind: &'static str, name: String, hint: String, list: &'static str },
    #[error("{0}")]
    Setting(String),
}

pub(crate) type DiskResult<T> = Result<T, DiskError>;

impl DiskError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn invalid(path: &Path, problem: impl ToString) -> Self {
        Self::Invalid { path: path.to_path_buf(), problem: problem.to_string() }
    }

    /// The same as a function, for `map_err`.
    pub(crate) fn in_file<E: ToString>(path: &Path) -> impl FnOnce(E) -> Self {
        move |problem| Self::invalid(path, problem)
    }

    pub(crate) fn status(&self) -> WfExit {
        match self {
            Self::Invalid { .. } | Self::Unknown { .. } | Self::Setting(_) => WfExit::Config,
            Self::Lock(LockError::Held { .. }) => WfExit::Lock,
            Self::Lock(_) | Self::Chain(_) | Self::Io { .. } | Self::File(_) => WfExit::General,
        }
    }
}

pub(crate) fn load_env(path: &Path) -> DiskResult<Option<EnvFile>> {
    load_as(path, EnvFile::parse_bytes)
}

pub(crate) fn load_text(path: &Path) -> DiskResult<Option<String>> {
    load_as(path, |bytes| std::str::from_utf8(bytes).map(str::to_owned))
}

pub(crate) fn load_json<T: DeserializeOwned>(path: &Path) -> DiskResult<Option<T>> {
    load_as(path, |bytes| serde_json::from_slice(bytes))
}

pub(crate) fn load_document<T: DeserializeOwned>(
    path: &Path,
    schema: Schema,
) -> DiskResult<Option<T>> {
    load_as(path, |bytes| schema.read(bytes))
}

fn load_as<T, E: ToString>(
    path: &Path,
    parse: impl FnOnce(&[u8]) -> Result<T, E>,
) -> DiskResult<Option<T>> {
    let Some(bytes) = read_optional(path)? else { return Ok(None) };
    parse(&bytes).map(Some).map_err(DiskError::in_file(path))
}

pub(crate) fn read_optional(path: &Path) -> DiskResult<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DiskError::io("read", path)(error)),
    }
}

pub(crate) fn save(path: &Path, bytes: &[u8]) -> DiskResult<()> {
    Ok(host::file::write_atomic(path, bytes, SHARED)?)
}

/// Replaces a derived file if its content changed, without waiting for the disk.
pub(crate) fn save_derived(path: &Path, bytes: &[u8]) -> DiskResult<()> {
    if read_optional(path)?.as_deref() == Some(bytes) {
        return Ok(());
    }
    Ok(host::file::write_transient(path, bytes, SHARED)?)
}

pub(crate) fn make_dir(path: &Path) -> DiskResult<()> {
    fs::create_dir_all(path).map_err(DiskError::io("make the folder", path))
}

/// Moves a folder in one step, and waits until the disk has it.
pub(crate) fn move_dir(from: &Path, to: &Path) -> DiskResult<()> {
    fs::rename(from, to).map_err(DiskError::io("move", from))?;
    for folder in [from.parent(), to.parent()].into_iter().flatten() {
        let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(DiskError::io("sync", folder))?;
    }
    Ok(())
}

pub(crate) fn remove_optional(path: &Path) -> DiskResult<()> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(DiskError::io("remove", path)(error)),
    }
}

/// The names in a folder, sorted; none if there is no such folder.
pub(crate) fn names_in(dir: &Path) -> DiskResult<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(DiskError::io("list", dir)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(DiskError::io("list", dir))?;
        // wf creates no names that are not UTF-8.
        names.extend(entry.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}
