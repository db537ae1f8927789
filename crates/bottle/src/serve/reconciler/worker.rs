//! A worker: runs or removes one bottle, on a thread of its own. Everything that matters is on disk, so after a crash the
//! next worker continues: an open run is finished, and a closed one is not repeated.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use engine::agent_result::AgentClaim;
use host::signal::{Cancel, CancelReason};
use jiff::Timestamp;
use model::exit::BottleExit;
use orchestrator_db::{BottleState, IssueKey, WorkItem, WorkRequest, WorkState};
use shell::Ui;
use shell::runtime::COMMAND_STACK_BYTES;
use tokio::sync::mpsc;

use super::status::summarize;
use crate::commands::block_on;
use crate::exit::{Failure, OrGeneral};
use crate::flow::access::ForgeAccess;
use crate::flow::bottle::{Bottle, Record};
use crate::flow::bottle_place::{place_of_issue, place_of_row};
use crate::flow::check::repair_prompt;
use crate::flow::context::{RunContext, TransientFailure};
use crate::flow::end::{Loss, destroy};
use crate::flow::issue_row::IssueRows;
use crate::flow::lease::Lease;
use crate::flow::merged_branch::remove_merged_branch;
use crate::flow::observe::BaseRequest;
use crate::flow::open::{self, NextRun, PromptRequest, RunClaim, StartRequest};
use crate::flow::recover::{freeze_if_idle, recover};
use crate::flow::run_record::load_run;
use crate::flow::spending::{RunBudget, settle_issue};
use crate::flow::travel::{bring_here, save_claimed};
use crate::flow::wake::{WakePrompt, wake_prompt};
use crate::rules::bottle_place::{BottlePlace, explain_absence};
use crate::rules::budget::BudgetReason;
use crate::rules::closed_run::{AfterRun, ClosedRun, judge_closed_run};
use crate::rules::judge::Verdict;
use crate::rules::lease::LEASE_LOST;
use crate::serve::Service;
use crate::serve::repos::Repo;

const START_PROMPT: &str = "Do what the issue that is assigned to you asks for. If it cannot be done without a decision \
                            of a person, ask for it in a comment and say that you are blocked.";

/// Prompt of a resumed bottle, unless a user gives one.
const RESUME_PROMPT: &str =
    "People have answered. Read what is new in the conversation and act on it.";

/// Pause after a quota whose end is unknown.
const UNKNOWN_QUOTA: Duration = Duration::from_secs(900);

pub(super) enum Job {
    Run(Box<WorkItem>),
    Destroy { work: Box<WorkItem>, loss: Loss },
}

impl Job {
    pub(super) fn work(&self) -> &WorkItem {
        match self {
            Self::Run(work) | Self::Destroy { work, .. } => work,
        }
    }
}

pub(super) struct JobResult {
    pub(super) key: IssueKey,
    pub(super) slug: Option<String>,
    pub(super) outcome: JobOutcome,
}

pub(super) enum JobOutcome {
    Closed(AfterRun),
    /// Nothing had to be done, for this reason.
    Unneeded(String),
    /// A person stopped it before anything ran.
    Stopped,
    Failed(Failure),
    /// A budget has no room for a further run of this claim.
    OverBudget(BudgetReason),
    Destroyed,
    NotDestroyed(Failure),
}

