//! `bot-bottle doctor`: what this machine offers, which backend would be used and why; and whether forge and models answer.

use model::exit::BottleExit;
use sandbox::choice;
use serde_json::json;

use super::block_on;
use crate::exit::{Failure, OrExit, Outcome, SUCCESS};
use crate::flow::checkup::{FindingState, check_egress, check_forge};
use crate::flow::home::{Home, Shelf};
use crate::flow::sealed::DEFAULT_IMAGE;
use crate::ui::Ui;

/// Looks around and tells.
pub(crate) fn run(ui: &Ui) -> Outcome {
    let home = Home::from_env()?;
    let (found, git, others) = block_on(async {
        let git = host::git::check_version().await;
        let found = choice::observe(None, DEFAULT_IMAGE).await;
        let mut others = check_forge(&home).await;
        others.extend(check_egress(&home).await?);
        Ok((found, git, others))
    })?;
    let chosen = choice::choose(None, &found, DEFAULT_IMAGE);
    let gitleaks = host::tool::which("gitleaks");
    let missing = || "not found".to_owned();
    let git_words = git.as_ref().map_or_else(ToString::to_string, ToString::to_string);
    let backend = match &chosen {
        Ok(choice) => format!("{}: {}", choice.kind, choice.reason),
        Err(error) => error.to_string(),
    };
    ui.result("git", &git_words);
    ui.result(
        "bwrap",
        &found.bwrap.as_ref().map_or_else(missing, |path| path.display().to_string()),
    );
    let engine =
        found.engine.as_ref().map(|engine| format!("{} at {}", engine.version, engine.address));
    ui.result("engine", &engine.clone().unwrap_or_else(|| "none answers".to_owned()));
    ui.result("backend", &backend);
    let scanner = gitleaks.as_ref().map(|path| path.display().to_string());
    ui.result(
        "gitleaks",
        &scanner.clone().unwrap_or_else(|| "not found; the built-in scan runs alone".to_owned()),
    );
    let (agents, bottles) = (home.names(Shelf::Agents)?, home.names(Shelf::Bottles)?);
    ui.result("agents", &agents.join(", "));
    ui.result("bottles", &bottles.join(", "));
    for finding in &others {
        ui.result(finding.name, &finding.words);
    }
    ui.event(
        "doctor",
        &json!({
            "git": git_words, "bwrap": found.bwrap, "engine": engine, "backend": backend,
            "gitleaks": scanner, "agents": agents, "bottles": bottles, "checks": others,
        }),
    );
    git.or_exit(BottleExit::Usage)?;
    chosen.or_exit(BottleExit::Usage)?;
    let bad = others.iter().filter(|finding| finding.state == FindingState::Bad);
    let names: Vec<&str> = bad.map(|finding| finding.name).collect();
    match names.is_empty() {
        true => Ok(SUCCESS),
        false => Err(Failure::usage(format!("runs on the forge would fail: {}", names.join(", ")))),
    }
}
