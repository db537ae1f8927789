//! Statuses and failures of commands.

use std::io;

use model::exit::BottleExit;
pub(crate) use shell::OrExit;

pub(crate) type Failure = shell::Failure<BottleExit>;

/// Status of a command. Headless runs return the agent's own, so it is a number.
pub(crate) type Outcome = Result<u8, Failure>;

/// The status of a command that did its work.
pub(crate) const SUCCESS: u8 = 0;

/// Gives a failure of the machine its status.
pub(crate) trait OrGeneral<T>: OrExit<T> + Sized {
    fn or_general(self) -> Result<T, Failure> {
        self.or_exit(BottleExit::General)
    }
}

impl<T, R: OrExit<T>> OrGeneral<T> for R {}

/// Turns "not found" into `None`.
pub(crate) fn if_found<T>(read: io::Result<T>) -> Result<Option<T>, Failure> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.or_general().map(Some),
    }
}
