//! Failure of a command: an error with the exit status that its meaning has, given where the meaning is known.

use std::error::Error;
use std::fmt;

use engine::agent_run::AgentRunError;
use engine::launch::LaunchError;
use engine::run::RunError;
use forge::ForgeError;
use host::chain::ChainFileError;
use host::git::GitError;
use host::lock::LockError;
use jiff::Timestamp;
use model::exit::{BottleExit, ExitStatus};
use run_store::StoreError;

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

    /// Returns whether another process holds a lock that was needed. It ends without any change here.
    pub fn is_held(&self) -> bool {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&*self.cause);
        while let Some(error) = cause {
            if is_held(error) {
                return true;
            }
            cause = error.source();
        }
        false
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

    /// Another process holds a lock that is needed.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::of(S::GENERAL, Held(message.into()))
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

    /// Another process has the bottle's lock.
    pub fn held(message: impl Into<String>) -> Self {
        Self::of(BottleExit::NotFound, Held(message.into()))
    }

    /// The same failure where an agent's status was expected: 125 tells a script that the failure is not the agent's.
    #[must_use]
    pub fn headless(self) -> Self {
        Self { status: BottleExit::OwnFailure, ..self }
    }
}

/// Returns whether this error is about a lock of another process. Errors that pass another one through do not name it as
/// their source, so each of them is looked into.
fn is_held(error: &(dyn Error + 'static)) -> bool {
    let of_log = |error: &StoreError| matches!(error, StoreError::Log(ChainFileError::Busy { .. }));
    let of_launch =
        |error: &LaunchError| matches!(error, LaunchError::Lock(LockError::Held { .. }));
    if let Some(error) = error.downcast_ref::<RunError>() {
        return match error {
            RunError::Store(error) => of_log(error),
            RunError::Launch(error) | RunError::Agent(AgentRunError::Launch(error)) => {
                of_launch(error)
            }
            _ => false,
        };
    }
    error.is::<Held>()
        || matches!(error.downcast_ref(), Some(LockError::Held { .. }))
        || matches!(error.downcast_ref(), Some(ChainFileError::Busy { .. }))
        || error.downcast_ref().is_some_and(of_log)
        || error.downcast_ref().is_some_and(of_launch)
}

/// A message about a condition that is likely to pass.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Transient(String);

/// A message about a lock that another process holds.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Held(String);

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

    #[test]
    fn a_lock_that_another_process_holds_is_known_behind_other_errors() {
        let busy = || StoreError::from(ChainFileError::Busy { path: "operations.jsonl".into() });
        assert!(Failure::of(ForkliftExit::Machine, busy()).is_held());
        assert!(Failure::of(ForkliftExit::Machine, RunError::from(busy())).is_held());
        let held = LockError::Held { path: "lock".into(), holder: None };
        assert!(Failure::of(ForkliftExit::Machine, held).is_held());
        assert!(Failure::held("the bottle 'a' is in use").is_held());
        assert!(!Failure::<ForkliftExit>::transient("the network is gone").is_held());
    }

    fn limited(until: Option<Timestamp>) -> ForgeError {
        ForgeError::RateLimited { host: "git.example".to_owned(), until }
    }
}