/// Starts a worker, which sends its result when it ends.
pub(super) fn start(
    service: &Arc<Service>,
    job: Job,
    (cancel, lease): (Cancel, Arc<Lease>),
    results: mpsc::UnboundedSender<JobResult>,
) {
    let (service, unstarted) = (Arc::clone(service), results.clone());
    let WorkItem { key, slug, .. } = job.work().clone();
    let worker = thread::Builder::new().stack_size(COMMAND_STACK_BYTES);
    let started = worker.spawn(move || {
        let work = job.work().clone();
        let IssueKey { owner, repo, issue_number } = &work.key;
        let span =
            tracing::info_span!("work", owner, repo, issue = issue_number, claim = work.claims);
        let _inside = span.entered();
        // A panic must not leave the issue claimed for ever.
        let (begun, is_run) = (host::clock::monotonic(), matches!(job, Job::Run(_)));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            perform(&service, job, &cancel, &lease)
        }));
        let (slug, outcome) = done.unwrap_or_else(|_| {
            let failure = Failure::new(BottleExit::Internal, "a worker panicked");
            (work.slug.clone(), JobOutcome::Failed(failure))
        });
        if is_run {
            service.vitals.record_run(begun.elapsed());
        }
        // The receiver is gone when the process ends; the next one reads the disk.
        drop(results.send(JobResult { key: work.key, slug, outcome }));
    });
    if let Err(error) = started {
        let words = format!("no thread could be started for it: {error}");
        let outcome = JobOutcome::Failed(Failure::new(BottleExit::General, words));
        drop(unstarted.send(JobResult { key, slug, outcome }));
    }
}

/// Performs a job; the bottle's name goes with its outcome.
fn perform(
    service: &Service,
    job: Job,
    cancel: &Cancel,
    lease: &Lease,
) -> (Option<String>, JobOutcome) {
    let rows = IssueRows::of_claim(&service.home, lease);
    match job {
        Job::Run(work) => {
            let budget = Arc::new(RunBudget::new(service.settings().budget.clone()));
            let ran = run(service, rows, &work, &budget, cancel);
            // Also after a failure: another host may have the next claim.
            let saved = save(service, rows, &work, cancel);
            let Service { home, host, store, .. } = service;
            if let Err(failure) = settle_issue(home, host, &**store, &work.key) {
                tracing::warn!(%failure, "what was spent is settled later");
            }
            // A run makes its bottle, also where it fails later.
            let bottle = find_or_clean_up(service, rows, &work);
            let found = bottle.as_ref().ok().and_then(Option::as_ref).cloned();
            let slug = found.as_ref().map(|(bottle, _)| bottle.slug().to_string());
            let ran = match ran {
                // The run of this claim is over, whatever failed after it: a new claim would run it once more.
                Err(failure) if is_over(bottle.as_ref().ok().and_then(Option::as_ref), &work) => {
                    tracing::warn!(%failure, "failed after the run was closed");
                    Ok(RunEnd::Ran)
                }
                ran => ran,
            };
            let ended = match saved.and(ran) {
                Ok(RunEnd::Unneeded(reason)) => Ok(JobOutcome::Unneeded(reason)),
                Ok(RunEnd::Stopped) => Ok(JobOutcome::Stopped),
                Ok(RunEnd::Ran) => {
                    bottle.and_then(|it| judge_last_run(it, cancel)).map(JobOutcome::Closed)
                }
                Err(failure) => match budget.refused() {
                    Some(reason) => Ok(JobOutcome::OverBudget(reason)),
                    None => Err(failure),
                },
            };
            let ended = ended.unwrap_or_else(JobOutcome::Failed);
            if let Some((bottle, record)) = found
                && let Err(failure) = save_summary(rows, &bottle, record, &ended)
            {
                tracing::warn!(%failure, "other hosts know of the bottle what was stored before");
            }
            (slug, ended)
        }
        Job::Destroy { work, loss } => match remove(service, rows, &work, loss) {
            Ok(()) => (work.slug, JobOutcome::Destroyed),
            Err(failure) => (work.slug, JobOutcome::NotDestroyed(failure)),
        },
    }
}

/// Stores what other hosts need to know of a bottle after its run.
fn save_summary(
    rows: IssueRows<'_>,
    bottle: &Bottle,
    record: Record,
    outcome: &JobOutcome,
) -> Result<(), Failure> {
    let (state, reason) = match outcome {
        JobOutcome::Closed(AfterRun::CallPerson { reason }) => {
            (WorkState::NeedsAttention, &**reason)
        }
        JobOutcome::Failed(_) => (WorkState::NeedsAttention, ""),
        _ => (WorkState::Frozen, ""),
    };
    rows.save_summary(&summarize(bottle, record, state, reason))
}

