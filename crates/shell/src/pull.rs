//! Opening a pull request: its intent is in the log first, and it is opened once, whatever is killed in between.

use forge::{Forge, ForgeError, NewPull, PullRequest};
use model::exit::ExitStatus;
use run_store::operation_log::{Operation, OperationLog, OperationOutcome};

use crate::failure::{Failure, OrExit};

/// Log of effects on others.
pub trait EffectLog<S> {
    /// Appends a line and brings it to disk.
    fn note(
        &self,
        operation: &str,
        target: &str,
        outcome: OperationOutcome,
    ) -> Result<(), Failure<S>>;
}

impl<S: ExitStatus> EffectLog<S> for OperationLog {
    fn note(
        &self,
        operation: &str,
        target: &str,
        outcome: OperationOutcome,
    ) -> Result<(), Failure<S>> {
        self.append(&Operation::new(operation, target, outcome)).or_exit(S::GENERAL).map(drop)
    }
}

/// Does something to others with its intent in the log before and its outcome after. The outer failure is one of the
/// log: without an intent nothing is done.
pub async fn logged<T, S>(
    log: &impl EffectLog<S>,
    operation: &str,
    target: &str,
    act: impl Future<Output = Result<T, Failure<S>>>,
) -> Result<Result<T, Failure<S>>, Failure<S>> {
    log.note(operation, target, OperationOutcome::Intended)?;
    let done = act.await;
    log.note(
        operation,
        target,
        if done.is_ok() { OperationOutcome::Done } else { OperationOutcome::Failed },
    )?;
    Ok(done)
}

/// Title and body for a pull request that is there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRenewal {
    pub title: String,
    pub body: String,
    /// True for a draft, false for one that is ready; `None` leaves that to people.
    pub draft: Option<bool>,
}

impl PullRenewal {
    /// The same text as for a new one.
    pub fn of(pull: &NewPull) -> Self {
        Self { title: pull.title.clone(), body: pull.body.clone(), draft: None }
    }
}

/// Opens the pull request of a branch. If the branch has one, which an attempt whose answer was lost may have opened,
/// it gets the text that `renew` makes of it; `None` leaves it as it is.
pub async fn open_pull(
    forge: &Forge,
    pull: &NewPull,
    renew: impl FnOnce(&PullRequest) -> Option<PullRenewal>,
) -> Result<PullRequest, ForgeError> {
    let Some(there) = forge.find_pull(&pull.head).await? else {
        return forge.create_pull(pull).await;
    };
    match renew(&there) {
        Some(edit) => {
            let draft = edit.draft.unwrap_or(there.draft);
            forge.update_pull(there.number, &edit.title, &edit.body, draft).await
        }
        None => Ok(there),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use model::exit::ForkliftExit;

    use super::*;

    /// A log in memory that may be full.
    #[derive(Default)]
    struct Lines {
        lines: RefCell<Vec<String>>,
        is_full: bool,
    }

    impl EffectLog<ForkliftExit> for Lines {
        fn note(
            &self,
            operation: &str,
            target: &str,
            outcome: OperationOutcome,
        ) -> Result<(), Failure<ForkliftExit>> {
            if self.is_full {
                return Err(Failure::new(ForkliftExit::Machine, "no space left"));
            }
            self.lines.borrow_mut().push(format!("{operation} {target} {outcome:?}"));
            Ok(())
        }
    }

    fn run(log: &Lines, act: Result<u8, Failure<ForkliftExit>>) -> (bool, Vec<String>) {
        let acted = RefCell::new(false);
        let work = async {
            acted.replace(true);
            act
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        drop(runtime.block_on(logged(log, "pull", "fork/main", work)));
        (acted.take(), log.lines.take())
    }

    #[test]
    fn the_intent_comes_before_the_effect_and_the_outcome_after() {
        let (acted, lines) = run(&Lines::default(), Ok(1));
        assert!(acted);
        assert_eq!(lines, ["pull fork/main Intended", "pull fork/main Done"]);
        let (_, lines) = run(&Lines::default(), Err(Failure::usage("no")));
        assert_eq!(lines, ["pull fork/main Intended", "pull fork/main Failed"]);
    }

    #[test]
    fn without_an_intent_nothing_is_done() {
        let (acted, lines) = run(&Lines { is_full: true, ..Lines::default() }, Ok(1));
        assert_eq!((acted, lines), (false, Vec::new()));
    }
}
