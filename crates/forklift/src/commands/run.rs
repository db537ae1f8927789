//! `forklift`: bring this fork up to date.

use agent::SessionRequest;
use engine::agent_plan::AgentTask;
use engine::attribution::Attribution;
use engine::run::{Phase, Product, advance, create};
use engine::trial::choose_backend;
use host::git::UserRepo;
use host::lock::FileLock;
use host::signal::{Cancel, cancel_on_signals};
use model::exit::ForkliftExit;
use model::id::RunId;
use run_store::run_dir::RunDir;
use sandbox::backend::BackendKind;
use sandbox::choice::BackendChoice;
use shell::Ui;
use shell::identity::find_attribution;
use shell::runtime::{stop_status, unless_stopped};

use super::request::{RequestedAgent, RunRequest};
use super::{ForkliftDirs, block_on};
use crate::commands::run_args::{AcceptArgs, RunArgs};
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::attempt::SyncNotes;
use crate::flow::earlier::{Start, StoredRun, find_start, find_unfinished};
use crate::flow::fork_lock::acquire_fork_lock;
use crate::flow::observe::{Observation, ObserveOptions, find_repo, observe};
use crate::flow::publish_run::{Acceptance, create_publish_run};
use crate::flow::pull::ForgePlan;
use crate::flow::record::{ForkRecord, ForkRunRecord, Settings};
use crate::flow::resume::{EarlierRun, load_args, save_args};
use crate::flow::run::ForkRun;
use crate::flow::security::land::pin_fix;
use crate::flow::waiting::{explain_waiting, find_waiting};
use crate::rules::judge::Verdict;
use crate::rules::prompt::{Briefing, render_follow_up, render_prompt};
use crate::rules::run_facts::work_so_far;
use crate::rules::strategy::Strategy;
use crate::rules::train::TrainStep;

/// Runs, perhaps from where an earlier run stopped. Everything that can be wrong with the request is found before
/// anything is started.
pub(crate) fn cmd_run(
    ui: &Ui,
    args: &RunArgs,
    dirs: &ForkliftDirs,
    earlier: Option<EarlierRun>,
    notes: &SyncNotes,
) -> Outcome {
    block_on(async {
        let cancel = cancel_on_signals().or_machine()?;
        let (run, fork_lock) = begin(ui, args, dirs, (earlier, notes), cancel).await?;
        let outcome = advance_stoppable(run).await;
        drop(fork_lock);
        outcome
    })
}

/// Runs all phases that are left. What fails after a signal fails because of it, and can be continued.
pub(super) async fn advance_stoppable(run: ForkRun<'_>) -> Outcome {
    let (cancel, id) = (run.run.cancel.clone(), run.run.dir.id().clone());
    match (advance(run).await, cancel.reason()) {
        (Err(_), Some(reason)) => {
            let text = format!("stopped: {reason}; continue it with: forklift attach {id}");
            Err(Failure::new(stop_status(&reason), text))
        }
        (outcome, _) => outcome,
    }
}

/// Checks the request, locks and observes the fork, and creates the run, or opens the earlier one that has the same
/// commits. Returns it with the lock.
pub(super) async fn begin<'a>(
    ui: &'a Ui,
    args: &RunArgs,
    places: &ForkliftDirs,
    (earlier, notes): (Option<EarlierRun>, &SyncNotes),
    cancel: Cancel,
) -> Result<(ForkRun<'a>, FileLock), Failure> {
    let args = &args.with_config(&places.shared);
    let (request, choice) = check_request(ui, args, places, earlier.is_some(), &cancel).await?;
    let repo = find_repo(&request.directory).await?;
    let looking = async {
        let fork_lock = acquire_fork_lock(ui, &repo, &places.cache, args.wait).await?;
        let seen = match &earlier {
            Some(earlier) => earlier.observe(repo).await?,
            None => observe_for(ui, repo, args, places, None).await?,
        };
        let fix = args.fix.as_ref().filter(|_| earlier.is_none());
        Ok((fork_lock, pin_fix(seen, fix).await?))
    };
    let (fork_lock, seen) = unless_stopped::<_, ForkliftExit>(&cancel, looking).await?;
    notes.note_branch(&seen.fork.branch);
    let train = earlier.as_ref().and_then(|earlier| earlier.meta.train.clone());
    let start =
        StartRequest { args, request: &request, choice, seen, earlier, train, commit: None, notes };
    Ok((create_run(ui, places, start, cancel).await?, fork_lock))
}