/// End of the work on a claimed item.
enum RunEnd {
    Ran,
    Unneeded(String),
    Stopped,
}

/// Runs the bottle of an item. Only a person cancels it: when this process ends, the box continues and is found at the next
/// start.
fn run(
    service: &Service,
    rows: IssueRows<'_>,
    work: &WorkItem,
    budget: &Arc<RunBudget>,
    cancel: &Cancel,
) -> Result<RunEnd, Failure> {
    let repos = service.repos();
    let repo = repos.of(&work.key)?;
    let found = bring_or_clean_up(service, rows, work, cancel)?;
    let ui = Ui::log(&format!("{}#{}", repo.full_name(), work.key.issue_number));
    let (home, transient) = (&service.home, TransientFailure::Wait);
    let settings = service.settings();
    let public_url = settings.public_url.as_deref();
    let context = RunContext { ui: &ui, home, rows, cancel, transient, public_url };
    let pull = found.as_ref().and_then(|(_, record)| record.pull);
    // Connections belong to the runtime of this thread, so the access is not the reconciler's.
    let access = repo.access(work.key.issue_number, pull);
    block_on(async {
        match found {
            Some((bottle, record)) => {
                if finish(context, &bottle, &record, access.clone(), work).await? {
                    let request = prompt_request(service, work, RESUME_PROMPT, budget);
                    let (backend, claim, budget) = (request.backend, request.claim, request.budget);
                    let next = NextRun { backend, claim, at_terminal: false, budget };
                    open::repair(context, bottle.slug().as_str(), next, Some(access), 0).await?;
                } else if context.stop_words().is_some() {
                    return Ok(RunEnd::Stopped);
                } else {
                    let found = (&bottle, &record);
                    match request_of(service, context, work, found, &access, budget).await? {
                        Ok(request) => {
                            let slug = bottle.slug().as_str();
                            open::resume(context, slug, request, Some(access)).await?;
                        }
                        Err(unneeded) => return Ok(RunEnd::Unneeded(unneeded)),
                    }
                }
            }
            None if context.stop_words().is_some() => return Ok(RunEnd::Stopped),
            None => {
                let request = start_request(service, work, repo, budget).await?;
                open::start(context, request, Some(access)).await?;
            }
        }
        Ok(RunEnd::Ran)
    })
}

/// The next run of a bottle; the inner error is the reason why none is needed.
async fn request_of(
    service: &Service,
    context: RunContext<'_>,
    work: &WorkItem,
    (bottle, record): (&Bottle, &Record),
    access: &ForgeAccess,
    budget: &Arc<RunBudget>,
) -> Result<Result<PromptRequest, String>, Failure> {
    let request = |prompt: &str| prompt_request(service, work, prompt, budget);
    Ok(match &work.request {
        WorkRequest::Start { .. } => Ok(request(START_PROMPT)),
        WorkRequest::Resume { prompt, .. } => {
            Ok(request(prompt.as_deref().unwrap_or(RESUME_PROMPT)))
        }
        WorkRequest::Wake { cause, head } => {
            match wake_prompt(context, bottle, record, access, *cause).await? {
                WakePrompt::Run(prompt) => {
                    let wake = Some((*cause, head.clone()));
                    Ok(PromptRequest { wake, ..request(&prompt) })
                }
                WakePrompt::Unneeded(reason) => Err(reason),
            }
        }
    })
}

/// Finishes an open run; `true` if the last run is the one of this claim.
async fn finish(
    context: RunContext<'_>,
    bottle: &Bottle,
    record: &Record,
    access: ForgeAccess,
    work: &WorkItem,
) -> Result<bool, Failure> {
    let Some(dir) = bottle.last_run(record)? else { return Ok(false) };
    if !dir.is_closed() {
        let lock = bottle.take(Duration::ZERO).await?;
        let recovered = recover(context, bottle, Some(access)).await;
        freeze_if_idle(context, bottle.slug().as_str())?;
        drop(lock);
        recovered?;
        return Ok(true);
    }
    let meta = load_run(&dir)?;
    Ok(meta.claim == Some(work.claims) || repair_prompt(&meta).is_some())
}

