//! Publishing a judged commit: the branch is pushed by the host, never by force, and the intent is logged first.

use std::path::PathBuf;
use std::time::Duration;

use host::git::{SealedRepo, UserEnv, push_problem};
use model::id::{BranchName, Sha};
use model::redact::Redactor;
use run_store::StoreError;
use run_store::operation_log::{Operation, OperationLog, OperationOutcome};
use serde::{Deserialize, Serialize};

/// Time limit for a push.
const PUSH_LIMIT: Duration = Duration::from_secs(300);

/// What a run published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    pub branch: BranchName,
    /// The commit that it points to.
    pub commit: Sha,
    /// Whether the branch is at origin.
    #[serde(default)]
    pub pushed: bool,
    /// Why it was not published in full, if it was not.
    pub problem: Option<String>,
    /// The pull request, if one was opened.
    #[serde(default)]
    pub pull: Option<PullReference>,
    /// Its text, where there is no forge to open it on.
    #[serde(default)]
    pub pull_text: Option<PathBuf>,
    /// What is missing for a pull request to be opened.
    #[serde(default)]
    pub note: Option<String>,
}

/// A pull request on a forge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullReference {
    pub number: u64,
    pub url: String,
    /// The title that this run would give it; people may have chosen another.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
}

/// A push of one commit.
#[derive(Debug)]
pub struct Push<'a> {
    /// The repository that holds the commit.
    pub repo: &'a SealedRepo,
    /// Origin's address.
    pub url: &'a str,
    /// The branch to create or move forward.
    pub branch: BranchName,
    pub commit: &'a Sha,
    /// The environment of the person whose credentials are used.
    pub env: UserEnv,
}

/// How a push ended.
#[derive(Debug)]
pub struct Pushed {
    /// The publication, so far without a pull request.
    pub publication: Publication,
    /// Whether git failed before origin answered: trying again later may help.
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
