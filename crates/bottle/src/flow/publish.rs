//! Publishing what was judged good: the bottle's branch, never by force, and its pull request, once.

use std::time::Duration;

use engine::evidence::NewCommit;
use forge::{NewPull, PullRequest, closes_issue, neutralise};
use host::git::{SealedRepo, push_problem};
use model::id::{BranchName, Sha};
use model::redact::Redactor;
use run_store::operation_log::{Operation, OperationLog, OperationOutcome};
use shell::pull::{PullRenewal, open_pull};

use super::access::ForgeAccess;
use super::metadata::{Metadata, Publication, PullReference};
use crate::exit::{Failure, OrExit};
use crate::rules::pull_text::{
    IssueLink, PullTextFacts, choose_title, render_section, render_title, renew_body, wrap_section,
};

/// More commits than these are not even counted.
const COMMITS_MAX: usize = 10_000;

/// How long origin may take.
const PUSH_LIMIT: Duration = Duration::from_secs(300);

/// What a publication needs.
pub(crate) struct Publisher<'a> {
    pub(crate) access: &'a ForgeAccess,
    pub(crate) log: &'a OperationLog,
    pub(crate) redactor: &'a Redactor,
    /// Origin's address.
    pub(crate) url: &'a str,
    /// The title that an earlier run gave the pull request.
    pub(crate) title_before: Option<&'a str>,
}

impl Publisher<'_> {
    /// Pushes `commit` and opens or updates the pull request. What is intended is written down first, and both can be
    /// done again without doing anything twice. Trouble that may pass is handed back beside what was done.
    pub(crate) async fn publish(
        &self,
        repo: &SealedRepo,
        meta: &Metadata,
        commit: &Sha,
    ) -> Result<(Publication, Option<Failure>), Failure> {
        let branch = meta.pins.branch.clone();
        let mut sent = Publication {
            branch,
            commit: commit.clone(),
            pushed: false,
            pull: None,
            problem: None,
        };
        let target = format!("{} {commit}", sent.branch);
        self.note("push", &target, OperationOutcome::Intended)?;
        let env = self.access.git_env();
        let pushed = repo.push(self.url, commit, &sent.branch, env, PUSH_LIMIT).await;
        host::failpoint::hit("pushed");
        let trouble =
            pushed.as_ref().is_err().then(|| Failure::transient("origin could not be reached"));
        sent.problem = push_problem(pushed).map(|text| self.redactor.redact(&text).into_owned());
        sent.pushed = sent.problem.is_none();
        self.note(
            "push",
            &target,
            if sent.pushed { OperationOutcome::Done } else { OperationOutcome::Failed },
        )?;
        match sent.pushed {
            true => {
                let text = self.pull_text(repo, meta, &sent).await?;
                let trouble = self.open_pull(text, &mut sent).await?;
                Ok((sent, trouble))
            }
            false => Ok((sent, trouble)),
        }
    }

    async fn open_pull(
        &self,
        text: PullText,
        sent: &mut Publication,
    ) -> Result<Option<Failure>, Failure> {
        let target = format!("{}/{} {}", self.access.env.owner, self.access.env.repo, sent.branch);
        self.note("pull", &target, OperationOutcome::Intended)?;
        match self.write_pull(&text).await {
            Ok(opened) => {
                self.note("pull", &format!("{target} #{}", opened.number), OperationOutcome::Done)?;
                sent.pull = Some(PullReference {
                    number: opened.number,
                    url: opened.url,
                    title: text.title,
                });
                host::failpoint::hit("opened");
                Ok(None)
            }
            Err(error) => {
                self.note("pull", &target, OperationOutcome::Failed)?;
                sent.problem = Some(self.redactor.redact(&error.to_string()).into_owned());
                Ok(error.is_transient().then_some(error))
            }
        }
    }

    /// Opens the pull request, or writes our part of the one that is there anew. What people wrote stays.
    async fn write_pull(&self, text: &PullText) -> Result<PullRequest, Failure> {
        let forge = self.access.open().await?;
        let renew = |there: &PullRequest| self.renew(there, text);
        open_pull(&forge, &text.new_pull(), renew).await.or_general()
    }

    /// Our part of a pull request that is there, written again; `None` if that changes nothing.
    fn renew(&self, there: &PullRequest, text: &PullText) -> Option<PullRenewal> {
        let link = match closes_issue(&there.body, self.access.env.issue) {
            true => IssueLink::Kept,
            false => IssueLink::Lost,
        };
        let body = renew_body(&there.body, &text.section, link);
        let body = body.unwrap_or_else(|| there.body.clone());
        let title = choose_title(&there.title, self.title_before, &text.title);
        let same = (title, body.trim_end()) == (there.title.as_str(), there.body.trim_end());
        (!same).then(|| PullRenewal { title: title.to_owned(), body })
    }

    /// The agent's words do nothing by themselves: no other issue is closed, nobody is called.
    async fn pull_text(
        &self,
        repo: &SealedRepo,
        meta: &Metadata,
        sent: &Publication,
    ) -> Result<PullText, Failure> {
        let issue = self.access.env.issue;
        let summary = meta.done.as_ref().map(|event| event.summary.as_str());
        let answer = meta.said.as_ref().and_then(|said| said.answer.as_deref());
        let known = [meta.pins.base.clone()];
        let commits = repo.new_commits(&sent.commit, &known, COMMITS_MAX).await.or_general()?;
        let commits: Vec<NewCommit> = commits.into_iter().map(NewCommit::from).collect();
        let facts = PullTextFacts {
            issue,
            issue_title: meta.issue_title.as_deref().unwrap_or_default(),
            summary: summary.or(answer),
            commits: &commits,
        };
        Ok(PullText {
            title: self.redactor.redact(&render_title(&facts)).into_owned(),
            section: neutralise(&self.redactor.redact(&render_section(&facts)), issue),
            head: sent.branch.clone(),
            base: meta.pins.base_branch.clone(),
        })
    }

    fn note(&self, op: &str, target: &str, outcome: OperationOutcome) -> Result<(), Failure> {
        self.log.append(&Operation::new(op, target, outcome)).or_general().map(drop)
    }
}

/// What we have to say, before it is known whether the pull request is there already.
struct PullText {
    title: String,
    section: String,
    head: BranchName,
    base: BranchName,
}

impl PullText {
    fn new_pull(&self) -> NewPull {
        NewPull {
            title: self.title.clone(),
            body: wrap_section(&self.section),
            head: self.head.clone(),
            base: self.base.clone(),
        }
    }
}
