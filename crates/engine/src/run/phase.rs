//! The phases of a run, each done once, and the push that publishing consists of: its intent is in the log first, and
//! origin is asked about a push that did not clearly succeed.

use std::time::Duration;

use host::file::mask_tree;
use host::git::{
    BranchUpdate, GitError, PushFence, PushOutcome, PushSpec, RaisedFence, RemoteBranch,
    SealedRepo, UserEnv, push_problem,
};
use model::error_chain;
use model::id::{BranchName, Sha};
use model::redact::{Redactor, SecretMask};
use run_store::StoreError;
use run_store::operation_log::{Operation, OperationLog, OperationOutcome};
use serde_json::json;

use super::{PLAN_FILE, Phase, Product, RunError, save};
use crate::agent_result::agent_result;
use crate::evidence::{self, Bounds};
use crate::export::{ExportRequest, Exported, export, find_uncommitted};
use crate::launch::{BoxStatus, box_status};
use crate::publish::Publication;
use crate::report::report_egress;
use crate::sweep::sweep_orphans;
use crate::terminal::AttachedTerminal;
use crate::workspace::AGENT_IDENTITY;

const PUSH_LIMIT: Duration = Duration::from_secs(300);

const QUERY_LIMIT: Duration = Duration::from_secs(60);

/// Pauses before the questions about a push whose answer was lost: the server may still be at work on it.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(2)];

/// Runs all phases that are left, to the end. Orphaned containers are removed first: one of them may still work in the
/// workspace of this run.
pub async fn advance<P: Product>(mut product: P) -> Result<P::Status, P::Failure> {
    sweep_orphans(product.run().boxes.backend, product.reporter()).await.or_fail::<P>()?;
    loop {
        let next = match product.run().record.phase {
            Phase::Pinned => product.prepare().await?,
            Phase::Prepared => set_up(&mut product).await?,
            Phase::SetUp => launch(&mut product).await?,
            Phase::Launched => wait(&mut product).await?,
            Phase::Ended => import(&mut product).await?,
            Phase::Imported => {
                product.reporter().phase("judge", "verifying against the pinned commits");
                let verdict = product.judge().await?;
                product.run_mut().record.verdict = Some(verdict);
                Phase::Judged
            }
            Phase::Judged => {
                product.check().await?;
                Phase::Checked
            }
            Phase::Checked => {
                product.publish().await?;
                Phase::Published
            }
            Phase::Published | Phase::Closed => return close(product).await,
        };
        let run = product.run_mut();
        run.record.phase = next;
        save::<P>(&run.dir, &run.redactor, &run.record).or_fail::<P>()?;
        host::failpoint::hit(&format!("{next:?}").to_lowercase());
    }
}

/// Runs the repository's own set-up in the workspace, before the agent.
async fn set_up<P: Product>(product: &mut P) -> Result<Phase, P::Failure> {
    if let Some(command) = product.setup_command() {
        product.reporter().phase("setup", "running the set-up in a box");
        let run = product.run();
        let layout = run.layout("setup", command.timeout_secs).or_fail::<P>()?;
        let summary = run.run_line(layout, &command.line).await.or_fail::<P>()?;
        let event = json!({"name": "setup", "ended": summary.ended});
        product.reporter().event("box_command", &event);
        let failed = (!summary.passed()).then(|| product.setup_failed(&summary));
        let record = &mut product.run_mut().record;
        record.setup = Some(summary);
        if let Some(verdict) = failed {
            record.verdict = Some(verdict);
            return Ok(Phase::Checked);
        }
    }
    product.after_setup().await?;
    Ok(Phase::SetUp)
}

/// Starts the agent's box, unless it was started before.
async fn launch<P: Product>(product: &mut P) -> Result<Phase, P::Failure> {
    let run = product.run();
    let agent_run = run.agent_run().or_fail::<P>()?;
    if box_status(&agent_run.box_dir()).or_fail::<P>()? != BoxStatus::NeverStarted {
        return Ok(Phase::Launched);
    }
    let (provider, backend, secs) = (&run.plan.provider, run.boxes.backend, run.boxes.agent_secs);
    let message = format!("starting {provider} in a sealed {backend} box, {secs} s");
    product.reporter().phase("launch", &message);
    let spec = agent_run.spec();
    let sealed = json!({
        "backend": backend, "argv": spec.argv, "limits": spec.limits, "relays": spec.relays,
        "terminal": spec.terminal,
    });
    let intent = Operation::new("launch", "agent", OperationOutcome::Intended).with_detail(sealed);
    if !product.launch_is_logged()? {
        run.operations().and_then(|log| log.append(&intent)).or_fail::<P>()?;
    }
    product.before_launch().await?;
    host::failpoint::hit("served");
    let run = product.run();
    let agent_run = run.agent_run().or_fail::<P>()?;
    // A process that continues after a killed one may have no terminal; the box then notices that the other end is gone.
    let terminal = match &run.plan.terminal {
        Some(_) if host::terminal::is_present() => {
            product.reporter().release_terminal();
            let mask = SecretMask::new(&run.secrets);
            let opened = AttachedTerminal::open(&agent_run.box_dir(), mask);
            Some(opened.map_err(RunError::Terminal).or_fail::<P>()?)
        }
        Some(_) | None => None,
    };
    agent_run.start(&run.launcher().or_fail::<P>()?).or_fail::<P>()?;
    let run = product.run_mut();
    run.terminal = terminal;
    run.snapshot.begin();
    Ok(Phase::Launched)
}

