//! From a manifest to an agent that can be started. Everything that can be wrong with it is found here.

use std::path::Path;

use egress::model_route::Caps;
use engine::agent_plan::{AgentOptions, KeyLocation, ResolvedAgent, resolve_agent};
use model::exit::BottleExit;
use sandbox::backend::BackendKind;
use sandbox::spec::{BoxLimits, MIB, Root};
use shell::agent_settings::{DEFAULT_IMAGE, load_script, price};

use super::home::{Home, ManifestKind};
use crate::exit::{Failure, OrExit};
use crate::rules::agent_manifest::{AgentManifest, LimitsTable};
use crate::rules::bottle_manifest::BottleManifest;

/// Hires the agent of a manifest.
pub(crate) async fn resolve_manifest_agent(
    home: &Home,
    manifest: &AgentManifest,
) -> Result<ResolvedAgent, Failure> {
    let wish = agent_wish(manifest, &home.manifest_dir(ManifestKind::Agents))?;
    let agent = resolve_agent(wish, &home.programs).await.or_exit(BottleExit::Usage)?;
    shell::terminal::hide(agent.secrets());
    Ok(agent)
}

fn agent_wish(manifest: &AgentManifest, folder: &Path) -> Result<AgentOptions, Failure> {
    let mut wish = AgentOptions::new(manifest.provider().or_exit(BottleExit::Usage)?);
    wish.model = manifest.model.clone();
    wish.variant = manifest.variant.clone();
    wish.agent = manifest.persona.clone();
    wish.url = manifest.server.url.clone();
    wish.wire = manifest.server.wire.clone();
    wish.key = key_place(manifest);
    let spend = &manifest.spend;
    wish.caps = Caps { max_usd: spend.max_usd, max_tokens: spend.max_tokens, ..Caps::default() };
    wish.price =
        spend.input_price.zip(spend.output_price).map(|(input, output)| price(input, output));
    wish.policy = manifest.policy().or_exit(BottleExit::Usage)?;
    wish.silence_secs = Some(manifest.limits.silence_secs);
    wish.template = manifest.command.clone();
    let script = manifest.script.as_ref().map(|path| load_script(&folder.join(path)));
    wish.script = script.transpose().or_exit(BottleExit::Usage)?;
    Ok(wish)
}

fn key_place(manifest: &AgentManifest) -> Option<KeyLocation> {
    let server = &manifest.server;
    let file = server.key_file.clone().map(KeyLocation::File);
    let command = || server.key_command.as_deref().map(KeyLocation::command_line);
    file.or_else(command).or_else(|| server.key_env.clone().map(KeyLocation::Variable))
}

/// What the box may use.
pub(crate) fn box_limits(table: &LimitsTable) -> BoxLimits {
    let usual = BoxLimits::default();
    BoxLimits {
        memory_bytes: table.memory_mb.map_or(usual.memory_bytes, |mb| mb * MIB),
        workspace_bytes: table.disk_mb.map_or(usual.workspace_bytes, |mb| mb * MIB),
        pids: table.processes.unwrap_or(usual.pids),
        cpu_percent: table.cpu_percent.unwrap_or(usual.cpu_percent),
        ..usual
    }
}

/// The file system that a box of this bottle sees.
pub(crate) fn root_of(backend: BackendKind, bottle: &BottleManifest) -> Root {
    let image = bottle.image.as_deref().unwrap_or(DEFAULT_IMAGE);
    backend.root(image, bottle.root.as_deref())
}
