//! How a command fails: an error carries the status that its meaning has, given where the meaning is known.

use std::error::Error;
use std::fmt;

use crate::exit::ExitStatus;
use crate::told;

/// An error with its status.
#[derive(Debug)]
pub struct Failure<S> {
    /// How the command ends.
    pub status: S,
    cause: Box<dyn Error + Send + Sync>,
}

impl<S> Failure<S> {
    /// A failure that has no deeper cause than these words.
    pub fn new(status: S, words: impl Into<String>) -> Self {
        Self { status, cause: words.into().into() }
    }

    /// The failure that an error means.
    pub fn of(status: S, error: impl Error + Send + Sync + 'static) -> Self {
        Self { status, cause: Box::new(error) }
    }
}

impl<S: ExitStatus> Failure<S> {
    /// Wrong use or configuration.
    pub fn usage(words: impl Into<String>) -> Self {
        Self::new(S::USAGE, words)
    }
}

impl<S> fmt::Display for Failure<S> {
    /// The whole chain in one line; causes that repeat what was said are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&told(&*self.cause))
    }
}

/// Gives an error its status.
pub trait OrExit<T> {
    /// The failure of this step means `status`.
    fn or_exit<S>(self, status: S) -> Result<T, Failure<S>>;
}

impl<T, E: Error + Send + Sync + 'static> OrExit<T> for Result<T, E> {
    fn or_exit<S>(self, status: S) -> Result<T, Failure<S>> {
        self.map_err(|error| Failure::of(status, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::ForkliftExit;

    #[derive(Debug, thiserror::Error)]
    #[error("could not open the door")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn a_failure_tells_its_causes_in_one_line() {
        let outer = Outer(std::io::Error::other("the key broke"));
        let failure = Err::<(), _>(outer).or_exit(ForkliftExit::Machine).unwrap_err();
        assert_eq!(failure.to_string(), "could not open the door: the key broke");
        assert_eq!(failure.status, ForkliftExit::Machine);
    }

    #[test]
    fn wrong_use_has_a_status_of_its_own() {
        let failure = Failure::<ForkliftExit>::usage("no such branch");
        assert_eq!(
            (failure.status, failure.to_string()),
            (ForkliftExit::Usage, "no such branch".to_owned())
        );
    }
}
