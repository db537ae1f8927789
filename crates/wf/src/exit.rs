//! How a command ends.

use model::exit::WfExit;

pub(crate) use shell::OrExit;

use crate::disk::DiskError;

/// An error with its status.
pub(crate) type Failure = shell::Failure<WfExit>;

/// What a command returns: a status that it decided on, or a failure of our own.
pub(crate) type Outcome = Result<WfExit, Failure>;

impl From<DiskError> for Failure {
    /// Files know what their faults mean.
    fn from(error: DiskError) -> Self {
        Self::of(error.status(), error)
    }
}
