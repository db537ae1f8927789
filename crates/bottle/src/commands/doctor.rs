//! `bot-bottle doctor`: tries a box on this machine, and checks forge, agents, model servers and the server's file.

use std::path::{Path, PathBuf};

use agent::Provider;
use clap::Args;
use serde_json::json;
use shell::Ui;
use shell::agent_settings::DEFAULT_IMAGE;
use shell::doctor::{DoctorOptions, Finding, MachineReport, check_findings, show_findings};

use super::block_on;
use crate::exit::{Failure, Outcome, SUCCESS};
use crate::flow::checkup::{check_egress, check_forge};
use crate::flow::commit_signer::check_gpg_key;
use crate::flow::fleet_check::check_database;
use crate::flow::home::{Home, ManifestKind};
use crate::flow::travel::check_store;
use crate::serve::repos::Repos;
use crate::serve::settings::ServeSettings;
use crate::serve::web::check as check_web;

/// Name of the server's file where it is looked for.
const SERVE_FILE: &str = "serve.toml";

/// Try what a run needs: git, a box, its egress and limits, agents, the forge, serve.toml
///
/// Ends with a status other than 0 if a run would fail, with the reason and the remedy.
#[derive(Debug, Args)]
pub(crate) struct BottleDoctorArgs {
    /// The configuration of the server [default: serve.toml here or in ~/.bot-bottle, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Reports the checks; fails if runs would fail here.
pub(crate) fn cmd_doctor(ui: &Ui, args: &BottleDoctorArgs) -> Outcome {
    let home = Home::from_env()?;
    let used = used_providers(&home)?;
    let (machine, forge, agents, serve, signing) = block_on(async {
        let forge = check_forge(&home).await;
        let serve = match find_serve_file(args, &home) {
            Some(path) => check_serve_file(&path, &home).await,
            None => Vec::new(),
        };
        let agents = check_egress(&home).await?;
        let options = DoctorOptions {
            backend: None,
            image: DEFAULT_IMAGE,
            runs: &home.bottles,
            agents: &home.programs,
            used: &used,
            free_floor_bytes: None,
        };
        let signing = check_gpg_key(&home).await;
        Ok((MachineReport::observe(options).await, forge, agents, serve, signing))
    })?;
    let mut findings = machine.findings();
    findings.extend(agents);
    findings.extend(serve);
    findings.extend(signing);
    findings.extend(check_database(&home));
    findings.extend(check_store(&home));
    show_findings(ui, &findings);
    let gitleaks = host::tool::which("gitleaks").map(|path| path.display().to_string());
    let alone = "ok   not found; the built-in scan runs alone".to_owned();
    ui.result("gitleaks", &gitleaks.as_ref().map_or(alone, |path| format!("ok   {path}")));
    let (agents, bottles) = (home.names(ManifestKind::Agents)?, home.names(ManifestKind::Bottles)?);
    let listed = |names: &[String], new: &str| match names {
        [] => format!("ok   none yet; write one with: {new}"),
        names => format!("ok   {}", names.join(", ")),
    };
    ui.result("agents", &listed(&agents, "bot-bottle agent new NAME"));
    ui.result("bottles", &listed(&bottles, "bot-bottle bottle new NAME"));
    show_findings(ui, &forge);
    let checks = [findings.as_slice(), forge.as_slice()].concat();
    ui.event(
        "doctor",
        &json!({
            "git": machine.git_text(), "bwrap": machine.found.bwrap,
            "engine": machine.found.engine.as_ref().map(|_| machine.engine_text()),
            "backend": machine.backend_text(), "memory": machine.memory, "gitleaks": gitleaks, "agents": agents, "bottles": bottles,
            "checks": checks,
        }),
    );
    check_findings(&findings)?;
    let bad = forge.iter().filter(|finding| finding.is_bad());
    let names: Vec<&str> = bad.map(|finding| finding.name.as_str()).collect();
    match names.is_empty() {
        true => Ok(SUCCESS),
        false => Err(Failure::usage(format!("runs on the forge would fail: {}", names.join(", ")))),
    }
}

/// Providers of the agents that have a manifest. One that cannot be read is reported elsewhere.
fn used_providers(home: &Home) -> Result<Vec<Provider>, Failure> {
    let provider = |name: &String| home.load_agent(name).ok()?.provider().ok();
    Ok(home.names(ManifestKind::Agents)?.iter().filter_map(provider).collect())
}

/// The server's file that was named, or one where people keep it.
fn find_serve_file(args: &BottleDoctorArgs, home: &Home) -> Option<PathBuf> {
    let usual = [PathBuf::from(SERVE_FILE), home.root.join(SERVE_FILE)];
    args.config.clone().or_else(|| usual.into_iter().find(|path| path.is_file()))
}

async fn check_serve_file(path: &Path, home: &Home) -> Vec<Finding> {
    let checked =
        ServeSettings::load(path).and_then(|settings| check_web(&settings).map(|()| settings));
    match checked {
        Ok(settings) => {
            let repos = settings.repos().len();
            let noun = if repos == 1 { "repository" } else { "repositories" };
            let mut findings =
                vec![Finding::good("serve", format!("{}: {repos} {noun}", path.display()))];
            findings.extend(check_repositories(&settings, home).await);
            findings.extend(check_schedules(&settings, home));
            findings.extend(check_budgets(&settings, home));
            findings
        }
        Err(failure) => vec![Finding::bad("serve", failure.to_string())],
    }
}

/// Repositories that the server would refuse to start with, and those of forges that do not answer now.
async fn check_repositories(settings: &ServeSettings, home: &Home) -> Vec<Finding> {
    let repos = match Repos::load(settings, home) {
        Ok(repos) => repos,
        Err(failure) => return vec![Finding::bad("serve", failure.to_string())],
    };
    let mut findings = Vec::new();
    for repo in repos.all() {
        let words = |failure: &Failure| format!("{}: {failure}", repo.full_name());
        findings.extend(match repo.check().await {
            Ok(()) => None,
            Err(failure) if failure.is_transient() => Some(Finding::odd("serve", words(&failure))),
            Err(failure) => Some(Finding::bad("serve", words(&failure))),
        });
    }
    findings
}

/// Schedules whose agent has no manifest that can be read: they would dispatch nothing.
fn check_schedules(settings: &ServeSettings, home: &Home) -> Vec<Finding> {
    let wrong = settings.schedules.iter().filter_map(|schedule| {
        let failure = home.load_agent(&schedule.agent).err()?;
        Some(Finding::bad("schedule", format!("{}: {failure}", schedule.name)))
    });
    wrong.collect()
}

/// Budgets in which an agent can never run. A manifest that cannot be read is reported elsewhere.
fn check_budgets(settings: &ServeSettings, home: &Home) -> Vec<Finding> {
    let (budget, repos) = (&settings.budget, settings.repos());
    let mut findings = Vec::new();
    for name in home.names(ManifestKind::Agents).unwrap_or_default() {
        let Ok(manifest) = home.load_agent(&name) else { continue };
        let never = budget.never_fitting(&repos, &name, &manifest.spend);
        findings.extend(never.into_iter().map(|words| {
            Finding::bad("budget", format!("{words}; raise it, or lower budget.run"))
        }));
        findings.extend(
            budget.check_agent(&name, &manifest).err().map(|words| Finding::bad("budget", words)),
        );
    }
    findings
}
