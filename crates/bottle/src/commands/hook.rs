//! `bot-bottle hook`: the webhooks by which a forge reports to `bot-bottle serve`.

use clap::Subcommand;
use serde_json::{Value, json};
use shell::Ui;

use super::block_on;
use crate::exit::{Outcome, SUCCESS};
use crate::flow::home::Home;
use crate::flow::hooks::{HookSite, hook_secrets, installed_hooks};
use crate::rules::hook::HookFile;

#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Make the webhook of a repository, with a fresh secret; one that is there is replaced
    Install {
        /// owner/name on the forge of FORGE_GITEA_API, or the repository's whole address
        repo: String,
        /// Where the forge posts to; a server alone stands for `/webhooks/` with the kind of forge behind it
        #[arg(long, value_name = "URL")]
        url: String,
    },
    /// List the webhooks that were installed from here
    List,
    /// Remove the webhook of a repository and its secret
    Remove {
        /// owner/name on the forge of FORGE_GITEA_API, or the repository's whole address
        repo: String,
    },
}

pub(crate) fn cmd_hook(ui: &Ui, command: &HookCommand) -> Outcome {
    let home = Home::from_env()?;
    match command {
        HookCommand::Install { repo, url } => install(ui, &home, repo, url),
        HookCommand::List => list(ui, &home),
        HookCommand::Remove { repo } => remove(ui, &home, repo),
    }
}

fn install(ui: &Ui, home: &Home, repo: &str, url: &str) -> Outcome {
    let (made, site, fresh) = block_on(async {
        let site = HookSite::open(home, repo).await?;
        let fresh = hook_secrets(home, site.place.kind, &site.place.repo)?.is_empty();
        Ok((site.install(home, url).await?, site, fresh))
    })?;
    let place = &site.place;
    ui.result(
        if fresh { "installed" } else { "replaced" },
        &format!("{} on {}", place.repo, place.host),
    );
    ui.result("url", &made.url);
    if !made.active {
        ui.result("inactive", "the forge says that it does not deliver; look at it there");
    }
    if made.url.starts_with("http://") {
        ui.note("the address has no TLS: what is delivered can be read and held back on the way");
    }
    ui.event(
        "hook",
        &json!({
            "repo": place.repo, "host": place.host, "url": made.url, "id": made.id, "active": made.active,
            "replaced": !fresh,
        }),
    );
    Ok(SUCCESS)
}

fn list(ui: &Ui, home: &Home) -> Outcome {
    let hooks = installed_hooks(home)?;
    let row = |hook: &HookFile| {
        json!({
            "kind": hook.kind, "host": hook.host, "repo": hook.repo, "url": hook.url,
            "confirmed": hook.installed_at.is_some(),
        })
    };
    let rows: Vec<Value> = hooks.iter().map(row).collect();
    if ui.is_json() {
        ui.document(&rows);
        return Ok(SUCCESS);
    }
    if hooks.is_empty() {
        ui.line("No webhooks yet. Install one with: bot-bottle hook install OWNER/REPO --url URL");
        return Ok(SUCCESS);
    }
    let cells = |hook: &HookFile| {
        let state = match hook.installed_at {
            Some(_) => "installed",
            None => "not confirmed; install again",
        };
        let forge = format!("{} ({})", hook.host, hook.kind.word());
        vec![hook.repo.clone(), forge, state.to_owned(), hook.url.clone()]
    };
    ui.table(&["REPOSITORY", "FORGE", "STATE", "POSTS TO"], hooks.iter().map(cells));
    Ok(SUCCESS)
}

fn remove(ui: &Ui, home: &Home, repo: &str) -> Outcome {
    let (removed, site) = block_on(async {
        let site = HookSite::open(home, repo).await?;
        Ok((site.remove(home).await?, site))
    })?;
    let what = match removed {
        0 => "its secret; the forge had no such webhook any more",
        _ => "the webhook and its secret",
    };
    ui.result("removed", &format!("{}: {what}", site.place.repo));
    ui.event("hook", &json!({ "repo": site.place.repo, "removed": removed }));
    Ok(SUCCESS)
}