/// Finds everything that can be wrong with the request, before anything is started.
pub(super) async fn check_request(
    ui: &Ui,
    args: &RunArgs,
    places: &ForkliftDirs,
    is_resumed: bool,
    cancel: &Cancel,
) -> Result<(RunRequest, BackendChoice), Failure> {
    let checked = async {
        host::git::check_version().await.or_usage()?;
        let request = RunRequest::check(ui, args, places, is_resumed).await?;
        let choice = find_backend(&request, args, places).await?;
        Ok((request, choice))
    };
    unless_stopped::<_, ForkliftExit>(cancel, checked).await
}

/// Fetches into a repository, which may not be the checkout itself, and pins what the options name.
pub(super) async fn observe_for(
    ui: &Ui,
    repo: UserRepo,
    args: &RunArgs,
    places: &ForkliftDirs,
    checkout: Option<&UserRepo>,
) -> Result<Observation, Failure> {
    let remotes = &args.names.remotes(&places.shared);
    let (main_branch, target) = (args.names.main_branch.as_ref(), args.target.as_ref());
    let (forge, cache) = (args.forge_url.as_deref(), places.cache.as_path());
    observe(ui, repo, ObserveOptions { remotes, main_branch, target, forge, cache, checkout }).await
}

/// Beginning of a run: what was asked for, checked, and what was observed.
pub(super) struct StartRequest<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) request: &'a RunRequest,
    pub(super) choice: BackendChoice,
    pub(super) seen: Observation,
    pub(super) earlier: Option<EarlierRun>,
    /// The step of a train that the run makes, and text about its only commit for the agent.
    pub(super) train: Option<TrainStep>,
    pub(super) commit: Option<String>,
    pub(super) notes: &'a SyncNotes,
}

/// Creates a run, or opens the earlier one that has the same commits, and notes it. The caller holds the fork's lock.
pub(super) async fn create_run<'a>(
    ui: &'a Ui,
    places: &ForkliftDirs,
    start: StartRequest<'_>,
    cancel: Cancel,
) -> Result<ForkRun<'a>, Failure> {
    let notes = start.notes;
    let run = open_run(ui, places, start, cancel).await?;
    notes.note_run(&run.run.dir);
    Ok(run)
}

