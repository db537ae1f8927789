//! Publishes a good result: the bottle's branch, never by force, and its pull request, once.

use engine::evidence::NewCommit;
use engine::publish::{Publication, PullReference};
use engine::run::{Push, Pushed};
use forge::{ForgeError, ForgeKind, NewPull, PullRequest, closes_issue};
use host::git::{BranchUpdate, PushUrls, SealedRepo};
use model::id::Sha;
use model::redact::Redactor;
use run_store::operation_log::{Operation, OperationLog, OperationOutcome};
use shell::agent_facts::AgentFacts;
use shell::pull::{PullRenewal, open_pull};

use super::access::ForgeAccess;
use super::issue_row::IssueRows;
use super::run_record::BottleRunRecord;
use crate::exit::{Failure, OrGeneral};
use crate::rules::check_text::CheckRecord;
use crate::rules::code_owners::{OWNERS_PATHS, find_owners};
use crate::rules::judge::Verdict;
use crate::rules::pull_template::{TEMPLATE_PATHS, fill_template};
use crate::rules::pull_text::{
    ChangeSize, IssueLink, PullTextFacts, RunLine, choose_title, render_section, render_title,
    renew_body, wrap_section,
};

/// Bytes of a template or a list of owners that are read.
const FILE_CAP: usize = 64 << 10;

/// Largest number of commits that are counted.
const COMMITS_MAX: usize = 10_000;

pub(crate) struct Publisher<'a> {
    pub(crate) access: &'a ForgeAccess,
    pub(crate) log: &'a OperationLog,
    pub(crate) redactor: &'a Redactor,
    pub(crate) urls: &'a PushUrls,
    /// The lease under which it publishes.
    pub(crate) rows: IssueRows<'a>,
    /// The title that an earlier run gave the pull request.
    pub(crate) title_before: Option<&'a str>,
    /// Address of the page that people open.
    pub(crate) public_url: Option<&'a str>,
    /// True if an existing pull request keeps its text: the host merged, and no agent said anything.
    pub(crate) keep_text: bool,
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
        self.rows.check_lease()?;
        let push = Push {
            repo,
            url: &self.urls.first,
            more_urls: &self.urls.more,
            branch: meta.pins.branch.clone(),
            commit,
            update: BranchUpdate::FastForward,
            claim: self.rows.forge_claim(self.access.env.issue)?,
            env: self.access.git_env(),
        };
        let Pushed { publication: mut sent, unreachable, was_overtaken } =
            push.run(self.log, self.redactor).await.or_general()?;
        if was_overtaken {
            return Err(self.rows.note_overtaken());
        }
        if !sent.pushed {
            let transient = unreachable.then(|| Failure::transient("origin could not be reached"));
            return Ok((sent, transient));
        }
        let text = self.pull_text(repo, meta, &sent).await?;
        let transient = self.open_pull(text, &mut sent).await?;
        if let (Some(pull), None) = (&sent.pull, meta.forge.as_ref().and_then(|env| env.pull)) {
            sent.note = self.add_people(repo, meta, pull.number).await?;
        }
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
        self.rows.check_lease()?;
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
                sent.add_problem(self.redactor.redact(&error.to_string()).into_owned());
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
        if self.keep_text {
            return None;
        }
        let link = match closes_issue(&there.body, self.access.env.issue) {
            true => IssueLink::Kept,
            false => IssueLink::Lost,
        };
        let body = renew_body(&there.body, &text.section, link);
        let body = body.unwrap_or_else(|| there.body.clone());
        let title = choose_title(&there.title, self.title_before, &text.pull.title);
        let same = (title, body.trim_end()) == (there.title.as_str(), there.body.trim_end());
        let draft = text.pull.draft;
        (!same || draft != there.draft).then(|| PullRenewal {
            title: title.to_owned(),
            body,
            draft: Some(draft),
        })
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
        let check = meta.check.as_ref().map(|check| redact_check(check, self.redactor));
        let patch = repo.whole_patch(&meta.pins.base, &sent.commit).await.or_general()?;
        let words = self.run_words(meta);
        let facts = PullTextFacts {
            issue,
            issue_title: &issue_title,
            summary: summary.as_deref(),
            commits: &commits,
            check: check.as_ref(),
            size: Some(ChangeSize::of_patch(&patch)),
            run: Some(words.line(meta)),
        };
        let section = render_section(&facts);
        let ours = wrap_section(&section);
        let template = read_first(repo, &meta.pins.base, &TEMPLATE_PATHS).await?;
        let pull = NewPull {
            title: render_title(&facts),
            body: template.map_or_else(|| ours.clone(), |template| fill_template(&template, &ours)),
            head: sent.branch.clone(),
            base: meta.pins.base_branch.clone(),
            draft: matches!(meta.verdict, Some(Verdict::Draft { .. })),
        };
        Ok(PullDraft { pull, section })
    }

    /// Facts about the run in words.
    fn run_words(&self, meta: &BottleRunRecord) -> RunWords {
        let (exit, result) = (meta.agent_box.as_ref(), meta.agent_result.as_ref());
        let model = meta.manifest.model.as_deref();
        let facts = AgentFacts { model, exit, result };
        let page =
            |url: &str| format!("{}/runs/{}/{}", url.trim_end_matches('/'), meta.slug, meta.run);
        RunWords {
            took: exit.map(|exit| round_minutes(exit.wall_ms)),
            cost: facts.cost(),
            page: self.public_url.map(page),
        }
    }

    /// Asks the owners of the changed files for a review, and gives a new pull request its labels and assignees. What a
    /// forge refuses is a note: the pull request is there.
    async fn add_people(
        &self,
        repo: &SealedRepo,
        meta: &BottleRunRecord,
        pull: u64,
    ) -> Result<Option<String>, Failure> {
        let env = &self.access.env;
        let forge = self.access.open().await?;
        let target = format!("{}/{} #{pull}", env.owner, env.repo);
        let mut problems = Vec::new();
        let labels = &meta.manifest.pull_labels;
        let assignees = match forge.read_issue(env.issue).await {
            Ok(issue) => issue.assignees,
            Err(_) => Vec::new(),
        };
        let bot = self.access.bot_login.clone();
        let bot = match bot {
            Some(login) => Some(login),
            None => forge.whoami().await.ok().and_then(|account| account.login),
        };
        let is_bot =
            |login: &String| bot.as_ref().is_some_and(|bot| bot.eq_ignore_ascii_case(login));
        let people: Vec<String> = assignees.into_iter().filter(|login| !is_bot(login)).collect();
        // A Gitea asks the owners itself, by patterns of another kind.
        let owners = match forge.kind() {
            ForgeKind::GitHub | ForgeKind::GitLab => self.owners(repo, meta).await?,
            ForgeKind::Gitea | ForgeKind::Folder => Vec::new(),
        };
        let owners: Vec<String> = owners.into_iter().filter(|login| !is_bot(login)).collect();
        for (op, names) in
            [("pull.labels", labels), ("pull.assignees", &people), ("pull.reviewers", &owners)]
        {
            if names.is_empty() {
                continue;
            }
            self.rows.check_lease()?;
            let what = format!("{target} {}", names.join(", "));
            self.note(op, &what, OperationOutcome::Intended)?;
            let done = match op {
                "pull.labels" => forge.add_labels(pull, names).await,
                "pull.assignees" => forge.add_assignees(pull, names).await,
                _ => forge.request_reviewers(pull, names).await,
            };
            let outcome =
                if done.is_ok() { OperationOutcome::Done } else { OperationOutcome::Failed };
            self.note(op, &what, outcome)?;
            problems.extend(
                done.err().map(|error| self.redactor.redact(&error.to_string()).into_owned()),
            );
        }
        Ok((!problems.is_empty()).then(|| problems.join("; ")))
    }

    /// Owners of the changed files, by the file of the base branch.
    async fn owners(
        &self,
        repo: &SealedRepo,
        meta: &BottleRunRecord,
    ) -> Result<Vec<String>, Failure> {
        let pins = &meta.pins;
        let text = read_first(repo, &pins.base, &OWNERS_PATHS).await?;
        let (Some(text), Some(tip)) = (text, meta.tip()) else { return Ok(Vec::new()) };
        let changed = repo.changed_entries(&pins.base, &tip).await.or_general()?;
        let changed: Vec<Vec<u8>> = changed.into_iter().map(|entry| entry.path).collect();
        Ok(find_owners(&text, &changed))
    }

    fn note(&self, op: &str, target: &str, outcome: OperationOutcome) -> Result<(), Failure> {
        self.log.append(&Operation::new(op, target, outcome)).or_general().map(drop)
    }
}

