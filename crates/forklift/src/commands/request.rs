//! Request of a run, checked before anything is started. An agent that nobody named is looked for when one is needed.

use std::path::{Path, PathBuf};

use agent::scripted::Script;
use agent::{ModelUse, Provider};
use egress::model_route::{Caps, Price};
use egress::{EgressPolicy, EgressProfile};
use engine::agent_plan::choice::NoModel;
use engine::agent_plan::{
    AgentOptions, AgentPlan, AgentTask, KeyLocation, ResolveAgentError, ResolvedAgent, read_once,
    resolve_agent,
};
use merge::pattern::check_pattern;
use model::exit::ForkliftExit;
use model::id::Override;
use model::secret::Secret;
use sandbox::backend::BackendKind;
use shell::Ui;
use shell::agent_choice::{choose_agent, observe_candidates};
use shell::agent_settings::{egress_policy, load_script, parse_price};

use super::ForkliftDirs;
use crate::commands::run_args::{AgentWhen, RunArgs};
use crate::exit::{Failure, OrExit};
use crate::rules::opencode_env::{API_KEY, Overrides, parse_overrides, parse_settings};

const ENV_FILE_VARIABLE: &str = "FORKLIFT_OPENCODE_ENV";

pub(crate) struct RunRequest {
    pub(crate) directory: PathBuf,
    pub(crate) backend: Option<BackendKind>,
    pub(crate) agent: RequestedAgent,
}

/// The agent of a run, as far as it is known at the start.
pub(crate) enum RequestedAgent {
    Resolved(Box<ResolvedAgent>),
    /// Chosen when one is needed; commands of the run have this egress.
    Undecided(Option<EgressPolicy>),
}

impl RequestedAgent {
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        match self {
            Self::Resolved(agent) => agent.secrets(),
            Self::Undecided(_) => Vec::new(),
        }
    }

    /// Network access of commands that run in boxes without the agent.
    pub(crate) fn command_policy(&self, args: &RunArgs) -> Result<Option<EgressPolicy>, Failure> {
        match self {
            Self::Undecided(policy) => Ok(policy.clone()),
            Self::Resolved(agent) => {
                let needs_nothing = agent.provider().model_use() == ModelUse::Never;
                let has_none = needs_nothing && args.egress.is_none();
                if has_none { Ok(None) } else { policy(args).map(Some) }
            }
        }
    }

    pub(crate) fn plan(&self, task: AgentTask<'_>) -> Result<AgentPlan, Failure> {
        match self {
            Self::Resolved(agent) => agent.plan(task).or_usage(),
            Self::Undecided(policy) => {
                Ok(AgentPlan::undecided(task.run, policy.clone(), task.prompt, task.context))
            }
        }
    }
}

impl RunRequest {
    /// Checks everything that can be checked without touching the fork. What the user named is checked now; what nobody
    /// named is not asked for before it is needed.
    pub(crate) async fn check(
        ui: &Ui,
        args: &RunArgs,
        places: &ForkliftDirs,
        is_resumed: bool,
    ) -> Result<Self, Failure> {
        let directory = match &args.directory {
            Some(directory) => directory.clone(),
            None => host::env::current_dir().or_usage()?,
        };
        let backend = args.backend.as_deref().map(str::parse).transpose();
        let backend: Option<BackendKind> = backend.or_usage()?;
        args.allow_path.iter().try_for_each(|pattern| check_pattern(pattern)).or_usage()?;
        check_options(args)?;
        let is_needed = is_resumed || args.agent_when == AgentWhen::Always;
        let is_named = args.provider.is_some() || has_env_file(places);
        let agent = if is_needed || is_named {
            RequestedAgent::Resolved(Box::new(find_agent(ui, args, places).await?.agent))
        } else {
            RequestedAgent::Undecided(Some(policy(args)?))
        };
        Ok(Self { directory, backend, agent })
    }
}

/// An agent that can be started, with the name that chooses it again.
pub(crate) struct FoundAgent {
    pub(crate) name: String,
    pub(crate) agent: ResolvedAgent,
}

/// Finds the agent: the one that the user named, the configured one, OpenCode where its settings file is there, or else the
/// only one that is installed and has a key.
pub(crate) async fn find_agent(
    ui: &Ui,
    args: &RunArgs,
    places: &ForkliftDirs,
) -> Result<FoundAgent, Failure> {
    let named = args.provider.clone().or_else(|| places.shared.agent.clone());
    let opencode = || has_env_file(places).then(|| Provider::OpenCode.name().to_owned());
    let name = match named.or_else(opencode) {
        Some(name) => name,
        None => {
            let fill = |options: &mut AgentOptions| {
                // The flags are checked already.
                drop(apply_flags(options, args));
            };
            let candidates = observe_candidates(&places.shared, &places.agents, fill);
            let chosen = choose_agent::<ForkliftExit>("forklift", &candidates)?;
            ui.note(&chosen.reason());
            chosen.name
        }
    };
    let options = agent_options(args, places, &name)?;
    let agent = resolve_agent(options, &places.agents).await.map_err(with_flag)?;
    shell::terminal::hide(agent.secrets());
    Ok(FoundAgent { name, agent })
}

