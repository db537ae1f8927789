//! `forklift`: bring this fork up to date.

use std::path::PathBuf;

use agent::provider::{AgentCommand, Provider};
use engine::evidence::Evidence;
use host::signal::cancel_on_signals;
use model::id::BranchName;
use model::redact::Redactor;
use model::secret::Secret;
use model::verdict::ForkliftStatus;
use sandbox::backend::BackendKind;
use sandbox::choice::{self, Choice};
use store::env_snapshot::{observe_env, save_env_snapshot};
use store::metadata::save_metadata;
use store::run_dir::RunDir;

use super::{Places, block_on};
use crate::cli::RunArgs;
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::metadata::{Metadata, Phase, Settings, VERSION};
use crate::flow::observe::{Observation, observe};
use crate::flow::run::Run;
use crate::rules::judge::Verdict;
use crate::rules::opencode_env::{parse_overrides, parse_settings};
use crate::ui::Ui;

/// The variable that names another `opencode.env`.
const ENV_FILE_VARIABLE: &str = "FORKLIFT_OPENCODE_ENV";

/// The script that the scripted agent plays, kept with the run.
pub(crate) const SCRIPT_COPY: &str = "script.toml";

/// Runs with the places of the environment.
pub(crate) fn run(ui: &Ui, args: &RunArgs) -> Outcome {
    run_in(ui, args, &Places::from_env()?)
}

/// Runs with given places. Everything that can be wrong with the request is found before anything is started.
pub(crate) fn run_in(ui: &Ui, args: &RunArgs, places: &Places) -> Outcome {
    let request = Request::check(args, places)?;
    block_on(async {
        let cancel = cancel_on_signals().or_exit(ForkliftStatus::Machine)?;
        let found = choice::observe(request.backend, &args.image).await;
        let choice = choice::choose(request.backend, &found, &args.image)
            .or_exit(ForkliftStatus::Usage)?;
        let seen = observe(ui, &request.directory, &request.branch, &places.cache).await?;
        let dir = RunDir::create(&places.runs, &seen.project, host::clock::now())
            .or_exit(ForkliftStatus::Machine)?;
        let meta = first_metadata(&dir, &seen, args, choice);
        let redactor = Redactor::new(request.secrets.clone());
        if let Some(script) = &request.script {
            let copy = dir.path().join(SCRIPT_COPY);
            host::file::write_atomic(&copy, script.as_bytes(), 0o600)
                .or_exit(ForkliftStatus::Machine)?;
        }
        save_metadata(&dir, &redactor, &meta).or_exit(ForkliftStatus::Machine)?;
        host::failpoint::hit("pinned");
        let facts = observe_env(host::clock::now()).await;
        save_env_snapshot(&dir, &redactor, &facts).or_exit(ForkliftStatus::Machine)?;
        let run = Run {
            ui,
            dir,
            meta,
            repo: seen.repo,
            agent: request.agent,
            secrets: request.secrets,
            cancel,
            cache: places.cache.clone(),
        };
        run.advance().await
    })
}

/// A request whose every part was checked.
struct Request {
    directory: PathBuf,
    branch: BranchName,
    backend: Option<BackendKind>,
    agent: AgentCommand,
    script: Option<String>,
    secrets: Vec<Secret>,
}

impl Request {
    fn check(args: &RunArgs, places: &Places) -> Result<Self, Failure> {
        let directory = match &args.directory {
            Some(directory) => directory.clone(),
            None => host::env::current_dir().or_exit(ForkliftStatus::Usage)?,
        };
        let branch = BranchName::parse(&args.main_branch).or_exit(ForkliftStatus::Usage)?;
        let backend = args.backend.as_deref().map(str::parse).transpose();
        let backend: Option<BackendKind> = backend.or_exit(ForkliftStatus::Usage)?;
        let flags =
            parse_overrides(args.model.as_deref(), args.variant.as_deref(), args.agent.as_deref())
                .or_exit(ForkliftStatus::Usage)?;
        if args.provider == "opencode" {
            let path = env_file(places);
            let bytes = host::file::read_private(&path).or_exit(ForkliftStatus::Usage)?;
            let settings = parse_settings(&bytes, &flags)
                .map_err(|fault| Failure::usage(format!("{}: {fault}", path.display())))?;
            let _ = settings;
        }
        match Provider::parse(&args.provider).or_exit(ForkliftStatus::Usage)? {
            Provider::Scripted => {
                let path = args.script.as_ref().ok_or_else(|| {
                    Failure::usage("the scripted agent needs a script; name it with --script FILE")
                })?;
                let script = std::fs::read_to_string(path).map_err(|error| {
                    Failure::usage(format!("could not read the script {}: {error}", path.display()))
                })?;
                let agent = scripted(&script)
                    .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
                Ok(Self { directory, branch, backend, agent, script: Some(script), secrets: Vec::new() })
            }
        }
    }
}

/// What the scripted agent starts.
pub(crate) fn scripted(script: &str) -> Result<AgentCommand, agent::scripted::ScriptError> {
    agent::scripted::parse_script(script).map(|script| agent::scripted::command(&script))
}

fn env_file(places: &Places) -> PathBuf {
    host::env::var_os(ENV_FILE_VARIABLE)
        .map_or_else(|| places.config.join("opencode.env"), PathBuf::from)
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
        },
        workspace: None,
        agent_box: None,
        stuck: None,
        evidence: None::<Evidence>,
        import_refused: None,
        verdict: seen.up_to_date.then_some(Verdict::UpToDate),
        publication: None,
        exit_status: None,
        operations_head: None,
    }
}
