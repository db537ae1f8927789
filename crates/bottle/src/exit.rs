//! How a command ends: with a status that it decided on, or with a failure that carries the one its meaning has.

use std::error::Error;

use model::exit::BottleExit;

/// An error with its status.
pub(crate) type Failure = shell::Failure<BottleExit>;

/// What a command returns. Headless runs return the agent's own status, so it is a number.
pub(crate) type Outcome = Result<u8, Failure>;

/// The status of a command that did its work.
pub(crate) const SUCCESS: u8 = 0;

/// Gives an error its status.
pub(crate) trait OrExit<T> {
    /// A failure of this step ends the command with `status`.
    fn or_exit(self, status: BottleExit) -> Result<T, Failure>;

    /// A failure of this step is one of the machine.
    fn or_general(self) -> Result<T, Failure>
    where
        Self: Sized,
    {
        self.or_exit(BottleExit::General)
    }
}

impl<T, E: Error + Send + Sync + 'static> OrExit<T> for Result<T, E> {
    fn or_exit(self, status: BottleExit) -> Result<T, Failure> {
        shell::OrExit::or_exit(self, status)
    }
}