async fn open_run<'a>(
    ui: &'a Ui,
    places: &ForkliftDirs,
    start: StartRequest<'_>,
    cancel: Cancel,
) -> Result<ForkRun<'a>, Failure> {
    let StartRequest { args, request, choice, seen, earlier, train, commit, notes } = start;
    let forge = ForgePlan::find(&seen.fork.forge, places)?;
    let secrets = [request.agent.secrets(), forge.token.iter().cloned().collect()].concat();
    shell::terminal::hide(secrets.iter().cloned());
    let starting = async {
        match earlier.is_some() || args.again || seen.up_to_date {
            true => Ok(Start::New),
            false => choose_start(places, &seen, args, (&forge, train.is_some(), notes)).await,
        }
    };
    let verdict = match unless_stopped::<_, ForkliftExit>(&cancel, starting).await? {
        Start::New => seen.up_to_date.then_some(Verdict::UpToDate),
        Start::Restart(run) => {
            ui.note(&format!("the box of {run} was lost with its forklift: a new run starts"));
            None
        }
        Start::AwaitReview(verdict) => Some(verdict),
        Start::Finish(run) => {
            ui.phase("attach", &format!("finishing {}, which has the same commits", run.dir.id()));
            let is_told = load_args(&run.dir)?.instruction == args.instruction;
            if !is_told && !args.instruction.is_empty() {
                ui.warn("it began without this --instruction; start another with --again");
            }
            let mut run = ForkRun::open(ui, places, run.dir, seen.repo, cancel)?;
            run.accept(&AcceptArgs::of(args));
            run.run.record.settings.publish_mode = args.publishing.mode();
            return Ok(run);
        }
        Start::Publish(run) => {
            ui.phase("publish", &format!("taking the verified commit of {}", run.dir.id()));
            return open_publish_run(ui, places, args, (&run, seen.repo), cancel).await;
        }
    };
    if let Some(open) = find_unfinished(&places.runs, &seen.fork)? {
        ui.warn(&format!("{open} is not finished; finish it with: forklift attach {open}"));
    }
    let dir = RunDir::create(&places.runs, &seen.project, host::clock::now()).or_machine()?;
    let mut record = first_record(&dir, &seen, args, choice, earlier.as_ref());
    record.attribution = find_user(&seen.repo, args, places).await?;
    record.product.train = train;
    if let RequestedAgent::Resolved(agent) = &request.agent {
        record.settings.note_agent(agent);
    }
    if let Some(verdict) = verdict {
        (record.phase, record.verdict) = (Phase::Judged, Some(verdict));
    }
    let commit = commit.as_deref();
    let task = task(dir.id(), &seen, args, &record.settings, (earlier.as_ref(), commit));
    let plan = request.agent.plan(task)?;
    save_args(args, &dir)?;
    create::<ForkRun<'_>>(&dir, &record, &plan, &secrets).map_err(ForkRun::failure)?;
    host::failpoint::hit("pinned");
    ForkRun::open(ui, places, dir, seen.repo, cancel)
}

/// Opens a run that publishes the commit of an earlier one. Only a run that was itself to publish had leave for what it
/// accepted; the commit of another, such as a dry run, is judged by what is accepted now.
async fn open_publish_run<'a>(
    ui: &'a Ui,
    places: &ForkliftDirs,
    args: &RunArgs,
    (earlier, repo): (&StoredRun, UserRepo),
    cancel: Cancel,
) -> Result<ForkRun<'a>, Failure> {
    let (none, mode) = (AcceptArgs::default(), args.publishing.mode());
    let accept = match earlier.meta.settings.publish_mode.pushes() {
        true => Acceptance::Also(&none),
        false => Acceptance::Only(args),
    };
    let dir = create_publish_run(places, earlier, &repo, accept, mode).await?;
    let mut run = ForkRun::open(ui, places, dir, repo, cancel)?;
    run.gather_again().await?;
    Ok(run)
}

/// Chooses how to begin, by the earlier runs of the fork. Fails where a result for the same request waits for a person.
async fn choose_start(
    places: &ForkliftDirs,
    seen: &Observation,
    args: &RunArgs,
    (forge, is_train, notes): (&ForgePlan, bool, &SyncNotes),
) -> Result<Start, Failure> {
    let strategy = strategy(args, seen);
    let start = find_start(&places.runs, seen, (strategy, &args.instruction), forge).await?;
    if is_train {
        return Ok(start);
    }
    let Some(waiting) = find_waiting(&places.runs, seen, args, strategy)? else { return Ok(start) };
    let explain = || {
        notes.note_waiting();
        Err(explain_waiting(&waiting))
    };
    match &start {
        Start::New => explain(),
        // It was judged again already, and more would have to be accepted.
        Start::Publish(run) if waiting.meta.publishes.as_ref() == Some(run.dir.id()) => explain(),
        Start::Publish(_) | Start::Restart(_) | Start::Finish(_) | Start::AwaitReview(_) => {
            Ok(start)
        }
    }
}

/// The backend of the run. A merge that needs no agent needs no box either, so that a missing one is an error only where the
/// agent is named; where it is chosen later, the backend is looked for again.
async fn find_backend(
    request: &RunRequest,
    args: &RunArgs,
    places: &ForkliftDirs,
) -> Result<BackendChoice, Failure> {
    let choice = choose_backend(request.backend, &args.image, &places.runs).await;
    match (&request.agent, choice) {
        (RequestedAgent::Undecided(_), Err(missing)) => Ok(BackendChoice {
            kind: request.backend.unwrap_or(BackendKind::Bwrap),
            reason: missing.to_string(),
        }),
        (_, choice) => choice.or_usage(),
    }
}

