//! Publishing what was judged good: the bottle's branch, never by force, and its pull request, once.

use std::time::Duration;

use forge::{NewPull, PullRequest, neutralise};
use host::git::{SealedRepo, push_problem};
use model::id::Sha;
use model::redact::Redactor;
use store::operation_log::{Operation, OperationLog, Outcome};

use super::access::ForgeAccess;
use super::metadata::{Metadata, Publication, PullReference};
use crate::exit::{Failure, OrExit};
use crate::rules::pull_text::{PullFacts, render_pull};

/// How long origin may take.
const PUSH_LIMIT: Duration = Duration::from_secs(300);

/// What a publication needs.
pub(crate) struct Publisher<'a> {
    pub(crate) access: &'a ForgeAccess,
    pub(crate) log: &'a OperationLog,
    pub(crate) redactor: &'a Redactor,
    /// Origin's address.
    pub(crate) url: &'a str,
}

impl Publisher<'_> {
    /// Pushes `commit` and opens or updates the pull request. What is intended is written down first, and both can be
    /// done again without doing anything twice.
    pub(crate) async fn publish(
        &self,
        repo: &SealedRepo,
        meta: &Metadata,
        commit: &Sha,
    ) -> Result<Publication, Failure> {
        let branch = meta.pins.branch.clone();
        let mut sent = Publication {
            branch,
            commit: commit.clone(),
            pushed: false,
            pull: None,
            problem: None,
        };
        let target = format!("{} {commit}", sent.branch);
        self.note("push", &target, Outcome::Intended)?;
        let env = self.access.git_env();
        sent.problem =
            push_problem(repo.push(self.url, commit, &sent.branch, env, PUSH_LIMIT).await)
                .map(|text| self.redactor.redact(&text).into_owned());
        sent.pushed = sent.problem.is_none();
        self.note("push", &target, if sent.pushed { Outcome::Done } else { Outcome::Failed })?;
        if sent.pushed {
            self.open_pull(meta, &mut sent).await?;
        }
        Ok(sent)
    }

    async fn open_pull(&self, meta: &Metadata, sent: &mut Publication) -> Result<(), Failure> {
        let pull = self.pull_text(meta, sent);
        let target = format!("{}/{} {}", self.access.env.owner, self.access.env.repo, sent.branch);
        self.note("pull", &target, Outcome::Intended)?;
        match self.write_pull(&pull).await {
            Ok(opened) => {
                self.note("pull", &format!("{target} #{}", opened.number), Outcome::Done)?;
                sent.pull = Some(PullReference { number: opened.number, url: opened.url });
            }
            Err(error) => {
                self.note("pull", &target, Outcome::Failed)?;
                sent.problem = Some(self.redactor.redact(&error.to_string()).into_owned());
            }
        }
        Ok(())
    }

    /// A pull request that is there keeps the words that people and the agent gave it.
    async fn write_pull(&self, pull: &NewPull) -> Result<PullRequest, Failure> {
        let forge = self.access.open().await?;
        match forge.find_pull(&pull.head).await.or_general()? {
            Some(there) => Ok(there),
            None => forge.create_pull(pull).await.or_general(),
        }
    }

    /// The agent's words do nothing by themselves: no other issue is closed, nobody is called.
    fn pull_text(&self, meta: &Metadata, sent: &Publication) -> NewPull {
        let issue = self.access.env.issue;
        let summary = meta.done.as_ref().map(|event| event.summary.as_str());
        let answer = meta.said.as_ref().and_then(|said| said.answer.as_deref());
        let none = Vec::new();
        let (title, body) = render_pull(&PullFacts {
            issue,
            issue_title: meta.issue_title.as_deref().unwrap_or_default(),
            summary: summary.or(answer),
            commits: meta.evidence.as_ref().map_or(&none, |evidence| &evidence.new_commits),
        });
        NewPull {
            title: self.redactor.redact(&title).into_owned(),
            body: neutralise(&self.redactor.redact(&body), issue),
            head: sent.branch.clone(),
            base: meta.pins.base_branch.clone(),
            labels: Vec::new(),
        }
    }

    fn note(&self, op: &str, target: &str, outcome: Outcome) -> Result<(), Failure> {
        self.log.append(&Operation::new(op, target, outcome)).or_general().map(drop)
    }
}
