//! Publishing a judged commit: the branch is pushed by the host, never by force, and the intent is logged first.

use std::path::PathBuf;
use std::time::Duration;

use host::git::{SealedRepo, UserEnv, push_problem};
use model::id::{BranchName, Sha};
use model::redact::Redactor;
use run_store::StoreError;
use run_store::operation_log::{Operation, OperationLog, OperationOutcome};
use serde::{Deserialize, Serialize};

const PUSH_LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    pub branch: BranchName,
    pub commit: Sha,
    /// True if the branch is at origin.
    #[serde(default)]
    pub pushed: bool,
    /// Reason for which it was not published in full.
    pub problem: Option<String>,
    #[serde(default)]
    pub pull: Option<PullReference>,
    /// The pull request's text, where there is no forge to open it on.
    #[serde(default)]
    pub pull_text: Option<PathBuf>,
    /// What a pull request would need.
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullReference {
    pub number: u64,
    pub url: String,
    /// The title that this run would give it; people may have chosen another.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
}

#[derive(Debug)]
pub struct Push<'a> {
    pub repo: &'a SealedRepo,
    pub url: &'a str,
    /// The branch to create or move forward.
    pub branch: BranchName,
    pub commit: &'a Sha,
    /// The environment of the user whose credentials are used.
    pub env: UserEnv,
}

#[derive(Debug)]
pub struct Pushed {
    /// So far without a pull request.
    pub publication: Publication,
    /// True if git failed before origin answered: a retry may help.
    pub unreachable: bool,
}

impl Push<'_> {
    /// Pushes. The intent is in the log first; pushing again what is there already changes nothing, so a run that was
    /// killed in between does it again.
    pub async fn run(self, log: &OperationLog, redactor: &Redactor) -> Result<Pushed, StoreError> {
        let Self { repo, url, branch, commit, env } = self;
        let operation = |outcome| Operation::new("push", format!("{branch} {commit}"), outcome);
        log.append(&operation(OperationOutcome::Intended))?;
        let pushed = repo.push(url, commit, &branch, env, PUSH_LIMIT).await;
        host::failpoint::hit("pushed");
        let unreachable = pushed.is_err();
        let problem = push_problem(pushed).map(|text| redactor.redact(&text).into_owned());
        let outcome =
            if problem.is_none() { OperationOutcome::Done } else { OperationOutcome::Failed };
        log.append(&operation(outcome))?;
        let publication = Publication {
            commit: commit.clone(),
            pushed: problem.is_none(),
            branch,
            problem,
            pull: None,
            pull_text: None,
            note: None,
        };
        Ok(Pushed { publication, unreachable })
    }
}
