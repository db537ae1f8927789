//! Errors of the database.

use std::path::PathBuf;

use thiserror::Error;

use crate::rules::lifecycle::WrongWorkStep;
use crate::rules::status::WrongBottleStep;

/// Failed database operation.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DbError {
    /// The folder or the file cannot be created.
    #[error("could not create the database {path}; check that you own the folder", path = path.display())]
    Create {
        /// The database.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// SQLite refused a statement.
    #[error("could not {action} in {path}", path = path.display())]
    Database {
        /// The operation, as a verb.
        action: &'static str,
        /// The database.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// A newer version wrote the database.
    #[error(
        "{path} was written by a newer version (schema {found}, this one knows {known}); install that version",
        path = path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The newest schema that this version knows.
        known: u32,
    },
    /// A row holds a value that this version never writes.
    #[error("{path} holds an invalid {field}: {value:?}", path = path.display())]
    Row {
        /// The database.
        path: PathBuf,
        /// The column.
        field: &'static str,
        /// The value.
        value: String,
    },
    /// No bottle works on the issue.
    #[error("no bottle works on {owner}/{repo}#{issue_number}; start one first")]
    Unknown {
        /// The repository's owner.
        owner: String,
        /// The repository.
        repo: String,
        /// The issue.
        issue_number: u64,
    },
    /// Another holder has claimed the work item since.
    #[error(
        "{owner}/{repo}#{issue_number} was taken over: its fence is {held}, and this step has fence {came}"
    )]
    Fenced {
        /// The repository's owner.
        owner: String,
        /// The repository.
        repo: String,
        /// The issue.
        issue_number: u64,
        /// The current fence.
        held: u64,
        /// The fence of the refused step.
        came: u64,
    },
    /// The work item's state does not allow the step.
    #[error(transparent)]
    WorkStep(#[from] WrongWorkStep),
    /// The bottle's state does not allow the step.
    #[error(transparent)]
    BottleStep(#[from] WrongBottleStep),
}
