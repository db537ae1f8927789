//! `bot-bottle orchestrate`: start and resume with the forge's wiring, for whoever listens to the forge; and which bottle
//! works on which issue.

use orchestrator_db::{BottleState, ForgeState, ForgeStateStore};
use serde_json::{Value, json};

use super::{keep, read_prompt};
use crate::cli::{OrchestrateResumeArgs, OrchestrateStartArgs};
use crate::exit::{Failure, OrExit, Outcome, SUCCESS};
use crate::flow::access::ForgeAccess;
use crate::flow::bottle::Bottle;
use crate::flow::home::Home;
use crate::flow::open::{self, ResumeWish, StartWish};
use crate::flow::standing::open_state;
use crate::ui::Ui;

/// `start --headless` with the forge wiring added.
pub(crate) fn start(ui: &Ui, args: OrchestrateStartArgs) -> Outcome {
    let run = || {
        let home = Home::from_env()?;
        let access = ForgeAccess::from_env(&home)?;
        announce(ui, &access);
        let wish = StartWish {
            agent: args.agent,
            bottles: args.bottles,
            prompt: read_prompt(&args.prompt)?,
            terminal: None,
            label: args.label,
            backend: args.backend,
            repo: None,
            claim: None,
        };
        keep(ui, &home, async |keeper| open::start(keeper, wish, Some(access)).await)
    };
    run().map_err(Failure::headless)
}

/// `resume --headless` with the forge wiring added.
pub(crate) fn resume(ui: &Ui, args: OrchestrateResumeArgs) -> Outcome {
    let run = || {
        let home = Home::from_env()?;
        let access = ForgeAccess::from_env(&home)?;
        announce(ui, &access);
        let prompt = read_prompt(&args.prompt)?;
        let wish = ResumeWish {
            slug: args.slug,
            prompt,
            terminal: None,
            backend: args.backend,
            claim: None,
        };
        keep(ui, &home, async |keeper| open::resume(keeper, wish, Some(access)).await)
    };
    run().map_err(Failure::headless)
}

/// Whose word counted is part of the log, because it is in no manifest.
fn announce(ui: &Ui, access: &ForgeAccess) {
    let env = &access.env;
    ui.note(&format!("{}/{}#{}, organisation '{}'", env.owner, env.repo, env.issue, env.org));
}

/// Lists active bottles with the pages of their issues and pull requests.
pub(crate) fn status(ui: &Ui) -> Outcome {
    let home = Home::from_env()?;
    let states = open_state(&home)?.all().or_general()?;
    let active = states.into_iter().filter(|state| state.status != BottleState::Destroyed);
    let rows: Vec<Value> = active.map(|state| row(&home, &state)).collect();
    if ui.is_json() {
        ui.document(&rows);
        return Ok(SUCCESS);
    }
    let cells = |row: &Value| {
        let names = ["slug", "status", "agent", "issue_url", "pull_url", "last_checkin_at"];
        names.map(|name| row[name].as_str().unwrap_or("-").to_owned()).to_vec()
    };
    let head = ["SLUG", "STATUS", "AGENT", "ISSUE", "PULL REQUEST", "LAST HEARD"];
    ui.table(&head, rows.iter().map(cells));
    Ok(SUCCESS)
}

/// Addresses are made from the bottle's own record: the state knows numbers.
fn row(home: &Home, state: &ForgeState) -> Value {
    let record = Bottle::open(home, &state.slug).ok().map(|(_, record)| record);
    let env = record.and_then(|record| record.forge);
    json!({
        "slug": state.slug, "status": state.status.name(), "agent": state.agent_name,
        "bottles": state.bottle_names, "backend": state.backend_name,
        "owner": state.key.owner, "repo": state.key.repo, "issue": state.key.issue_number,
        "pull": state.pr_number, "last_checkin_at": state.last_checkin_at.to_string(),
        "issue_url": env.as_ref().map(crate::rules::forge_env::ForgeEnv::issue_url),
        "pull_url": env.as_ref().zip(state.pr_number).map(|(env, number)| env.pull_url(number)),
    })
}