/// Waits for the agent's box and records its exit.
async fn wait<P: Product>(product: &mut P) -> Result<Phase, P::Failure> {
    let box_dir = product.run().agent_run().or_fail::<P>()?.box_dir();
    if box_status(&box_dir).or_fail::<P>()? == BoxStatus::NeverStarted {
        return Ok(Phase::SetUp);
    }
    let exit = product.attend().await?;
    let (record, report) = (exit.record, exit.report);
    report_egress(product.reporter(), &record);
    let ended = json!({"ended": record.ended, "wall_ms": record.wall_ms});
    let operation = Operation::new("box", "agent", OperationOutcome::Done).with_detail(ended);
    let run = product.run_mut();
    run.operations().and_then(|log| log.append(&operation)).or_fail::<P>()?;
    let waiting = record.egress.as_ref().and_then(|report| report.usage.waiting_until);
    run.record.agent_result = Some(agent_result(&report, waiting));
    let event = json!({"ended": record.ended, "ready_ms": record.ready_ms});
    run.record.agent_box = Some(record);
    product.reporter().event("box", &event);
    product.after_box().await?;
    Ok(Phase::Ended)
}

/// Imports the agent's commits through a box into a repository of the host, and gathers the evidence about them.
async fn import<P: Product>(product: &mut P) -> Result<Phase, P::Failure> {
    let ended = product.run().record.agent_box.as_ref().map(|record| &record.ended);
    if !ended.is_some_and(P::has_work) {
        return Ok(Phase::Imported);
    }
    product.reporter().phase("import", "importing the agent's commits from the box");
    let run = product.run();
    let source = product.import_source();
    let repo = run.make_import_repo(&source).await.or_fail::<P>()?;
    let request = ExportRequest {
        run: run.dir.id(),
        agent_box: &run.agent_run().or_fail::<P>()?.spec(),
        branch: &source.branch,
        known: &[source.pins.base.clone(), source.pins.upstream.clone()],
        lists_uncommitted: true,
    };
    let launcher = run.launcher().or_fail::<P>()?;
    let attempt = run.dir.next_box("export");
    let exported = export(&launcher, &request, &repo, attempt).await.or_fail::<P>()?;
    let uncommitted = find_uncommitted(&request, attempt).or_fail::<P>()?;
    let branch = source.branch.clone();
    product.run_mut().record.uncommitted = uncommitted;
    let refused = match exported {
        Exported::Tip(tip) => {
            gather_agent_evidence(product, &repo, &tip).await?;
            None
        }
        Exported::NothingNew => None,
        Exported::NoBranch => Some(format!("the branch '{branch}' is gone")),
        Exported::Refused(reason) => Some(reason),
    };
    product.run_mut().record.import_refused = refused;
    Ok(Phase::Imported)
}

/// Gathers the evidence about the agent's commits. Strangers are looked for among the commits as the box made them; all other
/// facts are about the commits that are published.
async fn gather_agent_evidence<P: Product>(
    product: &mut P,
    repo: &SealedRepo,
    tip: &Sha,
) -> Result<(), P::Failure> {
    let Some(user) = product.attribution().cloned() else {
        return gather_evidence(product, repo, tip, AGENT_IDENTITY).await;
    };
    let pins = product.import_source().pins;
    let Ok(strangers) = evidence::find_strangers(repo, &pins, tip, AGENT_IDENTITY).await else {
        // The evidence says what is wrong with the result.
        return gather_evidence(product, repo, tip, AGENT_IDENTITY).await;
    };
    let agent = product.run().plan.provider.clone();
    let tip = user.rewrite(repo, &pins, tip, &agent).await.or_fail::<P>()?;
    let who = user.identity();
    gather_evidence(product, repo, &tip, (&who.name, &who.email)).await?;
    if let Some(evidence) = &mut product.run_mut().record.evidence {
        evidence.note_strangers(strangers);
    }
    Ok(())
}

