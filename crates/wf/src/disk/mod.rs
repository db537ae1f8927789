//! Files of a project and its workstreams: paths, reading and atomic replacement.
//!
//! Every write is atomic. Every read is validated, and an error names the file.

pub(crate) mod effect_log;
pub(crate) mod event_log;
pub(crate) mod implemented;
pub(crate) mod journal;
pub(crate) mod lock;
pub(crate) mod project_dirs;
pub(crate) mod question;
pub(crate) mod queue;
pub(crate) mod registry;
pub(crate) mod rejection;
pub(crate) mod run_dir;
pub(crate) mod secrets;
mod spread;
pub(crate) mod state_file;
pub(crate) mod touched;
pub(crate) mod uat;
pub(crate) mod workflow;
pub(crate) mod workstream;

pub(crate) use spread::spread;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use host::file::FileError;
use host::lock::LockError;
use model::env_file::EnvFile;
use model::exit::WfExit;
use serde::de::DeserializeOwned;

use crate::rules::schema::Schema;

/// The mode of files that a project's people may all read.
pub(crate) const SHARED: u32 = 0o644;

/// Error of a file or a setting.
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
    #[error("there is no {kind} '{name}'{hint}")]
    Unknown { kind: &'static str, name: String, hint: String },
    #[error("{0}")]
    Setting(String),
}

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

/// Reads an env file; none if there is none.
pub(crate) fn load_env(path: &Path) -> Result<Option<EnvFile>, DiskError> {
    load_as(path, EnvFile::parse_bytes)
}

/// Reads a text; none if there is no file.
pub(crate) fn load_text(path: &Path) -> Result<Option<String>, DiskError> {
    load_as(path, |bytes| std::str::from_utf8(bytes).map(str::to_owned))
}

/// Reads a JSON file without a schema; none if there is none.
pub(crate) fn load_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, DiskError> {
    load_as(path, |bytes| serde_json::from_slice(bytes))
}

/// Reads a JSON file that keeps a schema; none if there is none.
pub(crate) fn load_document<T: DeserializeOwned>(
    path: &Path,
    schema: Schema,
) -> Result<Option<T>, DiskError> {
    load_as(path, |bytes| schema.read(bytes))
}

fn load_as<T, E: ToString>(
    path: &Path,
    parse: impl FnOnce(&[u8]) -> Result<T, E>,
) -> Result<Option<T>, DiskError> {
    let Some(bytes) = read_optional(path)? else { return Ok(None) };
    parse(&bytes).map(Some).map_err(DiskError::in_file(path))
}

/// Reads a file; none if there is none.
pub(crate) fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, DiskError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DiskError::io("read", path)(error)),
    }
}

pub(crate) fn save(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    Ok(host::file::write_atomic(path, bytes, SHARED)?)
}

/// Replaces a derived file if its content changed, without waiting for the disk.
pub(crate) fn save_derived(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    if read_optional(path)?.as_deref() == Some(bytes) {
        return Ok(());
    }
    Ok(host::file::write_transient(path, bytes, SHARED)?)
}

/// Makes a folder and those above it.
pub(crate) fn make_dir(path: &Path) -> Result<(), DiskError> {
    fs::create_dir_all(path).map_err(DiskError::io("make the folder", path))
}

/// Removes a file that may be gone already.
pub(crate) fn remove_optional(path: &Path) -> Result<(), DiskError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(DiskError::io("remove", path)(error)),
    }
}

/// The names in a folder, sorted; none if there is no such folder.
pub(crate) fn names_in(dir: &Path) -> Result<Vec<String>, DiskError> {
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
