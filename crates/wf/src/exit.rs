//! Ends of a command: its status or its failure.

pub(crate) use model::exit::WfExit;
pub(crate) use shell::OrExit;

use crate::disk::DiskError;

pub(crate) type Failure = shell::Failure<WfExit>;

pub(crate) type WfResult<T> = Result<T, Failure>;

/// A status that the command decided on, or a failure of our own.
pub(crate) type Outcome = WfResult<WfExit>;

impl From<DiskError> for Failure {
    fn from(error: DiskError) -> Self {
        Self::of(error.status(), error)
    }
}