/// Gathers the evidence about a commit of the agent or of the host.
pub async fn gather_evidence<P: Product>(
    product: &mut P,
    repo: &SealedRepo,
    tip: &Sha,
    identity: (&str, &str),
) -> Result<(), P::Failure> {
    let pins = product.import_source().pins;
    let found = evidence::gather(repo, &pins, tip, &[identity], Bounds::default()).await;
    let found = found.or_fail::<P>()?;
    let too_large = found.too_large;
    product.run_mut().record.evidence = Some(found);
    // Git would take as long over such a result as the agent wants.
    if too_large { Ok(()) } else { product.inspect(repo, tip).await }
}

/// Push of a judged commit to origin.
#[derive(Debug)]
pub struct Push<'a> {
    pub repo: &'a SealedRepo,
    pub url: &'a str,
    /// Further addresses that get the branch once it is at the first.
    pub more_urls: &'a [String],
    pub branch: BranchName,
    pub commit: &'a Sha,
    pub update: BranchUpdate<'a>,
    /// The claim under which it pushes, where others may claim the same issue: the forge refuses an older one.
    pub claim: Option<ForgeClaim>,
    /// The environment of the user whose credentials are used.
    pub env: UserEnv,
}

/// Claim on an issue, as the forge knows it.
#[derive(Debug, Clone, Copy)]
pub struct ForgeClaim {
    pub issue: u64,
    pub number: u64,
}

/// Reason for which nothing was pushed under a claim.
const NEWER_CLAIM: &str = "origin has a newer claim of this issue: another host works on it now";

/// Result of a [`Push`].
#[derive(Debug)]
pub struct Pushed {
    /// So far without a pull request.
    pub publication: Publication,
    /// True if it is unknown whether the branch arrived: a retry may help.
    pub unreachable: bool,
    /// True if origin has a newer claim of the issue.
    pub was_overtaken: bool,
}

/// Result of a push to one address.
struct Sent {
    problem: Option<String>,
    /// True if it is unknown whether the branch arrived.
    unreachable: bool,
    was_overtaken: bool,
}

