//! How a command ends.

use model::exit::ForkliftExit;

pub(crate) use shell::OrExit;

/// An error with its status.
pub(crate) type Failure = shell::Failure<ForkliftExit>;

/// What a command returns: a status that it decided on, or a failure of our own.
pub(crate) type Outcome = Result<ForkliftExit, Failure>;
