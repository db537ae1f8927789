//! `forklift`: bring this fork up to date.

use agent::{SessionRequest, Usage};
use engine::agent_plan::AgentTask;
use host::lock::FileLock;
use host::signal::{Cancel, cancel_on_signals};
use model::exit::ForkliftExit;
use model::id::RunId;
use model::redact::Redactor;
use run_store::env_snapshot::LaterSnapshot;
use run_store::metadata::save_mark;
use run_store::run_dir::RunDir;
use sandbox::choice::{self, BackendChoice};
use sandbox::docker::{Engine, sweep};

use super::request::RunRequest;
use super::{ForkliftDirs, block_on, unless_stopped};
use crate::cli::RunArgs;
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::fork_lock::acquire_fork_lock;
use crate::flow::metadata::{Metadata, Phase, Settings, VERSION};
use crate::flow::observe::{Observation, Sight, find_repo, observe};
use crate::flow::pull::ForgePlan;
use crate::flow::resume::{EarlierRun, save_args};
use crate::flow::run::Run;
use crate::flow::sealed::save_plan;
use crate::rules::judge::Verdict;
use crate::rules::prompt::{Briefing, render_follow_up, render_prompt};
use crate::ui::Ui;

/// Runs with the places of the environment.
pub(crate) fn cmd_run(ui: &Ui, args: &RunArgs) -> Outcome {
    run_in(ui, args, &ForkliftDirs::from_env()?)
}

/// Runs with given places.
pub(crate) fn run_in(ui: &Ui, args: &RunArgs, places: &ForkliftDirs) -> Outcome {
    run_from(ui, args, places, None)
}

/// Runs, perhaps from where an earlier run stopped. Everything that can be wrong with the request is found before
/// anything is started.
pub(crate) fn run_from(
    ui: &Ui,
    args: &RunArgs,
    places: &ForkliftDirs,
    earlier: Option<EarlierRun>,
) -> Outcome {
    block_on(async {
        let cancel = cancel_on_signals().or_exit(ForkliftExit::Machine)?;
        let (run, fork_lock) = begin(ui, args, places, earlier, cancel).await?;
        let outcome = run.advance().await;
        drop(fork_lock);
        outcome
    })
}

/// Checks the request, waits for the fork's turn, looks at the fork and writes down what is to be done: a run that is ready
/// to go, and the turn that it holds.
pub(super) async fn begin<'a>(
    ui: &'a Ui,
    args: &RunArgs,
    places: &ForkliftDirs,
    earlier: Option<EarlierRun>,
    cancel: Cancel,
) -> Result<(Run<'a>, FileLock), Failure> {
    let request = RunRequest::check(args, places).await?;
    let found = choice::observe(request.backend, &args.image).await;
    let choice =
        choice::choose(request.backend, &found, &args.image).or_exit(ForkliftExit::Usage)?;
    if choice.kind.uses_image() {
        sweep_orphans(ui).await?;
    }
    let repo = find_repo(&request.directory).await?;
    let looking = async {
        let fork_lock = acquire_fork_lock(ui, &repo, &places.cache, args.wait).await?;
        let seen = match &earlier {
            Some(earlier) => earlier.observe(repo).await?,
            None => {
                let sight = Sight {
                    branch: &request.branch,
                    target: args.target.as_ref(),
                    forge: args.forge_url.as_deref(),
                    cache: &places.cache,
                };
                observe(ui, repo, sight).await?
            }
        };
        Ok((fork_lock, seen))
    };
    let (fork_lock, seen) = unless_stopped(&cancel, looking).await?;
    let forge = ForgePlan::find(&seen.fork.forge, &places.config)?;
    let mut secrets = request.resolved.secrets();
    secrets.extend(forge.token.clone());
    shell::terminal::hide(secrets.iter().cloned());
    let dir = RunDir::create(&places.runs, &seen.project, host::clock::now())
        .or_exit(ForkliftExit::Machine)?;
    let meta = first_metadata(&dir, &seen, args, choice, earlier.as_ref());
    let redactor = Redactor::new(secrets.clone());
    let task = task(dir.id(), &seen, args, &meta.settings, earlier.as_ref());
    let plan = request.resolved.plan(task).or_exit(ForkliftExit::Usage)?;
    save_plan(&plan, &dir)?;
    save_args(args, &dir)?;
    save_mark(&dir, &redactor, &meta).or_exit(ForkliftExit::Machine)?;
    host::failpoint::hit("pinned");
    let run = Run {
        ui,
        dir,
        meta,
        repo: seen.repo,
        plan,
        forge,
        secrets,
        cancel,
        cache: places.cache.clone(),
        used_before: earlier.map_or_else(Usage::default, |earlier| earlier.used()),
        snapshot: LaterSnapshot::default(),
    };
    Ok((run, fork_lock))
}

