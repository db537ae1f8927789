//! What can go wrong with a run directory and its records.

use std::io;
use std::path::{Path, PathBuf};

/// A run directory or a record could not be made, found, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A system call failed.
    #[error("could not {action} {path}", path = path.display())]
    Io {
        /// Action being attempted, as a verb.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// Underlying I/O error.
        source: io::Error,
    },
    /// A file could not be written whole.
    #[error(transparent)]
    File(#[from] host::file::FileError),
    /// Every name for a run of this second is taken.
    #[error("{root} has {attempts} runs of {first} already; wait a second and start again", root = root.display())]
    Crowded {
        /// Where runs are kept.
        root: PathBuf,
        /// The first name that was tried.
        first: String,
        /// How many were tried.
        attempts: u32,
    },
    /// A project and a moment that make no run id.
    #[error(transparent)]
    Id(#[from] model::id::IdError),
    /// The path leads to something else.
    #[error("{path} is not a run directory: {why}; list the runs to see those that are", path = path.display())]
    NotARun {
        /// What was to be opened.
        path: PathBuf,
        /// The cause.
        why: &'static str,
    },
    /// No run has that name.
    #[error("no run in {root} is called \"{wanted}\" or starts with it; list the runs to see their names", root = root.display())]
    NoSuchRun {
        /// Where runs are kept.
        root: PathBuf,
        /// What was asked for.
        wanted: String,
    },
    /// Several runs start like that.
    #[error("\"{wanted}\" could be any of {candidates}; give more of the name", candidates = candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// The runs that start with it, newest first.
        candidates: Vec<String>,
    },
    /// The run is over, and its records stay as they are.
    #[error("run {run} is closed and its records never change; start a new run")]
    Closed {
        /// The run.
        run: String,
    },
    /// A record does not hold what it should.
    #[error("{path} is not the JSON that was expected", path = path.display())]
    Json {
        /// The record.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// The operation log could not be opened or written.
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
