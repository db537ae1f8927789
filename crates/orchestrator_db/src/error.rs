//! What can go wrong with the state.

use std::path::PathBuf;

use thiserror::Error;

use crate::rules::lifecycle::WrongWorkStep;
use crate::rules::status::WrongStep;

/// The state could not be kept or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StateError {
    /// The folder or the file cannot be made.
    #[error("could not make the database {path}; check that the folder is yours", path = path.display())]
    Make {
        /// The database.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The database says no.
    #[error("could not {action} in {path}", path = path.display())]
    Database {
        /// What was being done, as a verb.
        action: &'static str,
        /// The database.
        path: PathBuf,
        /// What it said.
        source: rusqlite::Error,
    },
    /// A newer program wrote it.
    #[error(
        "{path} was written by a newer version (schema {found}, this one knows {known}); install that version",
        path = path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The newest that is known here.
        known: u32,
    },
    /// A row holds what nobody here wrote.
    #[error("{path} holds a {field} that cannot be understood: {value:?}", path = path.display())]
    Row {
        /// The database.
        path: PathBuf,
        /// The column.
        field: &'static str,
        /// What is in it.
        value: String,
    },
    /// No bottle works on that issue.
    #[error("no bottle works on {owner}/{repo}#{issue_number}; start one first")]
    Unknown {
        /// The repository's owner.
        owner: String,
        /// The repository.
        repo: String,
        /// The issue.
        issue_number: u64,
    },
    /// Somebody else has claimed the work since.
    #[error(
        "{owner}/{repo}#{issue_number} was taken over: its fence is {held} by now, and this came with {came}"
    )]
    Fenced {
        /// The repository's owner.
        owner: String,
        /// The repository.
        repo: String,
        /// The issue.
        issue_number: u64,
        /// The fence that counts.
        held: u64,
        /// The one that was brought.
        came: u64,
    },
    /// The work is in another state.
    #[error(transparent)]
    Work(#[from] WrongWorkStep),
    /// The bottle is in another status.
    #[error(transparent)]
    Step(#[from] WrongStep),
}
