//! How a command ends: an error carries the status that its meaning has, given where the meaning is known.

use std::error::Error;
use std::fmt;

use model::verdict::ForkliftStatus;

/// What a command returns: a status that it decided on, or a failure of our own.
pub(crate) type Outcome = Result<ForkliftStatus, Failure>;

/// An error with its status.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: ForkliftStatus,
    cause: Box<dyn Error + Send + Sync>,
}

impl Failure {
    /// A failure that has no deeper cause than these words.
    pub(crate) fn new(status: ForkliftStatus, words: impl Into<String>) -> Self {
        Self { status, cause: words.into().into() }
    }

    /// Wrong use or configuration.
    pub(crate) fn usage(words: impl Into<String>) -> Self {
        Self::new(ForkliftStatus::Usage, words)
    }
}

impl fmt::Display for Failure {
    /// The whole chain in one line; causes that repeat what was said are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&model::told(&*self.cause))
    }
}

/// Gives an error its status.
pub(crate) trait OrExit<T> {
    /// The failure of this step means `status`.
    fn or_exit(self, status: ForkliftStatus) -> Result<T, Failure>;
}

impl<T, E: Error + Send + Sync + 'static> OrExit<T> for Result<T, E> {
    fn or_exit(self, status: ForkliftStatus) -> Result<T, Failure> {
        self.map_err(|error| Failure { status, cause: Box::new(error) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("could not open the door")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn a_failure_tells_its_causes_in_one_line() {
        let outer = Outer(std::io::Error::other("the key broke"));
        let failure = Err::<(), _>(outer).or_exit(ForkliftStatus::Machine).unwrap_err();
        assert_eq!(failure.to_string(), "could not open the door: the key broke");
        assert_eq!(failure.status, ForkliftStatus::Machine);
    }
}