/// True if the last run of a bottle is closed, belongs to this claim, and needs no repair.
fn is_over(bottle: Option<&(Bottle, Record)>, work: &WorkItem) -> bool {
    let Some((bottle, record)) = bottle else { return false };
    let Ok(Some(dir)) = bottle.last_run(record) else { return false };
    dir.is_closed()
        && load_run(&dir)
            .is_ok_and(|meta| meta.claim == Some(work.claims) && repair_prompt(&meta).is_none())
}

async fn start_request(
    service: &Service,
    work: &WorkItem,
    repo: &Repo,
    budget: &Arc<RunBudget>,
) -> Result<StartRequest, Failure> {
    let (agent, bottles, text) = match work.request.clone() {
        WorkRequest::Start { agent, bottles, text, .. } => (agent, bottles, text),
        WorkRequest::Resume { .. } | WorkRequest::Wake { .. } => {
            return Err(Failure::not_found(
                "its bottle is removed; take the label off and set it again",
            ));
        }
    };
    Ok(StartRequest {
        agent,
        bottles,
        label: None,
        repo: Some(repo.source(&service.home).await?),
        base: BaseRequest::default(),
        run: prompt_request(service, work, START_PROMPT, budget),
        text,
    })
}

fn prompt_request(
    service: &Service,
    work: &WorkItem,
    prompt: &str,
    budget: &Arc<RunBudget>,
) -> PromptRequest {
    PromptRequest {
        prompt: prompt.to_owned(),
        terminal: None,
        backend: service.settings().backend.clone(),
        claim: Some(RunClaim { number: work.claims, trigger: work.trigger.clone() }),
        check_round: 0,
        wake: None,
        budget: Some(Arc::clone(budget)),
    }
}

fn judge_last_run(bottle: Option<(Bottle, Record)>, cancel: &Cancel) -> Result<AfterRun, Failure> {
    let (bottle, record) =
        bottle.ok_or_else(|| Failure::not_found("the bottle disappeared during its run"))?;
    let dir = bottle.last_run(&record)?;
    let dir = dir.ok_or_else(|| Failure::not_found("the bottle has no run"))?;
    let meta = load_run(&dir)?;
    if let Some(Verdict::Unfinished { how }) = &meta.verdict
        && how == LEASE_LOST
    {
        return Ok(AfterRun::Retry { reason: how.clone() });
    }
    // A person who stopped it is the whole reason.
    if let (Some(CancelReason::Asked(words)), Some(Verdict::Unfinished { how })) =
        (cancel.reason(), &meta.verdict)
        && *how == *words
    {
        return Ok(AfterRun::CallPerson { reason: words.to_string() });
    }
    Ok(judge_closed_run(&ClosedRun {
        verdict: meta.verdict.as_ref(),
        problem: meta.publication.as_ref().and_then(|sent| sent.problem.as_deref()),
        pull: record.pull,
        report: meta.done.as_ref().map(|event| event.status),
        summary: meta.done.as_ref().map(|event| event.summary.as_str()),
        waiting_until: meta.agent_result.as_ref().and_then(|result| waiting_until(&result.claim)),
    }))
}

/// End of the model's quota; a pause from now if it is unknown.
fn waiting_until(claim: &AgentClaim) -> Option<Timestamp> {
    match claim {
        AgentClaim::Waiting { until } => {
            let known = until.as_deref().and_then(|text| text.parse().ok());
            Some(known.unwrap_or_else(|| host::clock::now() + UNKNOWN_QUOTA))
        }
        AgentClaim::Finished | AgentClaim::Failed { .. } => None,
    }
}