/// Ends boxes that an earlier crash left behind: whoever comes next tidies up.
async fn sweep_orphans(ui: &Ui) -> Result<(), Failure> {
    let engine = Engine::find().await.or_exit(ForkliftExit::Machine)?;
    for orphan in sweep(&engine).await.or_exit(ForkliftExit::Machine)? {
        ui.note(&format!("removed a box of {} that nobody watched over any more", orphan.run));
    }
    Ok(())
}

/// What the agent is asked: all of it, or, where its own conversation goes on, what is new.
fn task<'a>(
    run: &'a RunId,
    seen: &Observation,
    args: &RunArgs,
    settings: &Settings,
    earlier: Option<&EarlierRun>,
) -> AgentTask<'a> {
    let context = seen.fork_file.as_ref().map(|file| file.words.clone());
    let words = earlier.map(EarlierRun::words);
    let session = earlier.and_then(|earlier| earlier.session(&args.provider));
    let prompt = match (&session, &words) {
        (Some(_), Some(words)) => render_follow_up(words, args.timeout),
        _ => render_prompt(&Briefing {
            branch: &seen.fork.branch,
            strategy: settings.strategy,
            target: &seen.target_name,
            timeout_secs: args.timeout,
            context: context.as_deref(),
            instruction: args.instruction.as_deref(),
            check: settings.rules.check.as_ref().map(|check| check.line.as_str()),
            protect: &settings.rules.protect,
            earlier: words,
        }),
    };
    let session = session.map_or(SessionRequest::Fresh { id: None }, SessionRequest::Resume);
    AgentTask { run, prompt, context, session, mcp: Vec::new() }
}

/// The metadata of a run that has just been pinned. One that has nothing to do is judged already.
fn first_metadata(
    dir: &RunDir,
    seen: &Observation,
    args: &RunArgs,
    choice: BackendChoice,
    earlier: Option<&EarlierRun>,
) -> Metadata {
    let image = choice.kind.uses_image().then(|| args.image.clone());
    let rules = seen.fork_file.as_ref().map(|file| file.rules.clone()).unwrap_or_default();
    Metadata {
        version: VERSION,
        run: dir.id().clone(),
        phase: if seen.up_to_date { Phase::Judged } else { Phase::Pinned },
        started_at: host::clock::now(),
        finished_at: None,
        fork: seen.fork.clone(),
        pins: seen.pins.clone(),
        settings: Settings {
            provider: args.provider.clone(),
            backend: choice.kind,
            backend_reason: choice.reason,
            image,
            timeout_secs: args.timeout,
            agent_when: args.agent_when,
            accept_loss: args.accept_loss,
            target: seen.target.clone(),
            target_name: seen.target_name.clone(),
            strategy: args.strategy.or(rules.strategy).unwrap_or_default(),
            rules,
            trust: args.trust,
            notify_cmd: args.notify_cmd.clone(),
        },
        resumed_from: earlier.map(|earlier| earlier.run().clone()),
        workspace: None,
        setup: None,
        check: None,
        regenerate: Vec::new(),
        merged_alone: false,
        resolver: None,
        conflicts: earlier.map(EarlierRun::conflicts).unwrap_or_default(),
        agent_box: None,
        agent: None,
        stuck: None,
        evidence: None,
        contract: None,
        import_refused: None,
        verdict: seen.up_to_date.then_some(Verdict::UpToDate),
        publication: None,
        exit_status: None,
        operations_head: None,
    }
}
