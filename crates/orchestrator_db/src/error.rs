//! Errors of the database, without the types of an engine.

use std::error::Error;

use thiserror::Error;

use crate::fence::Fence;
use crate::forge_state::IssueKey;
use crate::rules::lifecycle::WrongWorkStep;
use crate::rules::status::{BottleState, WrongBottleStep};

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DbError {
    #[error("could not create the database {database}; check that you own the folder")]
    Create { database: String, source: std::io::Error },
    #[error("could not {action} in {database}")]
    Database {
        action: &'static str,
        /// Name of the database, for people; without a password.
        database: String,
        source: Box<dyn Error + Send + Sync>,
    },
    #[error(
        "{database} was written by a newer version (schema {found}, this one knows {known}); install that version"
    )]
    Newer {
        database: String,
        found: u32,
        /// The newest schema that this version knows.
        known: u32,
    },
    /// A row holds a value that this version never writes.
    #[error("{database} holds an invalid {field}: {value:?}")]
    Row { database: String, field: String, value: String },
    #[error("no work is known on {key}")]
    Unknown { key: IssueKey },
    #[error("{key} was taken over: its fence is {held}, and this step has fence {came}")]
    Fenced { key: IssueKey, held: Fence, came: Fence },
    #[error("the bottle of {key} is on host {host}")]
    OtherHost { key: IssueKey, host: String },
    /// The issue has a bottle.
    #[error("the bottle '{slug}' works on {key} and is {status}")]
    HasBottle { key: IssueKey, slug: String, status: BottleState },
    /// The work item's state does not allow the step.
    #[error(transparent)]
    WorkStep(#[from] WrongWorkStep),
    #[error(transparent)]
    BottleStep(#[from] WrongBottleStep),
    #[error("the kernel gave no random bytes for a claim")]
    Random(#[from] host::random::RandomError),
}
