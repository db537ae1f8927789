//! One run of one bottle, on a thread of its own. Everything that matters is on disk, so whoever comes after a crash goes
//! on from there: a run that was begun is finished, one that is closed is not done again.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use engine::agent_result::AgentClaim as Says;
use host::signal::Cancel;
use jiff::Timestamp;
use orchestrator_db::{BottleState, ForgeStateStore, IssueKey, WorkItem, WorkRequest};
use tokio::sync::mpsc;

use super::Service;
use super::repos::Repo;
use crate::commands::block_on;
use crate::exit::{Failure, OrExit};
use crate::flow::access::ForgeAccess;
use crate::flow::bottle::{Bottle, Record};
use crate::flow::context::{RunContext, TransientFailure};
use crate::flow::end::{Loss, destroy};
use crate::flow::open::{self, ResumeRequest, RunClaim, StartRequest};
use crate::flow::recover::{freeze_if_idle, recover};
use crate::flow::run_record::BottleRunRecord;
use crate::rules::ending::{Closing, Next, judge_closing};
use crate::ui::Ui;

/// What the agent of a new bottle is asked.
const START_PROMPT: &str = "Do what the issue that is assigned to you asks for. If it cannot be done without a decision \
                            of somebody's, ask for it in a comment and say that you are blocked.";

/// What the agent of a frozen one is asked, where no person says it.
const RESUME_PROMPT: &str =
    "People have answered. Read what is new in the conversation and act on it.";

/// How long a quota is waited for that has no known end.
const UNKNOWN_QUOTA: Duration = Duration::from_secs(900);

/// What a worker is to do.
pub(crate) enum Task {
    /// The work that was claimed.
    Run(Box<WorkItem>),
    /// Remove a bottle.
    Destroy { work: Box<WorkItem>, loss: Loss },
}

impl Task {
    /// The work that it is about.
    pub(crate) fn work(&self) -> &WorkItem {
        match self {
            Self::Run(work) | Self::Destroy { work, .. } => work,
        }
    }
}

/// How it went.
pub(crate) struct Ended {
    pub(crate) key: IssueKey,
    pub(crate) fence: u64,
    pub(crate) slug: Option<String>,
    pub(crate) outcome: Outcome,
}

/// What came of it.
pub(crate) enum Outcome {
    /// A run is closed.
    Closed(Next),
    /// Something of ours failed.
    Failed(Failure),
    /// The bottle is gone.
    Destroyed,
    /// The bottle could not be removed.
    Kept(Failure),
}

/// Starts a worker; it says when it has ended.
pub(crate) fn start(service: &Arc<Service>, task: Task, endings: mpsc::UnboundedSender<Ended>) {
    let service = Arc::clone(service);
    thread::spawn(move || {
        let work = task.work().clone();
        let IssueKey { owner, repo, issue_number } = &work.key;
        let span =
            tracing::info_span!("work", owner, repo, issue = issue_number, claim = work.claims);
        let _inside = span.entered();
        // A panic must not leave the issue claimed for ever.
        let done =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| perform(&service, task)));
        let outcome = done.unwrap_or_else(|_| {
            Outcome::Failed(Failure::new(model::exit::BottleExit::Internal, "a worker panicked"))
        });
        let slug = find_slug(&service, &work).ok().flatten();
        // Nobody listens any more when everything ends; the next one looks at the disk.
        drop(endings.send(Ended { key: work.key, fence: work.fence, slug, outcome }));
    });
}

fn perform(service: &Service, task: Task) -> Outcome {
    match task {
        Task::Run(work) => match run(service, &work) {
            Ok(next) => Outcome::Closed(next),
            Err(failure) => Outcome::Failed(failure),
        },
        Task::Destroy { work, loss } => match remove(service, &work, loss) {
            Ok(()) => Outcome::Destroyed,
            Err(failure) => Outcome::Kept(failure),
        },
    }
}

/// Does what the work asks for, or finishes what was begun.
fn run(service: &Service, work: &WorkItem) -> Result<Next, Failure> {
    let repo = service.repos.of(&work.key)?;
    let slug = find_slug(service, work)?;
    let ui = Ui::log(&format!("{}#{}", repo.full_name(), work.key.issue_number));
    // Never uttered: when everything ends, the box goes on under its own clock and is found again.
    let cancel = Cancel::new();
    let context = RunContext {
        ui: &ui,
        home: &service.home,
        cancel: &cancel,
        transient: TransientFailure::Wait,
    };
    block_on(async {
        let access = |record: Option<&Record>| {
            repo.access(work.key.issue_number, record.and_then(|record| record.pull))
        };
        let found = slug.as_deref().map(|slug| Bottle::open(&service.home, slug)).transpose()?;
        match found {
            Some((bottle, record)) => {
                if !finish(context, &bottle, &record, access(Some(&record)), work).await? {
                    let access = access(Some(&record));
                    open::resume(context, resume_request(service, work, &bottle), Some(access))
                        .await?;
                }
            }
            None => {
                let wish = start_request(service, work, repo).await?;
                open::start(context, wish, Some(access(None))).await?;
            }
        }
        closing(service, work)
    })
}

