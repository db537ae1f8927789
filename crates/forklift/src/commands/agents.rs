//! `forklift agents`: the programs of agents on this machine.

use agent::Provider;
use clap::Subcommand;
use clap_complete::engine::ArgValueCandidates;
use engine::install;
use host::signal::cancel_on_signals;
use model::exit::ForkliftExit;
use serde_json::json;
use shell::Ui;
use shell::agent_choice::complete_programs;

use super::{ForkliftDirs, block_on};
use crate::exit::{Failure, OrExit, Outcome};

/// Install or list the programs of agents.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// Install an agent's program from npm, in the version that forklift was made for
    Install {
        /// opencode, codex, claude or pi
        #[arg(add = ArgValueCandidates::new(complete_programs))]
        name: String,
    },
    /// Show which programs are installed
    List,
}

pub(crate) fn cmd_agents(ui: &Ui, command: &AgentsCommand) -> Outcome {
    match command {
        AgentsCommand::Install { name } => install(ui, name),
        AgentsCommand::List => list(ui),
    }
}

fn list(ui: &Ui) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    for provider in Provider::all() {
        let Some(program) = provider.program() else { continue };
        let own = install::find(&places.agents, &program).map(|found| found.mount.host);
        let on_path = || install::find_any(&places.agents, &program).map(|found| found.mount.host);
        let is_own = own.is_some();
        let folder = own.or_else(on_path);
        let words = match &folder {
            Some(folder) if is_own => format!("{} in {}", program.version, folder.display()),
            Some(folder) => {
                format!("{}, your own; forklift was made for {}", folder.display(), program.version)
            }
            None => format!(
                "{} not installed; forklift agents install {}",
                program.version, program.name
            ),
        };
        ui.result(provider.name(), &words);
        let fields = json!({"name": provider.name(), "version": program.version, "folder": folder});
        ui.event("agent", &fields);
    }
    Ok(ForkliftExit::Success)
}

fn install(ui: &Ui, name: &str) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let program = Provider::parse(name).ok().and_then(Provider::program).ok_or_else(|| {
        let known = Provider::all().filter(|it| it.program().is_some());
        let known: Vec<&str> = known.map(Provider::name).collect();
        let name = name.escape_debug();
        Failure::usage(format!(
            "'{name}' is no agent with a program to install; choose one of: {}",
            known.join(", ")
        ))
    })?;
    ui.phase("install", &format!("installing {} with npm", program.spec()));
    let installed = block_on(async {
        let cancel = cancel_on_signals().or_machine()?;
        install::install(&places.agents, &program, &cancel).await.or_machine()
    })?;
    ui.result(name, &format!("{} in {}", program.version, installed.mount.host.display()));
    Ok(ForkliftExit::Success)
}
