//! `forklift doctor`: what this machine offers, and whether a run would work: a box is started, and agents are asked.

use std::path::Path;

use agent::Provider;
use clap::Args;
use host::git::UserRepo;
use model::exit::ForkliftExit;
use model::id::RemoteName;
use serde_json::json;
use shell::Ui;
use shell::agent_settings::DEFAULT_IMAGE;
use shell::doctor::{DoctorOptions, Finding, MachineReport, check_findings, show_findings};

use super::request::{find_agent, has_env_file};
use super::run_args::{NameArgs, RunArgs};
use super::{ForkliftDirs, block_on};
use crate::exit::{Failure, Outcome};
use crate::flow::observe::{
    RemoteLook, find_push_urls, find_repo, fork_directory, look_at_remote, read_rules,
    require_history, require_remotes,
};
use crate::flow::pull::ForgePlan;
use crate::flow::record::ForkRemotes;

/// Try what a run needs: git, a box, its egress and limits, the agent and its key, the checkout here and its remotes
///
/// Asks both remotes for their branches and fetches nothing. Ends with a status other than 0 if a run would fail for what it
/// tried, with the reason and the remedy. Whether the check of the fork works, it does not try.
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
    if let Err(failure) = require_remotes(&repo, &remotes).and_then(|()| require_history(&repo)) {
        return vec![Finding::bad("checkout", format!("{root}: {}", with_hint(&failure)))];
    }
    let mut findings = vec![Finding::good("checkout", root)];
    let ForkRemotes { origin, upstream } = &remotes;
    let (ours, theirs) = tokio::join!(
        look_at_remote(&repo, origin, "--main-branch BRANCH"),
        look_at_remote(&repo, upstream, "--target BRANCH")
    );
    findings.push(finding("upstream", theirs.as_ref().map(RemoteLook::words)));
    findings.push(finding("origin", ours.as_ref().map(RemoteLook::words)));
    if let Ok(ours) = &ours {
        findings.push(check_rules(&repo, ours).await);
    }
    if let Err(failure) = check_token(&repo, origin, places).await {
        findings.push(Finding::bad("token", with_hint(&failure)));
    }
    findings
}

fn finding(name: &str, looked: Result<String, &Failure>) -> Finding {
    match looked {
        Ok(words) => Finding::good(name, words),
        Err(failure) => Finding::bad(name, with_hint(failure)),
    }
}

/// The rules of the fork, on the branch that origin has now.
async fn check_rules(repo: &UserRepo, ours: &RemoteLook) -> Finding {
    match read_rules(repo, &ours.tip).await {
        Ok(Some(true)) => Finding::good("rules", "FORK.md can be read"),
        Ok(Some(false)) => Finding::good("rules", "none: the fork has no FORK.md"),
        Ok(None) => Finding::odd(
            "rules",
            "FORK.md was not read, because origin has commits that were not fetched; a run fetches them",
        ),
        Err(failure) => Finding::bad("rules", with_hint(&failure)),
    }
}

/// Finds the token for the place that is pushed to. Having none is no fault: then no pull request is opened.
async fn check_token(
    repo: &UserRepo,
    origin: &RemoteName,
    places: &ForkliftDirs,
) -> Result<(), Failure> {
    let urls = find_push_urls(repo, origin).await?;
    ForgePlan::find(&urls.first, places).map(drop)
}

fn with_hint(failure: &Failure) -> String {
    match failure.remedy() {
        Some(remedy) => format!("{failure}; {remedy}"),
        None => failure.to_string(),
    }
}
