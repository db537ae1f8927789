//! Errors of run directories and their records.

use std::path::{Path, PathBuf};

/// A run directory or a record that could not be created, found, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error(transparent)]
    File(#[from] host::file::FileError),
    /// Every name for a run of this second is taken.
    #[error("{root} has {attempts} runs of {first} already; wait a second and start again", root = root.display())]
    Crowded { root: PathBuf, first: String, attempts: u32 },
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
    pub(crate) fn json(path: &Path) -> impl FnOnce(serde_json::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Json { path, source }
    }
}
