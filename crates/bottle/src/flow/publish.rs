//! Publishes a good result: the bottle's branch, never by force, and its pull request, once.

use engine::evidence::NewCommit;
use engine::publish::{Publication, PullReference};
use engine::run::{Push, Pushed};
use forge::{ForgeError, NewPull, PullRequest, closes_issue};
use host::git::{BranchUpdate, SealedRepo};
use model::id::Sha;
use model::redact::Redactor;
use run_store::operation_log::{Operation, OperationLog, OperationOutcome};
use shell::pull::{PullRenewal, open_pull};

use super::access::ForgeAccess;
use super::run_record::BottleRunRecord;
use crate::exit::{Failure, OrGeneral};
use crate::rules::pull_text::{
    IssueLink, PullTextFacts, choose_title, render_section, render_title, renew_body, wrap_section,
};

/// Largest number of commits that are counted.
const COMMITS_MAX: usize = 10_000;

pub(crate) struct Publisher<'a> {
    pub(crate) access: &'a ForgeAccess,
    pub(crate) log: &'a OperationLog,
    pub(crate) redactor: &'a Redactor,
    pub(crate) url: &'a str,
    /// The title that an earlier run gave the pull request.
    pub(crate) title_before: Option<&'a str>,
}

impl Publisher<'_> {
    /// Pushes `commit` and opens or updates the pull request. Each intent is recorded first, and both steps can be
    /// repeated. A transient failure is returned beside the result.
    pub(crate) async fn publish(
        &self,
        repo: &SealedRepo,
        meta: &BottleRunRecord,
        commit: &Sha,
    ) -> Result<(Publication, Option<Failure>), Failure> {
        if let Some(problem) = self.find_missing_issue().await? {
            let publication = Publication {
                commit: commit.clone(),
                pushed: false,
                branch: meta.pins.branch.clone(),
                problem: Some(problem),
                pull: None,
                pull_text: None,
                note: None,
            };
            return Ok((publication, None));
        }
        let push = Push {
            repo,
            url: self.url,
            branch: meta.pins.branch.clone(),
            commit,
            update: BranchUpdate::FastForward,
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

    /// Says that the issue was deleted or moved while the agent worked: a pull request for it would be for nothing.
    async fn find_missing_issue(&self) -> Result<Option<String>, Failure> {
        let number = self.access.env.issue;
        match self.access.open().await?.read_issue(number).await {
            Err(ForgeError::NotFound { .. }) => {
                Ok(Some(format!("issue #{number} is gone; the work is kept in the bottle")))
            }
            // What else is wrong is found when the pull request is opened.
            Ok(_) | Err(_) => Ok(None),
        }
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
                let PullRequest { number, url, .. } = opened;
                sent.pull = Some(PullReference { number, url, title: text.pull.title });
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

    /// Opens the pull request, or rewrites our section of the existing one. Text of people stays.
    async fn write_pull(&self, text: &PullDraft) -> Result<PullRequest, Failure> {
        let forge = self.access.open().await?;
        let renew = |there: &PullRequest| self.renew(there, text);
        open_pull(&forge, &text.pull, renew).await.or_general()
    }

    /// Rewrites our section of an existing pull request; `None` if nothing changes.
    fn renew(&self, there: &PullRequest, text: &PullDraft) -> Option<PullRenewal> {
        let link = match closes_issue(&there.body, self.access.env.issue) {
            true => IssueLink::Kept,
            false => IssueLink::Lost,
        };
        let body = renew_body(&there.body, &text.section, link);
        let body = body.unwrap_or_else(|| there.body.clone());
        let title = choose_title(&there.title, self.title_before, &text.pull.title);
        let same = (title, body.trim_end()) == (there.title.as_str(), there.body.trim_end());
        (!same).then(|| PullRenewal { title: title.to_owned(), body })
    }

    /// Renders the text. Everything in it is redacted first: the marks that make a text inert would hide a secret.
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
        let redacted = |text: &str| self.redactor.redact(text).into_owned();
        let commits: Vec<NewCommit> = commits
            .into_iter()
            .map(NewCommit::from)
            .map(|commit| NewCommit { subject: redacted(&commit.subject), ..commit })
            .collect();
        let summary = summary.or(answer).map(redacted);
        let issue_title = redacted(meta.issue_title.as_deref().unwrap_or_default());
        let facts = PullTextFacts {
            issue,
            issue_title: &issue_title,
            summary: summary.as_deref(),
            commits: &commits,
        };
        let section = render_section(&facts);
        let pull = NewPull {
            title: render_title(&facts),
            body: wrap_section(&section),
            head: sent.branch.clone(),
            base: meta.pins.base_branch.clone(),
        };
        Ok(PullDraft { pull, section })
    }

    fn note(&self, op: &str, target: &str, outcome: OperationOutcome) -> Result<(), Failure> {
        self.log.append(&Operation::new(op, target, outcome)).or_general().map(drop)
    }
}

/// Text for the pull request, before it is known whether it exists.
struct PullDraft {
    pull: NewPull,
    /// Our section of the body.
    section: String,
}
