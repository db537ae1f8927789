//! Failure of a command: an error with the exit status that its meaning has, given where the meaning is known.

use std::error::Error;
use std::fmt;

use forge::ForgeError;
use host::git::GitError;
use jiff::Timestamp;
use model::exit::{BottleExit, ExitStatus};

/// An error with its exit status, and perhaps with a remedy for the user.
#[derive(Debug)]
pub struct Failure<S> {
    pub status: S,
    remedy: Option<String>,
    cause: Box<dyn Error + Send + Sync>,
}

impl<S> Failure<S> {
    /// A failure without a deeper cause.
    pub fn new(status: S, message: impl Into<String>) -> Self {
        Self { status, remedy: None, cause: message.into().into() }
    }

    pub fn of(status: S, error: impl Error + Send + Sync + 'static) -> Self {
        Self { status, remedy: None, cause: Box::new(error) }
    }

    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// The error of a forge, if that is what failed.
    pub fn forge(&self) -> Option<&ForgeError> {
        self.cause.downcast_ref()
    }

    /// Returns whether a retry may succeed without any change here: a forge that is down, slow or limits its callers, a git
    /// command that failed or took too long.
    pub fn is_transient(&self) -> bool {
        let forge = matches!(
            self.forge(),
            Some(
                ForgeError::RateLimited { .. }
                    | ForgeError::Server { .. }
                    | ForgeError::Unreachable { .. }
                    | ForgeError::Unreadable { .. }
                    | ForgeError::Lost { .. }
            )
        );
        let git = matches!(
            self.cause.downcast_ref(),
            Some(GitError::Failed { .. } | GitError::TimedOut { .. })
        );
        forge || git || self.cause.is::<Transient>()
    }

    /// The time at which a forge that limits its callers answers again.
    pub fn retry_after(&self) -> Option<Timestamp> {
        match self.forge() {
            Some(ForgeError::RateLimited { until, .. }) => *until,
            _ => None,
        }
    }
}

impl<S: ExitStatus> Failure<S> {
    /// Wrong usage or configuration.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(S::USAGE, message)
    }

    /// A failure that is likely to pass without any change here.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::of(S::GENERAL, Transient(message.into()))
    }
}

impl Failure<BottleExit> {
    /// No such bottle, or it is in the wrong state.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(BottleExit::NotFound, message)
    }

    /// The same failure where an agent's status was expected: 125 tells a script that the failure is not the agent's.
    #[must_use]
    pub fn headless(self) -> Self {
        Self { status: BottleExit::OwnFailure, ..self }
    }
}

/// A message about a condition that is likely to pass.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Transient(String);

impl<S> fmt::Display for Failure<S> {
    /// The whole chain in one line, without causes that repeat the line above them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&model::error_chain(&*self.cause))
    }
}

/// Gives an error its exit status.
pub trait OrExit<T> {
    /// A failure of this step ends the command with `status`.
    fn or_exit<S>(self, status: S) -> Result<T, Failure<S>>;
}

impl<T, E: Error + Send + Sync + 'static> OrExit<T> for Result<T, E> {
    fn or_exit<S>(self, status: S) -> Result<T, Failure<S>> {
        self.map_err(|error| Failure::of(status, error))
    }
}

#[cfg(test)]
mod tests {
    use model::exit::ForkliftExit;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("could not open the door")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn a_failure_shows_its_causes_in_one_line() {
        let outer = Outer(std::io::Error::other("the key broke"));
        let failure = Err::<(), _>(outer).or_exit(ForkliftExit::Machine).unwrap_err();
        assert_eq!(failure.to_string(), "could not open the door: the key broke");
        assert_eq!(failure.status, ForkliftExit::Machine);
    }

    #[test]
    fn wrong_usage_has_a_status_of_its_own() {
        let failure = Failure::<ForkliftExit>::usage("no such branch").with_remedy("name another");
        assert_eq!(failure.status, ForkliftExit::Usage);
        assert_eq!(failure.to_string(), "no such branch");
        assert_eq!(failure.remedy(), Some("name another"));
    }

    #[test]
    fn a_failure_where_an_agents_status_was_expected_is_125() {
        let failure = Failure::usage("no such agent").headless();
        assert_eq!((failure.status.code(), failure.to_string()), (125, "no such agent".to_owned()));
    }

    #[test]
    fn what_passes_by_itself_is_told_from_what_does_not() {
        let until = Timestamp::from_second(1_700_000_000).ok();
        let limited = Failure::of(ForkliftExit::Machine, limited(until));
        assert!(limited.is_transient());
        assert_eq!(limited.retry_after(), until);
        assert!(Failure::<ForkliftExit>::transient("the network is gone").is_transient());
        let wrong = Failure::<ForkliftExit>::usage("no such branch");
        assert!(!wrong.is_transient() && wrong.retry_after().is_none());
    }

    fn limited(until: Option<Timestamp>) -> ForgeError {
        ForgeError::RateLimited { host: "git.example".to_owned(), until }
    }
}
