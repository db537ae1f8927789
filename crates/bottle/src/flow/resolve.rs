//! Resolves manifests: an agent that can be started, and the box that it gets. Every fault of a manifest is found here.

use std::path::Path;

use egress::model_route::Caps;
use engine::agent_plan::{
    AgentOptions, KeyLocation, ResolveAgentError, ResolvedAgent, resolve_agent,
};
use engine::trial::choose_backend;
use model::exit::BottleExit;
use sandbox::backend::BackendKind;
use sandbox::choice::BackendChoice;
use sandbox::spec::{BoxLimits, MIB, Root};
use shell::agent_options::AgentOverrides;
use shell::agent_settings::{DEFAULT_IMAGE, load_script, price};
use shell::config::Config;

use super::home::{Home, ManifestKind};
use super::mounts::check_mounts;
use crate::exit::{Failure, OrExit};
use crate::rules::agent_manifest::{AgentManifest, LimitsTable};
use crate::rules::bottle_manifest::BottleManifest;

/// Everything that is checked before a bottle is made.
pub(super) struct ResolvedBottle {
    pub(super) manifest: AgentManifest,
    pub(super) bottle: BottleManifest,
    pub(super) agent: ResolvedAgent,
    pub(super) choice: BackendChoice,
}

pub(super) async fn resolve_bottle(
    home: &Home,
    manifest: AgentManifest,
    bottles: &[String],
    backend: Option<&str>,
) -> Result<ResolvedBottle, Failure> {
    let bottle = home.load_bottles(bottles)?;
    check_mounts(&bottle)?;
    let wanted: Option<BackendKind> =
        backend.map(str::parse).transpose().or_exit(BottleExit::Usage)?;
    let wanted = wanted.or_else(|| bottle.root.as_ref().map(|_| BackendKind::Bwrap));
    if let Some(root) = bottle.root.as_ref().filter(|root| !root.is_dir()) {
        let message =
            format!("the bottle's root {} is no folder; make it, or name another", root.display());
        return Err(Failure::usage(message));
    }
    let image = bottle.image.as_deref().unwrap_or(DEFAULT_IMAGE);
    let choice = choose_backend(wanted, image, &home.bottles).await.or_exit(BottleExit::Usage)?;
    let agent = resolve_manifest_agent(home, &manifest).await?;
    Ok(ResolvedBottle { manifest, bottle, agent, choice })
}

pub(crate) async fn resolve_manifest_agent(
    home: &Home,
    manifest: &AgentManifest,
) -> Result<ResolvedAgent, Failure> {
    let options = agent_options(manifest, &home.manifest_dir(ManifestKind::Agents))?;
    let agent = resolve_agent(options, &home.programs).await.map_err(|error| {
        let is_key = matches!(error, ResolveAgentError::NoKey { .. });
        let failure = Failure::of(BottleExit::Usage, error);
        match is_key {
            true => failure.with_remedy("in the manifest: key_file or key_command below [server]"),
            false => failure,
        }
    })?;
    shell::terminal::hide(agent.secrets());
    Ok(agent)
}

fn agent_options(manifest: &AgentManifest, folder: &Path) -> Result<AgentOptions, Failure> {
    let spend = &manifest.spend;
    let over = AgentOverrides {
        model: manifest.model.clone(),
        variant: manifest.variant.clone(),
        persona: manifest.persona.clone(),
        url: manifest.server.url.clone(),
        wire: manifest.server.wire.clone(),
        key: key_location(manifest),
        price: spend
            .input_price
            .zip(spend.output_price)
            .map(|(input, output)| price(input, output)),
    };
    let shared = Config::load().or_exit(BottleExit::Usage)?;
    let name = manifest.agent.as_ref().unwrap_or(&manifest.provider);
    let mut options = shared.override_options(name, over).or_exit(BottleExit::Usage)?;
    options.caps = Caps { max_usd: spend.max_usd, max_tokens: spend.max_tokens, ..Caps::default() };
    options.policy = manifest.policy().or_exit(BottleExit::Usage)?;
    options.silence_secs = Some(manifest.limits.silence_secs);
    options.template = manifest.command.clone();
    let script = manifest.script.as_ref().map(|path| load_script(&folder.join(path)));
    options.script = script.transpose().or_exit(BottleExit::Usage)?;
    Ok(options)
}

fn key_location(manifest: &AgentManifest) -> Option<KeyLocation> {
    let server = &manifest.server;
    let file = server.key_file.clone().map(KeyLocation::File);
    let command = || server.key_command.as_deref().map(KeyLocation::command_line);
    file.or_else(command).or_else(|| server.key_env.clone().map(KeyLocation::Variable))
}

/// Limits of a box: the manifest's, else those of the shared configuration.
pub(crate) fn box_limits(table: &LimitsTable) -> Result<BoxLimits, Failure> {
    let usual = Config::load().or_exit(BottleExit::Usage)?.box_limits();
    Ok(BoxLimits {
        memory_bytes: table.memory_mb.map_or(usual.memory_bytes, |mb| mb * MIB),
        workspace_bytes: table.disk_mb.map_or(usual.workspace_bytes, |mb| mb * MIB),
        pids: table.processes.unwrap_or(usual.pids),
        cpu_percent: table.cpu_percent.unwrap_or(usual.cpu_percent),
        ..usual
    })
}

/// The file system that a box of this bottle sees.
pub(crate) fn root_of(backend: BackendKind, bottle: &BottleManifest) -> Root {
    let image = bottle.image.as_deref().unwrap_or(DEFAULT_IMAGE);
    backend.root(image, bottle.root.as_deref())
}