/// Facts about a run in words.
struct RunWords {
    took: Option<String>,
    cost: Option<String>,
    page: Option<String>,
}

impl RunWords {
    fn line<'a>(&'a self, meta: &'a BottleRunRecord) -> RunLine<'a> {
        RunLine {
            agent: &meta.agent,
            model: meta.manifest.model.as_deref(),
            took: self.took.as_deref(),
            cost: self.cost.as_deref(),
            page: self.page.as_deref(),
        }
    }
}

/// Time in whole minutes: seconds would say more about the machine than about the work.
fn round_minutes(millis: u64) -> String {
    match millis / 60_000 {
        0 => "under a minute".to_owned(),
        1 => "1 minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    }
}

fn redact_check(check: &CheckRecord, redactor: &Redactor) -> CheckRecord {
    let mut check = check.clone();
    check.summary.tail = redactor.redact(&check.summary.tail).into_owned();
    check
}

/// Text of the first of these files that a commit has.
async fn read_first(
    repo: &SealedRepo,
    commit: &Sha,
    paths: &[&str],
) -> Result<Option<String>, Failure> {
    let asked: Vec<&[u8]> = paths.iter().map(|path| path.as_bytes()).collect();
    let entries = repo.entries_at(commit, &asked).await.or_general()?;
    let Some(entry) = asked.iter().find_map(|path| entries.get(*path)) else { return Ok(None) };
    let blobs = repo.read_blobs(std::slice::from_ref(&entry.id), FILE_CAP).await.or_general()?;
    let blob = blobs.into_iter().flatten().next();
    Ok(blob.map(|blob| String::from_utf8_lossy(&blob.bytes).into_owned()))
}

/// Text for the pull request, before it is known whether it exists.
struct PullDraft {
    pull: NewPull,
    /// Our section of the body.
    section: String,
}
