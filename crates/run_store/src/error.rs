//! What can go wrong with a run directory and its records.

use std::io;
use std::path::{Path, PathBuf};

/// A run directory or a record could not be made, found, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error("could not {action} {path}", path = path.display())]
    Io {
        /// Action being attempted, as a verb.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(transparent)]
    File(#[from] host::file::FileError),
    /// Every name for a run of this second is taken.
    #[error("{root} has {attempts} runs of {first} already; wait a second and start again", root = root.display())]
    Crowded {
        root: PathBuf,
        /// The first name that was tried.
        first: String,
        /// How many were tried.
        attempts: u32,
    },
    /// A project and a moment that make no run id.
    #[error(transparent)]
    Id(#[from] model::id::IdError),
    #[error("{path} is not a run directory: {why}; list the runs to see those that are", path = path.display())]
    NotARun { path: PathBuf, why: &'static str },
    #[error("no run in {root} is called \"{wanted}\" or starts with it; list the runs to see their names", root = root.display())]
    NoSuchRun { root: PathBuf, wanted: String },
    #[error("\"{wanted}\" could be any of {candidates}; give more of the name", candidates = candidates.join(", "))]
    Ambiguous {
        wanted: String,
        /// The runs that start with it, newest first.
        candidates: Vec<String>,
    },
    /// The run is over, and its records stay as they are.
    #[error("run {run} is closed and its records never change; start a new run")]
    Closed { run: String },
    #[error("{path} is not the JSON that was expected", path = path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    #[error(transparent)]
    Log(#[from] host::chain::ChainFileError),
}

impl StoreError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn json(path: &Path) -> impl FnOnce(serde_json::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Json { path, source }
    }
}
