//! Publishing what was judged good: the bottle's branch, never by force, and its pull request, once.

use engine::evidence::NewCommit;
use engine::publish::{Publication, PullReference, Push, Pushed};
use forge::{NewPull, PullRequest, closes_issue, neutralise};
use host::git::SealedRepo;
use model::id::{BranchName, Sha};
use model::redact::Redactor;
use run_store::operation_log::{Operation, OperationLog, OperationOutcome};
use shell::pull::{PullRenewal, open_pull};

use super::access::ForgeAccess;
use super::run_record::BottleRunRecord;
use crate::exit::{Failure, OrGeneral};
use crate::rules::pull_text::{
    IssueLink, PullTextFacts, choose_title, render_section, render_title, renew_body, wrap_section,
};

/// More commits than these are not even counted.
const COMMITS_MAX: usize = 10_000;

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
        meta: &BottleRunRecord,
        commit: &Sha,
    ) -> Result<(Publication, Option<Failure>), Failure> {
        let push = Push {
            repo,
            url: self.url,
            branch: meta.pins.branch.clone(),
            commit,
            env: self.access.git_env(),
        };
        let Pushed { publication: mut sent, unreachable } =
            push.run(self.log, self.redactor).await.or_general()?;
        if !sent.pushed {
            let transient = unreachable.then(|| Failure::transient("origin could not be reached"));
            return Ok((sent, transient));
        }
        let text = self.pull_text(repo, meta, &sent).await?;
        let transient = self.open_pull(text, &mut sent).await?;
        Ok((sent, transient))
    }

    async fn open_pull(
        &self,
        text: PullDraft,
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
    async fn write_pull(&self, text: &PullDraft) -> Result<PullRequest, Failure> {
        let forge = self.access.open().await?;
        let renew = |there: &PullRequest| self.renew(there, text);
        open_pull(&forge, &text.new_pull(), renew).await.or_general()
    }

    /// Our part of a pull request that is there, written again; `None` if that changes nothing.
    fn renew(&self, there: &PullRequest, text: &PullDraft) -> Option<PullRenewal> {
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
        meta: &BottleRunRecord,
        sent: &Publication,
    ) -> Result<PullDraft, Failure> {
        let issue = self.access.env.issue;
        let summary = meta.done.as_ref().map(|event| event.summary.as_str());
        let answer = meta.agent_result.as_ref().and_then(|result| result.answer.as_deref());
        let known = [meta.pins.base.clone()];
        let commits = repo.new_commits(&sent.commit, &known, COMMITS_MAX).await.or_general()?;
        let commits: Vec<NewCommit> = commits.into_iter().map(NewCommit::from).collect();
        let facts = PullTextFacts {
            issue,
            issue_title: meta.issue_title.as_deref().unwrap_or_default(),
            summary: summary.or(answer),
            commits: &commits,
        };
        Ok(PullDraft {
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
struct PullDraft {
    title: String,
    section: String,
    head: BranchName,
    base: BranchName,
}

impl PullDraft {
    fn new_pull(&self) -> NewPull {
        NewPull {
            title: self.title.clone(),
            body: wrap_section(&self.section),
            head: self.head.clone(),
            base: self.base.clone(),
        }
    }
}
