//! Publishing a verified commit: pushed by the host, as a branch of its own, never by force.

use std::time::Duration;

use host::git::{SealedRepo, UserEnv, push_problem};
use model::id::{BranchName, RunId, Sha};
use run_store::operation_log::{Operation, OperationLog, OperationOutcome};

use super::metadata::Publication;
use crate::exit::{Failure, OrExit};
use model::exit::ForkliftExit;

/// How long the remote may take.
const PUSH_LIMIT: Duration = Duration::from_secs(300);

/// The branch of a run.
pub(crate) fn branch_of(run: &RunId) -> Result<BranchName, Failure> {
    BranchName::parse(&format!("forklift/{run}")).or_exit(ForkliftExit::Internal)
}

/// Pushes `commit` to `url` as the run's branch. What is intended is written down first; pushing again what is there
/// already changes nothing, so a run that was killed in between simply does it again.
pub(crate) async fn publish(
    repo: &SealedRepo,
    log: &OperationLog,
    url: &str,
    run: &RunId,
    commit: &Sha,
) -> Result<Publication, Failure> {
    let branch = branch_of(run)?;
    let note = |outcome| Operation::new("push", format!("{branch} {commit}"), outcome);
    log.append(&note(OperationOutcome::Intended)).or_exit(ForkliftExit::Machine)?;
    let pushed = repo.push(url, commit, &branch, UserEnv::from_env(), PUSH_LIMIT).await;
    let problem = push_problem(pushed);
    let outcome = if problem.is_none() { OperationOutcome::Done } else { OperationOutcome::Failed };
    log.append(&note(outcome)).or_exit(ForkliftExit::Machine)?;
    Ok(Publication {
        branch,
        commit: commit.clone(),
        pushed: problem.is_none(),
        problem,
        pull: None,
        pull_text: None,
        note: None,
    })
}
