//! `forklift`: bring this fork up to date.

use agent::SessionWish;
use engine::evidence::Evidence;
use engine::hire::Task;
use host::signal::cancel_on_signals;
use model::redact::Redactor;
use model::verdict::ForkliftStatus;
use sandbox::backend::BackendKind;
use sandbox::choice::{self, Choice};
use sandbox::docker::{Engine, sweep};
use store::env_snapshot::{observe_env, save_env_snapshot};
use store::metadata::save_metadata;
use store::run_dir::RunDir;

use super::request::Request;
use super::{Places, block_on};
use crate::cli::RunArgs;
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::metadata::{Metadata, Phase, Settings, VERSION};
use crate::flow::observe::{Observation, observe};
use crate::flow::pull::ForgePlan;
use crate::flow::run::Run;
use crate::flow::sealed::save_plan;
use crate::rules::judge::Verdict;
use crate::rules::prompt::{FORK_FILES, render_prompt};
use crate::ui::Ui;

/// Bytes of the fork's own words that the agent is given.
const CONTEXT_CAP: usize = 32 * 1024;

/// Runs with the places of the environment.
pub(crate) fn run(ui: &Ui, args: &RunArgs) -> Outcome {
    run_in(ui, args, &Places::from_env()?)
}

/// Runs with given places. Everything that can be wrong with the request is found before anything is started.
pub(crate) fn run_in(ui: &Ui, args: &RunArgs, places: &Places) -> Outcome {
    block_on(async {
        let request = Request::check(args, places).await?;
        let cancel = cancel_on_signals().or_exit(ForkliftStatus::Machine)?;
        let found = choice::observe(request.backend, &args.image).await;
        let choice =
            choice::choose(request.backend, &found, &args.image).or_exit(ForkliftStatus::Usage)?;
        if choice.kind == BackendKind::Docker {
            sweep_orphans(ui).await?;
        }
        let seen = observe(
            ui,
            &request.directory,
            &request.branch,
            args.forge_url.as_deref(),
            &places.cache,
        )
        .await?;
        let forge = ForgePlan::find(&seen.fork.forge, &places.config)?;
        let mut secrets = request.hired.secrets();
        secrets.extend(forge.token.clone());
        let dir = RunDir::create(&places.runs, &seen.project, host::clock::now())
            .or_exit(ForkliftStatus::Machine)?;
        let meta = first_metadata(&dir, &seen, args, choice);
        let redactor = Redactor::new(secrets.clone());
        let context = fork_context(&seen).await?;
        let task = Task {
            run: dir.id(),
            prompt: render_prompt(&request.branch, args.timeout, context.as_deref()),
            context,
            session: SessionWish::Fresh { id: None },
            mcp: Vec::new(),
        };
        let plan = request.hired.plan(task).or_exit(ForkliftStatus::Usage)?;
        save_plan(&plan, &dir)?;
        save_metadata(&dir, &redactor, &meta).or_exit(ForkliftStatus::Machine)?;
        host::failpoint::hit("pinned");
        let facts = observe_env(host::clock::now()).await;
        save_env_snapshot(&dir, &redactor, &facts).or_exit(ForkliftStatus::Machine)?;
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
        };
        run.advance().await
    })
}

/// Ends boxes that an earlier crash left behind: whoever comes next tidies up.
async fn sweep_orphans(ui: &Ui) -> Result<(), Failure> {
    let engine = Engine::find().await.or_exit(ForkliftStatus::Machine)?;
    for orphan in sweep(&engine).await.or_exit(ForkliftStatus::Machine)? {
        ui.note(&format!("removed a box of {} that nobody watched over any more", orphan.run));
    }
    Ok(())
}

/// The fork's own words about itself, as they stand on its main branch.
async fn fork_context(seen: &Observation) -> Result<Option<String>, Failure> {
    for name in FORK_FILES {
        let read = seen.repo.read_blob(&seen.pins.base, name, CONTEXT_CAP).await;
        if let Some(blob) = read.or_exit(ForkliftStatus::Machine)? {
            return Ok(Some(String::from_utf8_lossy(&blob.bytes).into_owned()));
        }
    }
    Ok(None)
}

/// The metadata of a run that has just been pinned. One that has nothing to do is judged already.
fn first_metadata(dir: &RunDir, seen: &Observation, args: &RunArgs, choice: Choice) -> Metadata {
    let image = (choice.kind == BackendKind::Docker).then(|| args.image.clone());
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
        },
        workspace: None,
        merged_alone: false,
        conflicts: Vec::new(),
        agent_box: None,
        agent: None,
        stuck: None,
        evidence: None::<Evidence>,
        contract: None,
        import_refused: None,
        verdict: seen.up_to_date.then_some(Verdict::UpToDate),
        publication: None,
        exit_status: None,
        operations_head: None,
    }
}
