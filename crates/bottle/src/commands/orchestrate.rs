//! `bot-bottle orchestrate`: start and resume with the forge's wiring, for whoever listens to the forge; and which bottle
//! works on which issue.

use clap::{Args, Subcommand};
use orchestrator_db::{BottleState, ForgeState, ForgeStateStore};
use serde_json::{Value, json};

use super::{keep, read_prompt};
use crate::exit::{Failure, OrExit, Outcome, SUCCESS};
use crate::flow::access::ForgeAccess;
use crate::flow::bottle::Bottle;
use crate::flow::home::Home;
use crate::flow::open::{self, ResumeRequest, StartRequest};
use crate::flow::standing::open_state;
use crate::ui::Ui;

const FORGE_VARIABLES: &str = "Variables:
  FORGE_GITEA_API         the API's address, as in https://git.example/api/v1
  FORGE_OWNER             the repository's owner
  FORGE_REPO              the repository's name
  FORGE_ISSUE_NUMBER      the issue; with its pull request, all that the agent may write to
  FORGE_PR_NUMBER         its pull request, if it is not the token's own
  FORGE_ORG               whose members may assign issues [default: bot-bottle]
  FORGE_TRIGGERS          others who may set agents to work, with commas between them
  FORGE_WATCHDOG_TIMEOUT  seconds without a sign of life before the agent is frozen [default: 1800]
  FORGE_KIND, FORGE_URL   github or gitlab, and its front page, in the place of FORGE_GITEA_API
  FORGE_TOKEN             the token; or put it into ~/.bot-bottle/forge-token (mode 0600)";

/// Start, resume and list on behalf of a forge.
#[derive(Debug, Subcommand)]
pub(crate) enum OrchestrateCommand {
    /// Work on an issue in a new bottle: `start --headless` with the forge's wiring
    ///
    /// The issue has to be assigned to a member of FORGE_ORG and labelled `bot-bottle:<agent>`. What the agent commits is
    /// pushed as a branch and opened as a pull request.
    #[command(after_help = FORGE_VARIABLES)]
    Start(OrchestrateStartArgs),
    /// Resume the bottle of an issue: `resume --headless` with the forge's wiring
    ///
    /// The agent is given what people have said since, and what is new at origin. The variables have to name the bottle's
    /// own issue.
    #[command(after_help = FORGE_VARIABLES)]
    Resume(OrchestrateResumeArgs),
    /// List active bottles with the pages of their issues and pull requests
    Status,
}

/// A new bottle for an issue.
#[derive(Debug, Args)]
pub(crate) struct OrchestrateStartArgs {
    /// The agent's manifest
    #[arg(long, value_name = "AGENT")]
    agent: String,
    /// A bottle's manifest, in the place of the agent's own (repeatable)
    #[arg(long = "bottle", value_name = "BOTTLE", num_args = 1..)]
    bottles: Vec<String>,
    /// What is to be done: a text, @file, or - for standard input
    #[arg(long, value_name = "PROMPT")]
    prompt: String,
    /// What the bottle's name is made from [default: agent and issue]
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Where the box comes from: docker or bwrap
    #[arg(long, value_name = "BACKEND")]
    backend: Option<String>,
}

/// A frozen bottle of an issue.
#[derive(Debug, Args)]
pub(crate) struct OrchestrateResumeArgs {
    /// The bottle
    #[arg(long, value_name = "SLUG")]
    slug: String,
    /// What is to be done: a text, @file, or - for standard input
    #[arg(long, value_name = "PROMPT")]
    prompt: String,
    /// Where the box comes from this time: docker or bwrap
    #[arg(long, value_name = "BACKEND")]
    backend: Option<String>,
}

/// Starts, resumes or lists on behalf of a forge.
pub(crate) fn cmd_orchestrate(ui: &Ui, command: OrchestrateCommand) -> Outcome {
    match command {
        OrchestrateCommand::Start(args) => start(ui, args),
        OrchestrateCommand::Resume(args) => resume(ui, args),
        OrchestrateCommand::Status => status(ui),
    }
}

/// `start --headless` with the forge wiring added.
fn start(ui: &Ui, args: OrchestrateStartArgs) -> Outcome {
    let run = || {
        let home = Home::from_env()?;
        let access = ForgeAccess::from_env(&home)?;
        announce(ui, &access);
        let wish = StartRequest {
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
fn resume(ui: &Ui, args: OrchestrateResumeArgs) -> Outcome {
    let run = || {
        let home = Home::from_env()?;
        let access = ForgeAccess::from_env(&home)?;
        announce(ui, &access);
        let prompt = read_prompt(&args.prompt)?;
        let wish = ResumeRequest {
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
fn status(ui: &Ui) -> Outcome {
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
    let head = ["SLUG", "STATUS", "AGENT", "ISSUE", "PULL REQUEST", "LAST CHECK-IN"];
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