/// Finishes a run that was begun. Says whether that was the run that is wanted.
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
        freeze_if_idle(context.home, bottle.slug().as_str())?;
        drop(lock);
        recovered?;
        return Ok(true);
    }
    let meta = BottleRunRecord::load(&dir).or_general()?;
    Ok(meta.claim == Some(work.claims))
}

async fn start_request(
    service: &Service,
    work: &WorkItem,
    repo: &Repo,
) -> Result<StartRequest, Failure> {
    let (agent, bottles) = match &work.request {
        WorkRequest::Start { agent, bottles } => (agent.clone(), bottles.clone()),
        WorkRequest::Resume { .. } => {
            return Err(Failure::not_found(
                "its bottle is gone; remove the label and set it again",
            ));
        }
    };
    Ok(StartRequest {
        agent,
        bottles,
        prompt: START_PROMPT.to_owned(),
        terminal: None,
        label: None,
        backend: service.settings.backend.clone(),
        repo: Some(repo.source(&service.home).await?),
        claim: Some(claim_of(work)),
    })
}

fn resume_request(service: &Service, work: &WorkItem, bottle: &Bottle) -> ResumeRequest {
    let prompt = match &work.request {
        WorkRequest::Start { .. } => START_PROMPT.to_owned(),
        WorkRequest::Resume { prompt } => {
            prompt.clone().unwrap_or_else(|| RESUME_PROMPT.to_owned())
        }
    };
    ResumeRequest {
        slug: bottle.slug().to_string(),
        prompt,
        terminal: None,
        backend: service.settings.backend.clone(),
        claim: Some(claim_of(work)),
    }
}

fn claim_of(work: &WorkItem) -> RunClaim {
    RunClaim { number: work.claims, trigger: work.trigger.clone() }
}

/// What the run that was closed last means.
fn closing(service: &Service, work: &WorkItem) -> Result<Next, Failure> {
    let slug = find_slug(service, work)?;
    let slug = slug.ok_or_else(|| Failure::not_found("the bottle was not found again"))?;
    let (bottle, record) = Bottle::open(&service.home, &slug)?;
    let dir = bottle.last_run(&record)?;
    let dir = dir.ok_or_else(|| Failure::not_found("the bottle has no run"))?;
    let meta = BottleRunRecord::load(&dir).or_general()?;
    Ok(judge_closing(&Closing {
        verdict: meta.verdict.as_ref(),
        problem: meta.publication.as_ref().and_then(|sent| sent.problem.as_deref()),
        pull: record.pull,
        report: meta.done.as_ref().map(|event| event.status),
        waiting_until: meta.agent_result.as_ref().and_then(|said| waiting_until(&said.claim)),
    }))
}

/// When the model will answer again; if it did not say, it is asked after a while.
fn waiting_until(claim: &Says) -> Option<Timestamp> {
    match claim {
        Says::Waiting { until } => {
            let told = until.as_deref().and_then(|text| text.parse().ok());
            Some(told.unwrap_or_else(|| host::clock::now() + UNKNOWN_QUOTA))
        }
        Says::Finished | Says::Failed { .. } => None,
    }
}

/// The bottle of an issue. One whose maker was killed before its first record was written is no bottle: what there is of
/// it is removed.
pub(super) fn find_slug(service: &Service, work: &WorkItem) -> Result<Option<String>, Failure> {
    let known = service.store.get(&work.key).or_general()?;
    let Some(known) = known.filter(|known| known.status != BottleState::Destroyed) else {
        return Ok(None);
    };
    let folder = service.home.cellar().join(&known.slug);
    if !folder.join("record.json").exists() {
        host::file::remove_tree_safely(&folder).or_general()?;
        service.store.delete(&work.key).or_general()?;
        return Ok(None);
    }
    Ok(Some(known.slug))
}

fn remove(service: &Service, work: &WorkItem, loss: Loss) -> Result<(), Failure> {
    let Some(slug) = &work.slug else { return Ok(()) };
    let repo = service.repos.of(&work.key)?;
    let ui = Ui::log(slug);
    let cancel = Cancel::new();
    let context = RunContext {
        ui: &ui,
        home: &service.home,
        cancel: &cancel,
        transient: TransientFailure::Close,
    };
    let access = repo.access(work.key.issue_number, None);
    block_on(destroy(context, slug, Some(access), loss))
}