/// The user under whose name the run publishes.
async fn find_user(
    repo: &UserRepo,
    args: &RunArgs,
    places: &ForkliftDirs,
) -> Result<Option<Attribution>, Failure> {
    let user = find_attribution(repo, &places.shared, args.sign_off).await.or_machine()?;
    match user {
        None if args.sign_off => Err(Failure::usage("--sign-off needs your name and address")
            .with_remedy(
                "set them with: git config user.name NAME; git config user.email ADDRESS",
            )),
        user => Ok(user),
    }
}

fn strategy(args: &RunArgs, seen: &Observation) -> Strategy {
    if seen.fix.is_some() {
        return Strategy::Merge;
    }
    let ruled = seen.fork_file.as_ref().and_then(|file| file.rules.strategy);
    args.strategy.or(ruled).unwrap_or_default()
}

/// The whole task, or for a resumed conversation what is new.
fn task<'a>(
    run: &'a RunId,
    seen: &Observation,
    args: &RunArgs,
    settings: &Settings,
    (earlier, commit): (Option<&EarlierRun>, Option<&str>),
) -> AgentTask<'a> {
    let context = seen.fork_file.as_ref().map(|file| file.text.clone());
    let attempt = earlier.map(EarlierRun::attempt);
    let session = earlier.and_then(|earlier| earlier.session(&settings.provider));
    let instruction = (!args.instruction.is_empty()).then(|| args.instruction.join("\n\n"));
    let prompt = match (&session, &attempt) {
        (Some(_), Some(attempt)) => render_follow_up(attempt, args.timeout_secs()),
        _ => render_prompt(&Briefing {
            fix: seen.fix.as_ref().map(|fix| &fix.request),
            branch: &seen.fork.branch,
            upstream: seen.fork.upstream_branch(),
            strategy: settings.strategy,
            target: &seen.target_name,
            timeout_secs: args.timeout_secs(),
            context: context.as_deref(),
            instruction: instruction.as_deref(),
            check: settings.rules.check.as_ref().map(|check| check.line.as_str()),
            protect: &settings.rules.protect,
            earlier: attempt,
            commit,
        }),
    };
    let session = session.map_or(SessionRequest::Fresh { id: None }, SessionRequest::Resume);
    AgentTask { run, prompt, context, session, mcp: Vec::new() }
}

/// The first record of a run.
fn first_record(
    dir: &RunDir,
    seen: &Observation,
    args: &RunArgs,
    choice: BackendChoice,
    earlier: Option<&EarlierRun>,
) -> ForkRunRecord {
    let image = choice.kind.uses_image().then(|| args.image.clone());
    let rules = seen.fork_file.as_ref().map(|file| file.rules.clone()).unwrap_or_default();
    let settings = Settings {
        provider: String::new(),
        backend: choice.kind,
        backend_reason: choice.reason,
        image,
        timeout_secs: args.timeout_secs(),
        agent_when: args.agent_when,
        accept_loss: args.accept_loss,
        accept_dropped: args.accept_dropped,
        target: seen.target.clone(),
        target_name: seen.target_name.clone(),
        strategy: strategy(args, seen),
        rules,
        trust: args.trust,
        model: None,
        notify_cmd: args.notify_cmd.clone(),
        allow_paths: args.allow_path.clone(),
        allow_unrelated: args.allow_unrelated,
        publish_mode: args.publishing.mode(),
    };
    let mut product = ForkRecord::new(seen.fork.clone(), seen.pins.clone(), settings);
    product.fix.clone_from(&seen.fix);
    if let Some(earlier) = earlier {
        product.resumed_from = Some(earlier.meta.run.clone());
        product.continued_work = work_so_far(&earlier.meta);
        // The earlier workspace has the merge as the resolver left it.
        product.resolver = earlier.meta.resolver.clone();
        product.conflicts = earlier.meta.conflicts.clone();
    }
    ForkRunRecord::new(dir.id().clone(), product)
}