/// Checks what can be wrong with the flags, whichever agent they are for.
fn check_options(args: &RunArgs) -> Result<(), Failure> {
    overrides(args)?;
    args.price.as_deref().map(price).transpose()?;
    policy(args).map(drop)
}

fn overrides(args: &RunArgs) -> Result<Overrides, Failure> {
    parse_overrides(args.model.as_deref(), args.variant.as_deref(), args.agent.as_deref())
        .or_usage()
}

/// Adds the flag that resolves the error.
fn with_flag(error: ResolveAgentError) -> Failure {
    let remedy = match &error {
        ResolveAgentError::NoKey { .. } => Some("name a file with the key: --key-file FILE"),
        ResolveAgentError::Model(NoModel::Unknown { .. }) => {
            Some("name the model server: --model-url URL")
        }
        ResolveAgentError::Model(NoModel::Missing { .. }) => Some("name a model: --model MODEL"),
        _ => None,
    };
    let failure = Failure::of(ForkliftExit::Usage, error);
    match remedy {
        Some(remedy) => failure.with_remedy(remedy),
        None => failure,
    }
}

/// The agent's options from the configuration, from OpenCode's settings file where it is there, and from the flags.
fn agent_options(
    args: &RunArgs,
    places: &ForkliftDirs,
    name: &str,
) -> Result<AgentOptions, Failure> {
    let mut options = places.shared.agent_options(name).or_usage()?;
    match options.provider {
        Provider::Command => {
            let text = "the agent 'command' is not for forklift; choose one of: opencode, codex, claude, pi";
            return Err(Failure::usage(text));
        }
        Provider::Scripted => {
            options.script = Some(scripted(args.script.as_deref())?);
            options.policy = args.egress.as_ref().map(|_| policy(args)).transpose()?;
            return Ok(options);
        }
        Provider::OpenCode if has_env_file(places) && !places.shared.agents.contains_key(name) => {
            apply_settings(&mut options, &overrides(args)?, places)?;
        }
        Provider::OpenCode | Provider::Codex | Provider::Claude | Provider::Pi => {}
    }
    apply_flags(&mut options, args)?;
    Ok(options)
}

/// Applies the flags, which outrank everything else.
fn apply_flags(options: &mut AgentOptions, args: &RunArgs) -> Result<(), Failure> {
    apply_overrides(options, overrides(args)?);
    options.url = args.model_url.clone().or(options.url.take());
    let file = args.key_file.clone().map(KeyLocation::File);
    let command = args.key_command.as_deref().map(KeyLocation::command_line);
    options.key = command.or(file).or(options.key.take());
    options.login &= options.key.is_none() && options.url.is_none();
    options.price = args.price.as_deref().map(price).transpose()?.or(options.price);
    options.caps = Caps { max_usd: args.max_usd, max_tokens: args.max_tokens, ..Caps::default() };
    options.policy = Some(policy(args)?);
    options.silence_secs = Some(args.silence_secs());
    Ok(())
}

/// Overrides the options that the user gave.
fn apply_overrides(options: &mut AgentOptions, flags: Overrides) {
    let over = |value: Option<Override>, old: &mut Option<String>| {
        *old = value.map(|value| value.to_string()).or(old.take());
    };
    over(flags.model, &mut options.model);
    over(flags.variant, &mut options.variant);
    over(flags.agent, &mut options.agent);
}

/// Path of OpenCode's settings file.
fn env_file(places: &ForkliftDirs) -> PathBuf {
    host::env::var_os(ENV_FILE_VARIABLE)
        .map_or_else(|| places.config.join("opencode.env"), PathBuf::from)
}

/// True if OpenCode's settings file is there, or the user says so.
pub(super) fn has_env_file(places: &ForkliftDirs) -> bool {
    host::env::var_os(ENV_FILE_VARIABLE).is_some() || env_file(places).symlink_metadata().is_ok()
}

/// Applies OpenCode's settings file, which flags outrank.
fn apply_settings(
    options: &mut AgentOptions,
    flags: &Overrides,
    places: &ForkliftDirs,
) -> Result<(), Failure> {
    let path = env_file(places);
    let bytes = read_once(&path).or_usage()?;
    let settings = parse_settings(&bytes, flags)
        .map_err(|fault| Failure::usage(format!("{}: {fault}", path.display())))?;
    apply_overrides(options, settings.overrides);
    options.url = settings.url;
    options.wire = settings.wire;
    options.key = Some(KeyLocation::Settings { path, name: API_KEY.to_owned() });
    Ok(())
}

fn scripted(path: Option<&Path>) -> Result<Script, Failure> {
    let path = path.ok_or_else(|| {
        Failure::usage("the scripted agent needs a script; name it with --script FILE")
    })?;
    load_script(path).or_usage()
}

fn policy(args: &RunArgs) -> Result<EgressPolicy, Failure> {
    let profile: EgressProfile = match &args.egress {
        Some(profile) => profile.parse().or_usage()?,
        None => EgressProfile::Packages,
    };
    egress_policy(profile, &args.allow, &args.permit_private).or_usage()
}

fn price(text: &str) -> Result<Price, Failure> {
    parse_price(text).ok_or_else(|| {
        Failure::usage(format!(
            "'{text}' is not a price; give dollars for a million tokens as IN,OUT"
        ))
    })
}
