//! `bot-bottle agent` and `bot-bottle bottle`: the manifests of both kinds.

use agent::Provider;
use clap::Subcommand;
use clap_complete::engine::ArgValueCandidates;
use model::exit::BottleExit;
use serde::Serialize;
use serde_json::json;
use shell::Ui;
use shell::agent_choice::choose_default;
use shell::config::Config;

use super::block_on;
use super::complete::manifest_names;
use crate::exit::{Failure, OrExit, OrGeneral, Outcome, SUCCESS};
use crate::flow::home::{Home, ManifestKind};
use crate::flow::mounts::check_mounts;
use crate::flow::resolve::resolve_manifest_agent;
use crate::rules::agent_manifest::render_template;
use crate::rules::bottle_manifest::BOTTLE_TEMPLATE;

#[derive(Debug, Subcommand)]
pub(crate) enum ManifestCommand {
    /// List the manifests
    List,
    /// Show a manifest
    Show {
        /// Its name
        #[arg(add = ArgValueCandidates::new(manifest_names))]
        name: String,
    },
    /// Check a manifest against this machine
    Check {
        /// Its name
        #[arg(add = ArgValueCandidates::new(manifest_names))]
        name: String,
    },
    /// Write a manifest to start with
    New {
        /// Its name
        name: String,
    },
}

pub(crate) fn cmd_manifest(ui: &Ui, kind: ManifestKind, command: &ManifestCommand) -> Outcome {
    let home = Home::from_env()?;
    match command {
        ManifestCommand::List => list(ui, &home, kind),
        ManifestCommand::Show { name } => match kind {
            ManifestKind::Agents => show(ui, &home, kind, name, &home.load_agent(name)?),
            ManifestKind::Bottles => show(ui, &home, kind, name, &home.load_bottle(name)?),
        },
        ManifestCommand::Check { name } => check(ui, &home, kind, name),
        ManifestCommand::New { name } => make(ui, &home, kind, name),
    }
}

fn list(ui: &Ui, home: &Home, kind: ManifestKind) -> Outcome {
    let names = home.names(kind)?;
    let noun = kind.noun();
    match ui.is_json() {
        true => ui.document(&names),
        false if names.is_empty() => ui.line(&format!(
            "No manifests of {noun}s yet. Write one with: bot-bottle {noun} new NAME"
        )),
        false => names.iter().for_each(|name| ui.page(&format!("{name}\n"))),
    }
    Ok(SUCCESS)
}

/// Shows the file to people, and its parsed content to programs.
fn show(
    ui: &Ui,
    home: &Home,
    kind: ManifestKind,
    name: &str,
    manifest: &impl Serialize,
) -> Outcome {
    match ui.is_json() {
        true => ui.document(manifest),
        false => ui.page(&std::fs::read_to_string(home.manifest(kind, name)?).or_general()?),
    }
    Ok(SUCCESS)
}

/// Finds every fault that a start would find: programs, keys, mounts.
fn check(ui: &Ui, home: &Home, kind: ManifestKind, name: &str) -> Outcome {
    match kind {
        ManifestKind::Agents => {
            let manifest = home.load_agent(name)?;
            block_on(resolve_manifest_agent(home, &manifest))?;
            if let Some(bottle) = &manifest.bottle {
                check_mounts(&home.load_bottle(bottle)?)?;
            }
        }
        ManifestKind::Bottles => {
            check_mounts(&home.load_bottle(name)?)?;
        }
    }
    ui.result("good", name);
    ui.event("good", &json!({ "name": name }));
    Ok(SUCCESS)
}

/// Writes a template; an existing manifest is not replaced.
fn make(ui: &Ui, home: &Home, kind: ManifestKind, name: &str) -> Outcome {
    let path = home.manifest(kind, name)?;
    if path.exists() {
        return Err(Failure::usage(format!(
            "{} is there already; edit it, or choose another name",
            path.display()
        )));
    }
    let text = match kind {
        ManifestKind::Agents => {
            let config = Config::load().or_exit(BottleExit::Usage)?;
            let usual = Provider::Claude.name();
            let agent = choose_default(&config, &home.programs, usual);
            render_template(agent.as_deref().unwrap_or(usual), None)
        }
        ManifestKind::Bottles => BOTTLE_TEMPLATE.to_owned(),
    };
    let folder = home.manifest_dir(kind);
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("could not create {}: {error}", folder.display()))
        .and_then(|()| {
            let written = host::file::write_atomic(&path, text.as_bytes(), 0o600);
            written.map_err(|error| model::error_chain(&error))
        })
        .map_err(|text| Failure::new(BottleExit::General, text))?;
    ui.result("made", &path.display().to_string());
    ui.event("made", &json!({ "name": name, "path": path }));
    Ok(SUCCESS)
}
