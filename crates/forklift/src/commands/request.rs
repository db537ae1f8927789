//! Request of a run, checked before anything is started.

use std::path::{Path, PathBuf};

use agent::Provider;
use agent::scripted::Script;
use egress::model_route::{Caps, Price};
use egress::{EgressPolicy, EgressProfile};
use engine::agent_plan::choice::NoModel;
use engine::agent_plan::{
    AgentOptions, KeyLocation, ResolveAgentError, ResolvedAgent, resolve_agent,
};
use merge::pattern::check_pattern;
use model::exit::ForkliftExit;
use model::id::Override;
use sandbox::backend::BackendKind;
use shell::agent_settings::{egress_policy, load_script, parse_price};

use super::ForkliftDirs;
use crate::commands::run_args::RunArgs;
use crate::exit::{Failure, OrExit};
use crate::rules::opencode_env::{API_KEY, Overrides, parse_overrides, parse_settings};

const ENV_FILE_VARIABLE: &str = "FORKLIFT_OPENCODE_ENV";

pub(crate) struct RunRequest {
    pub(crate) directory: PathBuf,
    pub(crate) backend: Option<BackendKind>,
    pub(crate) resolved: ResolvedAgent,
}

impl RunRequest {
    /// Checks everything that can be checked without touching the fork.
    pub(crate) async fn check(args: &RunArgs, places: &ForkliftDirs) -> Result<Self, Failure> {
        let directory = match &args.directory {
            Some(directory) => directory.clone(),
            None => host::env::current_dir().or_usage()?,
        };
        let backend = args.backend.as_deref().map(str::parse).transpose();
        let backend: Option<BackendKind> = backend.or_usage()?;
        args.allow_path.iter().try_for_each(|pattern| check_pattern(pattern)).or_usage()?;
        let options = agent_options(args, places)?;
        let resolved = resolve_agent(options, &places.agents).await.map_err(with_flag)?;
        shell::terminal::hide(resolved.secrets());
        Ok(Self { directory, backend, resolved })
    }
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

/// The agent's options from the flags and, for OpenCode, its settings file.
fn agent_options(args: &RunArgs, places: &ForkliftDirs) -> Result<AgentOptions, Failure> {
    let flags =
        parse_overrides(args.model.as_deref(), args.variant.as_deref(), args.agent.as_deref())
            .or_usage()?;
    let provider = Provider::parse(&args.provider).or_usage()?;
    let mut options = AgentOptions::new(provider);
    match provider {
        Provider::Command => {
            return Err(Failure::usage("the agent 'command' is not for forklift; use another"));
        }
        Provider::Scripted => {
            options.script = Some(scripted(args.script.as_deref())?);
            options.policy = args.egress.as_ref().map(|_| policy(args)).transpose()?;
            return Ok(options);
        }
        Provider::OpenCode => apply_settings(&mut options, &flags, places)?,
        Provider::Codex | Provider::Claude | Provider::Pi => apply_overrides(&mut options, flags),
    }
    options.url = args.model_url.clone().or(options.url);
    let file = args.key_file.clone().map(KeyLocation::File);
    let command = args.key_command.as_deref().map(KeyLocation::command_line);
    options.key = command.or(file).or(options.key);
    options.price = args.price.as_deref().map(price).transpose()?;
    options.caps = Caps { max_usd: args.max_usd, max_tokens: args.max_tokens, ..Caps::default() };
    options.policy = Some(policy(args)?);
    options.silence_secs = Some(args.silence);
    Ok(options)
}

fn apply_overrides(options: &mut AgentOptions, flags: Overrides) {
    let text = |value: Option<Override>| value.map(|value| value.to_string());
    options.model = text(flags.model);
    options.variant = text(flags.variant);
    options.agent = text(flags.agent);
}

/// Applies OpenCode's settings file, which flags outrank.
fn apply_settings(
    options: &mut AgentOptions,
    flags: &Overrides,
    places: &ForkliftDirs,
) -> Result<(), Failure> {
    let path = host::env::var_os(ENV_FILE_VARIABLE)
        .map_or_else(|| places.config.join("opencode.env"), PathBuf::from);
    let bytes = host::file::read_private(&path).or_usage()?;
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
