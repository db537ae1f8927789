//! Errors of the database.

use std::path::PathBuf;

use thiserror::Error;

use crate::forge_state::IssueKey;
use crate::rules::lifecycle::WrongWorkStep;
use crate::rules::status::WrongBottleStep;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DbError {
    #[error("could not create the database {path}; check that you own the folder", path = path.display())]
    Create { path: PathBuf, source: std::io::Error },
    #[error("could not {action} in {path}", path = path.display())]
    Database { action: &'static str, path: PathBuf, source: rusqlite::Error },
    #[error(
        "{path} was written by a newer version (schema {found}, this one knows {known}); install that version",
        path = path.display()
    )]
    Newer {
        path: PathBuf,
        found: u32,
        /// The newest schema that this version knows.
        known: u32,
    },
    /// A row holds a value that this version never writes.
    #[error("{path} holds an invalid {field}: {value:?}", path = path.display())]
    Row { path: PathBuf, field: String, value: String },
    #[error("no bottle works on {key}; start one first")]
    Unknown { key: IssueKey },
    #[error("{key} was taken over: its fence is {held}, and this step has fence {came}")]
    Fenced { key: IssueKey, held: u64, came: u64 },
    /// The work item's state does not allow the step.
    #[error(transparent)]
    WorkStep(#[from] WrongWorkStep),
    #[error(transparent)]
    BottleStep(#[from] WrongBottleStep),
}