/// The bottle of a claimed item. A folder into which nothing was put was left by a process that was killed while it made
/// the bottle; it is removed, after its row. Only the holder of the claim may do that: the record is written after the row.
pub(super) fn find_or_clean_up(
    service: &Service,
    rows: IssueRows<'_>,
    work: &WorkItem,
) -> Result<Option<(Bottle, Record)>, Failure> {
    let Service { home, host, store, .. } = service;
    let Some((slug, place)) = place_of_issue(home, host, &**store, &work.key)? else {
        return Ok(None);
    };
    match (&place, explain_absence(&place, &slug)) {
        (_, Some(reason)) => Err(Failure::not_found(reason)),
        (BottlePlace::HalfMade, None) => {
            rows.delete(&work.key, &slug)?;
            host::file::remove_tree_safely(&home.bottles.join(&slug)).or_general()?;
            Ok(None)
        }
        (_, None) => Bottle::open(home, &slug).map(Some),
    }
}

/// The bottle of a claimed item, which is fetched from the store of bottles if this host has not got its newest state.
fn bring_or_clean_up(
    service: &Service,
    rows: IssueRows<'_>,
    work: &WorkItem,
    cancel: &Cancel,
) -> Result<Option<(Bottle, Record)>, Failure> {
    let Service { home, host, store, .. } = service;
    let row = store.forge_state(&work.key).or_general()?;
    if let Some(row) = row.filter(|row| row.saved.is_some() && row.status != BottleState::Destroyed)
    {
        let place = place_of_row(home, host, &row)?;
        if matches!(place, BottlePlace::Cached | BottlePlace::Stored) {
            let repos = service.repos();
            let source = block_on(repos.of(&work.key)?.source(home))?;
            in_context(service, rows, &row.slug, cancel, |context| {
                bring_here(context, &row, &place, &source)
            })?;
        }
    }
    find_or_clean_up(service, rows, work)
}

/// Saves the bottle of a claim in the store of bottles, if there is one.
fn save(
    service: &Service,
    rows: IssueRows<'_>,
    work: &WorkItem,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let Some((bottle, _)) = find_or_clean_up(service, rows, work)? else { return Ok(()) };
    let slug = bottle.slug().as_str();
    in_context(service, rows, slug, cancel, |context| save_claimed(context, slug))
}

fn in_context<T>(
    service: &Service,
    rows: IssueRows<'_>,
    name: &str,
    cancel: &Cancel,
    act: impl FnOnce(RunContext<'_>) -> T,
) -> T {
    let ui = Ui::log(name);
    let (home, transient) = (&service.home, TransientFailure::Wait);
    let settings = service.settings();
    let public_url = settings.public_url.as_deref();
    act(RunContext { ui: &ui, home, rows, cancel, transient, public_url })
}

fn remove(
    service: &Service,
    rows: IssueRows<'_>,
    work: &WorkItem,
    loss: Loss,
) -> Result<(), Failure> {
    let Some(slug) = &work.slug else { return Ok(()) };
    let brought = bring_or_clean_up(service, rows, work, &Cancel::new());
    match place_of_issue(&service.home, &service.host, &*service.store, &work.key)? {
        Some((_, BottlePlace::Cached | BottlePlace::Stored)) => return brought.map(drop),
        // A person gives up what cannot be found.
        Some((slug, BottlePlace::Missing)) if loss == Loss::Accepted => {
            return rows.give_up(&work.key, &slug);
        }
        Some((slug, place)) => {
            if let Some(reason) = explain_absence(&place, &slug) {
                return Err(Failure::not_found(reason));
            }
        }
        None => {}
    }
    let repos = service.repos();
    let repo = repos.of(&work.key)?;
    let ui = Ui::log(slug);
    let cancel = Cancel::new();
    let (home, transient) = (&service.home, TransientFailure::Close);
    let settings = service.settings();
    let public_url = settings.public_url.as_deref();
    let context = RunContext { ui: &ui, home, rows, cancel: &cancel, transient, public_url };
    let access = repo.access(work.key.issue_number, None);
    block_on(async {
        // A branch that stays is no reason to keep the bottle.
        if loss == Loss::Refused
            && let Err(failure) = remove_merged_branch(context, slug, &access).await
        {
            tracing::warn!(slug, %failure, "the branch of the merged pull request stays");
        }
        destroy(context, slug, Some(access), loss).await
    })
}
