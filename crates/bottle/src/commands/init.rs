//! `bot-bottle init`: the agent, its key, and a manifest to start with.

use std::path::Path;

use agent::Provider;
use clap::Args;
use model::exit::BottleExit;
use shell::Ui;
use shell::init::{InitAgent, InitArgs, InitAsker, ask_shared};

use crate::exit::{Failure, OrGeneral, Outcome, SUCCESS};
use crate::flow::home::{Home, ManifestKind};
use crate::rules::agent_manifest::render_template;

/// Prepare bot-bottle: the agent and its key, the forge's token, and a manifest
///
/// Asks a few questions on a terminal; every question has a flag. What is there is kept and is the default, so that it can be
/// run again at any time. The key and the token are named by the commands that print them and are stored nowhere.
///
/// Example: bot-bottle init --yes --provider claude --key-command 'pass show key'
#[derive(Debug, Args)]
pub(crate) struct BottleInitArgs {
    /// The name of the agent's manifest [default: that of the agent]
    #[arg(long, value_name = "NAME")]
    manifest: Option<String>,
    /// The host of the forge whose token is asked for
    #[arg(long, value_name = "HOST")]
    forge: Option<String>,
    #[command(flatten)]
    shared: InitArgs,
}

pub(crate) fn cmd_init(ui: &Ui, args: &BottleInitArgs) -> Outcome {
    let home = Home::from_env()?;
    let asker = InitAsker::new("bot-bottle", &args.shared)?;
    let to = (home.programs.as_path(), args.forge.as_deref());
    // A manifest's name that cannot be is refused before anything is asked.
    if let Some(name) = &args.manifest {
        home.manifest(ManifestKind::Agents, name)?;
    }
    let answers = ask_shared::<BottleExit>("bot-bottle", &args.shared, asker, to)?;
    let chosen = answers.agent.as_ref().map(|agent| {
        let name = args.manifest.as_ref().unwrap_or(&agent.name);
        home.manifest(ManifestKind::Agents, name).map(|path| (agent, name, path))
    });
    let chosen = chosen.transpose()?;
    let mut written = answers.write::<BottleExit>(ui, &home.programs)?;
    if let Some((agent, name, path)) = chosen {
        write_manifest(ui, &home, agent, &path)?;
        ui.result("then", &format!("bot-bottle start {name}"));
        written["manifest"] = path.display().to_string().into();
    }
    ui.event("init", &written);
    Ok(SUCCESS)
}

fn write_manifest(ui: &Ui, home: &Home, agent: &InitAgent, path: &Path) -> Result<(), Failure> {
    if path.exists() {
        ui.result("manifest", &format!("{} is there and stays as it is", path.display()));
        return Ok(());
    }
    // The model of an agent of the configuration stays there.
    let is_provider = Provider::parse(&agent.name).is_ok();
    let model = agent.options.model.as_deref().filter(|_| is_provider);
    let text = render_template(&agent.name, model);
    host::file::create_dirs(home.manifest_dir(ManifestKind::Agents)).or_general()?;
    host::file::write_atomic(path, text.as_bytes(), 0o600).or_general()?;
    ui.result("manifest", &format!("{} is written", path.display()));
    Ok(())
}
