//! Exit of a command: a status, or a failure with the status of its meaning.

use std::error::Error;

use model::exit::ForkliftExit;

pub(crate) type Failure = shell::Failure<ForkliftExit>;

pub(crate) type Outcome = Result<ForkliftExit, Failure>;

/// Gives an error its exit status.
pub(crate) trait OrExit<T>: Sized {
    fn or_exit(self, status: ForkliftExit) -> Result<T, Failure>;

    /// A failure of the machine.
    fn or_machine(self) -> Result<T, Failure> {
        self.or_exit(ForkliftExit::Machine)
    }

    /// Wrong usage or configuration.
    fn or_usage(self) -> Result<T, Failure> {
        self.or_exit(ForkliftExit::Usage)
    }
}

impl<T, E: Error + Send + Sync + 'static> OrExit<T> for Result<T, E> {
    fn or_exit(self, status: ForkliftExit) -> Result<T, Failure> {
        shell::OrExit::or_exit(self, status)
    }
}
