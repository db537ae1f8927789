//! How a command ends: with a status that it decided on, or with a failure that carries the one its meaning has.

use std::error::Error;
use std::fmt;

use jiff::Timestamp;
use model::exit::BottleExit;

/// What a command returns. Headless runs hand on the agent's own status, so it is a number.
pub(crate) type Outcome = Result<u8, Failure>;

/// All is well.
pub(crate) const SUCCESS: u8 = BottleExit::Success as u8;

/// An error with its status.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: BottleExit,
    cause: Box<dyn Error + Send + Sync>,
}

impl Failure {
    /// A failure that has no deeper cause than these words.
    pub(crate) fn new(status: BottleExit, words: impl Into<String>) -> Self {
        Self { status, cause: words.into().into() }
    }

    /// Wrong use or configuration.
    pub(crate) fn usage(words: impl Into<String>) -> Self {
        Self::new(BottleExit::Usage, words)
    }

    /// No such bottle, or it is in the wrong state.
    pub(crate) fn not_found(words: impl Into<String>) -> Self {
        Self::new(BottleExit::NotFound, words)
    }

    /// A failure that is likely to pass by itself.
    pub(crate) fn passing(words: impl Into<String>) -> Self {
        let words = words.into();
        Self { status: BottleExit::General, cause: Box::new(Passing(words)) }
    }

    /// Whether trying again later may help, without anybody doing anything: a forge that is down, slow or has heard too
    /// much.
    pub(crate) fn passes(&self) -> bool {
        use forge::ForgeError as Forge;
        use host::git::GitError as Git;
        if self.cause.is::<Passing>() {
            return true;
        }
        let forge = self.forge().is_some_and(|error| {
            matches!(
                error,
                Forge::RateLimited { .. }
                    | Forge::Server { .. }
                    | Forge::Unreachable { .. }
                    | Forge::Unreadable { .. }
                    | Forge::Lost { .. }
            )
        });
        forge
            || matches!(
                self.cause.downcast_ref::<Git>(),
                Some(Git::Failed { .. } | Git::TimedOut { .. })
            )
    }

    /// What a forge said, if that is what failed.
    pub(crate) fn forge(&self) -> Option<&forge::ForgeError> {
        self.cause.downcast_ref()
    }

    /// When the other side said that it will listen again.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        match self.forge() {
            Some(forge::ForgeError::RateLimited { until, .. }) => *until,
            _ => None,
        }
    }

    /// The same failure where an agent's status was expected: it is ours, whatever else it means.
    pub(crate) fn headless(self) -> Self {
        Self { status: BottleExit::OwnFailure, ..self }
    }
}

/// Words about trouble that is likely to pass.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Passing(String);

impl fmt::Display for Failure {
    /// The whole chain in one line; causes that repeat what was said are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&model::told(&*self.cause))
    }
}

/// Gives an error its status.
pub(crate) trait OrExit<T> {
    /// The failure of this step means `status`.
    fn or_exit(self, status: BottleExit) -> Result<T, Failure>;

    /// The failure of this step means that the machine let us down.
    fn or_general(self) -> Result<T, Failure>
    where
        Self: Sized,
    {
        self.or_exit(BottleExit::General)
    }
}

impl<T, E: Error + Send + Sync + 'static> OrExit<T> for Result<T, E> {
    fn or_exit(self, status: BottleExit) -> Result<T, Failure> {
        self.map_err(|error| Failure { status, cause: Box::new(error) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_where_an_agents_status_was_expected_is_125() {
        let failure = Failure::usage("no such agent").headless();
        assert_eq!(failure.status.code(), 125);
        assert_eq!(failure.to_string(), "no such agent");
    }
}
