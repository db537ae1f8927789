//! `forklift doctor`: what this machine offers, and whether a run would work: a box is started, and agents are asked.

use std::path::Path;

use agent::Provider;
use clap::Args;
use model::exit::ForkliftExit;
use serde_json::json;
use shell::Ui;
use shell::agent_settings::DEFAULT_IMAGE;
use shell::doctor::{DoctorOptions, Finding, MachineReport, check_findings, show_findings};

use super::request::{find_agent, has_env_file};
use super::run_args::{NameArgs, RunArgs};
use super::{ForkliftDirs, block_on};
use crate::exit::{Failure, Outcome};
use crate::flow::observe::{find_repo, fork_directory, require_remotes};

/// Try what a run needs: git, a box, its egress and limits, the agent and its key, the checkout here
///
/// Ends with a status other than 0 if a run would fail, with the reason and the remedy.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The image to look for
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    image: String,
}

/// Shows the findings; fails if no run could start here.
pub(crate) fn cmd_doctor(ui: &Ui, args: &DoctorArgs, directory: Option<&Path>) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let (agent, provider) = block_on(async { Ok(check_agent(ui, &places).await) })?;
    let used: Vec<Provider> = provider.into_iter().collect();
    let options = DoctorOptions {
        backend: None,
        image: &args.image,
        runs: &places.runs,
        agents: &places.agents,
        used: &used,
        free_floor_bytes: None,
    };
    let machine = block_on(async { Ok(MachineReport::observe(options).await) })?;
    let mut findings = machine.findings();
    findings.push(agent);
    findings.extend(block_on(async { Ok(check_checkout(&places, directory).await) })?);
    findings.push(Finding::good("runs", places.runs.display().to_string()));
    show_findings(ui, &findings);
    let found = &machine.found;
    ui.event(
        "doctor",
        &json!({
            "git": machine.git_text(), "bwrap": found.bwrap,
            "engine": found.engine.as_ref().map(|engine| &engine.version), "image": found.has_image,
            "backend": machine.chosen.as_ref().ok().map(|choice| choice.kind),
            "reason": machine.backend_text(), "memory": machine.memory, "runs": places.runs,
            "checks": findings,
        }),
    );
    check_findings(&findings)?;
    Ok(ForkliftExit::Success)
}

/// The agent that a run would use, with its key. Without a choice, only a run that needs an agent fails.
async fn check_agent(ui: &Ui, places: &ForkliftDirs) -> (Finding, Option<Provider>) {
    let args = RunArgs::default().with_config(&places.shared);
    let is_chosen = places.shared.agent.is_some() || has_env_file(places);
    match find_agent(&ui.silent(), &args, places).await {
        Ok(found) => {
            let how = if is_chosen { "configured" } else { "the only one that is ready" };
            let text = format!("{}: {how}, and installed with its key", found.name);
            (Finding::good("agent", text), Some(found.agent.provider()))
        }
        Err(failure) => {
            let text = with_hint(&failure);
            let finding = match is_chosen {
                true => Finding::bad("agent", text),
                false => Finding::odd("agent", format!("a run that needs one would fail: {text}")),
            };
            (finding, None)
        }
    }
}

/// The checkout of this folder and its remotes. Another folder is no fault: it may not be the one of the next run.
async fn check_checkout(places: &ForkliftDirs, directory: Option<&Path>) -> Vec<Finding> {
    let found = match fork_directory(directory) {
        Ok(folder) => find_repo(&folder).await,
        Err(failure) => Err(failure),
    };
    let repo = match found {
        Ok(repo) => repo,
        Err(failure) => return vec![Finding::odd("checkout", failure.to_string())],
    };
    let remotes = NameArgs::default().remotes(&places.shared);
    let root = repo.toplevel().unwrap_or(repo.common_dir()).display().to_string();
    vec![match require_remotes(&repo, &remotes) {
        Ok(()) => Finding::good("checkout", root),
        Err(failure) => Finding::bad("checkout", format!("{root}: {failure}")),
    }]
}

fn with_hint(failure: &Failure) -> String {
    match failure.remedy() {
        Some(remedy) => format!("{failure}; {remedy}"),
        None => failure.to_string(),
    }
}
