//! `bot-bottle doctor`: what this machine offers, which backend would be used and why.

use model::verdict::BottleStatus;
use sandbox::choice;
use serde_json::json;

use super::block_on;
use crate::exit::{OrExit, Outcome, SUCCESS};
use crate::flow::home::{Home, Shelf};
use crate::flow::sealed::DEFAULT_IMAGE;
use crate::ui::Ui;

/// Looks around and tells.
pub(crate) fn run(ui: &Ui) -> Outcome {
    let home = Home::from_env()?;
    let (found, git) = block_on(async {
        let git = host::git::check_version().await;
        Ok((choice::observe(None, DEFAULT_IMAGE).await, git))
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
    ui.event(
        "doctor",
        &json!({
            "git": git_words, "bwrap": found.bwrap, "engine": engine, "backend": backend,
            "gitleaks": scanner, "agents": agents, "bottles": bottles,
        }),
    );
    git.or_exit(BottleStatus::Usage)?;
    chosen.or_exit(BottleStatus::Usage)?;
    Ok(SUCCESS)
}
