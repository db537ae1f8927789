//! The push that publishing consists of: its intent is in the log first, and origin is asked about a push that did not
//! clearly succeed.

use std::time::Duration;

use host::git::{
    BranchUpdate, GitError, PushOutcome, PushSpec, RemoteBranch, SealedRepo, UserEnv, push_problem,
};
use model::id::{BranchName, Sha};
use model::redact::Redactor;
use run_store::StoreError;
use run_store::operation_log::{Operation, OperationLog, OperationOutcome};
use serde_json::json;

use crate::publish::Publication;

const PUSH_LIMIT: Duration = Duration::from_secs(300);

const QUERY_LIMIT: Duration = Duration::from_secs(60);

/// Pauses before the questions about a push whose answer was lost: the server may still be at work on it.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(2)];

/// Push of a judged commit to origin.
#[derive(Debug)]
pub struct Push<'a> {
    pub repo: &'a SealedRepo,
    pub url: &'a str,
    pub branch: BranchName,
    pub commit: &'a Sha,
    pub update: BranchUpdate<'a>,
    /// The environment of the user whose credentials are used.
    pub env: UserEnv,
}

/// Result of a [`Push`].
#[derive(Debug)]
pub struct Pushed {
    /// So far without a pull request.
    pub publication: Publication,
    /// True if it is unknown whether the branch arrived: a retry may help.
    pub unreachable: bool,
}

/// Knowledge about a push after origin was asked.
enum Arrival {
    Arrived,
    Missing,
    Unknown(GitError),
}

impl Push<'_> {
    /// Pushes. A process that was killed may have pushed the same before, and its git may have outlived it; pushing again
    /// what is there already changes nothing, so the process that continues does it again.
    pub async fn run(self, log: &OperationLog, redactor: &Redactor) -> Result<Pushed, StoreError> {
        let Self { repo, url, branch, commit, update, env } = &self;
        let operation = |outcome| Operation::new("push", format!("{branch} {commit}"), outcome);
        log.append(&operation(OperationOutcome::Intended))?;
        let spec = PushSpec { url, branch, commit, update: *update };
        let pushed = repo.push(spec, env.clone(), PUSH_LIMIT).await;
        host::failpoint::hit("pushed");
        let failure = push_problem(&pushed).map(|text| redactor.redact(&text).into_owned());
        let (problem, unreachable) = match failure {
            None => (None, false),
            Some(failure) => match self.ask_origin(&pushed).await {
                Arrival::Arrived => (None, false),
                Arrival::Missing => (Some(failure), pushed.is_err()),
                Arrival::Unknown(error) => {
                    let error = redactor.redact(&error.to_string()).into_owned();
                    let text = "origin could not be asked whether the branch arrived";
                    (Some(format!("{failure}; {text}: {error}")), true)
                }
            },
        };
        let outcome =
            if problem.is_none() { OperationOutcome::Done } else { OperationOutcome::Failed };
        let found = matches!(pushed, Err(_) | Ok(PushOutcome::Rejected { .. }));
        let detail = json!({"found_on_origin": found && problem.is_none()});
        log.append(&operation(outcome).with_detail(detail))?;
        let publication = Publication {
            commit: (*commit).clone(),
            pushed: problem.is_none(),
            branch: self.branch,
            problem,
            pull: None,
            pull_text: None,
            note: None,
        };
        Ok(Pushed { publication, unreachable })
    }

    /// Asks origin about a push that did not clearly succeed. A rejection is final; after any other failure the server may
    /// still be at work.
    async fn ask_origin(&self, pushed: &Result<PushOutcome, GitError>) -> Arrival {
        let questions = if pushed.is_ok() { 1 } else { PAUSES.len() };
        for pause in PAUSES.iter().take(questions) {
            tokio::time::sleep(*pause).await;
            let env = self.env.clone();
            match self.repo.remote_branch(self.url, &self.branch, env, QUERY_LIMIT).await {
                Ok(RemoteBranch::At(tip)) if tip == *self.commit => return Arrival::Arrived,
                Ok(RemoteBranch::At(_) | RemoteBranch::Absent) => {}
                Err(error) => return Arrival::Unknown(error),
            }
        }
        Arrival::Missing
    }
}