impl Sent {
    fn failed(problem: String) -> Self {
        Self { problem: Some(problem), unreachable: false, was_overtaken: false }
    }
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
        let Sent { mut problem, unreachable, was_overtaken } =
            self.run_first(log, redactor).await?;
        let pushed = problem.is_none();
        if pushed {
            problem = self.run_at_others(log, redactor).await?;
        }
        let publication = Publication {
            commit: self.commit.clone(),
            pushed,
            branch: self.branch,
            problem,
            pull: None,
            pull_text: None,
            note: None,
        };
        Ok(Pushed { publication, unreachable, was_overtaken })
    }

    /// Pushes to the first address, whose fence decides between claims.
    async fn run_first(&self, log: &OperationLog, redactor: &Redactor) -> Result<Sent, StoreError> {
        let fence = match self.raise_fence(log, redactor).await? {
            Ok(fence) => fence,
            Err(sent) => return Ok(sent),
        };
        let sent = self.run_at(self.url, (self.update, fence), log, redactor).await?;
        if sent.problem.is_some() && fence.is_some() {
            // A takeover since then is the reason that people need to know.
            match self.raise_fence(log, redactor).await? {
                Err(overtaken) if overtaken.was_overtaken => return Ok(overtaken),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(sent)
    }

    /// Brings the fence of the issue to the claim; `Err` if nothing may be pushed under it.
    async fn raise_fence(
        &self,
        log: &OperationLog,
        redactor: &Redactor,
    ) -> Result<Result<Option<PushFence>, Sent>, StoreError> {
        let Some(ForgeClaim { issue, number }) = self.claim else { return Ok(Ok(None)) };
        let operation =
            |outcome| Operation::new("fence", format!("#{issue} claim {number}"), outcome);
        log.append(&operation(OperationOutcome::Intended))?;
        let env = self.env.clone();
        let raised = self.repo.raise_fence(self.url, (issue, number), env, QUERY_LIMIT).await;
        host::failpoint::hit("fenced");
        let (outcome, result) = match raised {
            Ok(RaisedFence::Held(value)) => {
                (OperationOutcome::Done, Ok(Some(PushFence { issue, value })))
            }
            Ok(RaisedFence::Newer(_)) => {
                let problem = Some(NEWER_CLAIM.to_owned());
                let sent = Sent { problem, unreachable: false, was_overtaken: true };
                (OperationOutcome::Refused, Err(sent))
            }
            Ok(RaisedFence::Rejected { reason }) => {
                let text = format!("origin rejected the fence of the issue: {reason}");
                (OperationOutcome::Failed, Err(Sent::failed(redactor.redact(&text).into_owned())))
            }
            Err(error) => {
                let problem = redactor.redact(&error.to_string()).into_owned();
                let sent = Sent { unreachable: true, ..Sent::failed(problem) };
                (OperationOutcome::Failed, Err(sent))
            }
        };
        log.append(&operation(outcome))?;
        Ok(result)
    }

    /// Pushes to the further addresses. As with git, one that fails does not keep the branch from the next.
    async fn run_at_others(
        &self,
        log: &OperationLog,
        redactor: &Redactor,
    ) -> Result<Option<String>, StoreError> {
        let mut problems = Vec::new();
        for (at, url) in self.more_urls.iter().enumerate() {
            let update = self.update_at(url).await;
            let Sent { problem, .. } = self.run_at(url, (update, None), log, redactor).await?;
            let (number, count) = (at + 2, self.more_urls.len() + 1);
            problems.extend(problem.map(|it| format!("push address {number} of {count}: {it}")));
        }
        Ok((!problems.is_empty()).then(|| problems.join("; ")))
    }

    /// A further address may lack the branch that the push replaces at the first one.
    async fn update_at(&self, url: &str) -> BranchUpdate<'_> {
        let env = self.env.clone();
        match self.repo.remote_branch(url, &self.branch, env, QUERY_LIMIT).await {
            Ok(RemoteBranch::Absent) => BranchUpdate::FastForward,
            Ok(RemoteBranch::At(_)) | Err(_) => self.update,
        }
    }

    /// Pushes to one address.
    async fn run_at(
        &self,
        url: &str,
        (update, fence): (BranchUpdate<'_>, Option<PushFence>),
        log: &OperationLog,
        redactor: &Redactor,
    ) -> Result<Sent, StoreError> {
        let Self { repo, branch, commit, env, .. } = self;
        let operation = |outcome| Operation::new("push", format!("{branch} {commit}"), outcome);
        log.append(&operation(OperationOutcome::Intended))?;
        let spec = PushSpec { url, branch, commit, update, fence };
        let pushed = repo.push(spec, env.clone(), PUSH_LIMIT).await;
        host::failpoint::hit("pushed");
        let failure = push_problem(&pushed).map(|text| redactor.redact(&text).into_owned());
        let (problem, unreachable) = match failure {
            None => (None, false),
            Some(failure) => match self.ask_origin(url, &pushed).await {
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
        Ok(Sent { problem, unreachable, was_overtaken: false })
    }

    /// Asks origin about a push that did not clearly succeed. A rejection is final; after any other failure the server may
    /// still be at work.
    async fn ask_origin(&self, url: &str, pushed: &Result<PushOutcome, GitError>) -> Arrival {
        let questions = if pushed.is_ok() { 1 } else { PAUSES.len() };
        for pause in PAUSES.iter().take(questions) {
            tokio::time::sleep(*pause).await;
            let env = self.env.clone();
            match self.repo.remote_branch(url, &self.branch, env, QUERY_LIMIT).await {
                Ok(RemoteBranch::At(tip)) if tip == *self.commit => return Arrival::Arrived,
                Ok(RemoteBranch::At(_) | RemoteBranch::Absent) => {}
                Err(error) => return Arrival::Unknown(error),
            }
        }
        Arrival::Missing
    }
}

async fn close<P: Product>(mut product: P) -> Result<P::Status, P::Failure> {
    let (status, code) = product.before_close().await?;
    let run = product.run_mut();
    run.record.phase = Phase::Closed;
    run.record.finished_at = Some(host::clock::now());
    run.record.exit_status = Some(code);
    run.record.operations_head = Some(run.operations().or_fail::<P>()?.head().head);
    run.snapshot.save(&run.dir, &run.redactor).await.or_fail::<P>()?;
    run.remove_lock();
    mask_harness_state(&product).await;
    let run = product.run_mut();
    run.dir.close(&run.redactor, &run.record).or_fail::<P>()?;
    host::failpoint::hit("closed");
    product.after_close().await;
    Ok(status)
}

/// Masks secrets in the agent's own files once more: a shim that was killed has not done it.
async fn mask_harness_state<P: Product>(product: &P) {
    let run = product.run();
    let (state, plan) = (run.boxes.harness_state.clone(), run.dir.path().join(PLAN_FILE));
    let mask = SecretMask::new(&run.secrets);
    let masked = tokio::task::spawn_blocking(move || mask_tree(&state, &mask, &plan));
    if let Ok(Err(error)) = masked.await {
        product.reporter().note(&error_chain(&error));
    }
}

trait OrFail<T> {
    fn or_fail<P: Product>(self) -> Result<T, P::Failure>;
}

impl<T, E: Into<RunError>> OrFail<T> for Result<T, E> {
    fn or_fail<P: Product>(self) -> Result<T, P::Failure> {
        self.map_err(|error| P::failure(error.into()))
    }
}
