//! `bot-bottle orchestrate`: start and resume with the forge's wiring, for programs that listen to a forge; and the
//! bottle of each issue.

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use orchestrator_db::{BottleState, ForgeState};
use serde_json::{Value, json};
use shell::Ui;

use super::complete::{agent_names, bottle_names};
use super::{read_prompt, with_home};
use crate::exit::{Failure, OrGeneral, Outcome, SUCCESS};
use crate::flow::access::ForgeAccess;
use crate::flow::bottle::Bottle;
use crate::flow::fleet::open_store;
use crate::flow::home::Home;
use crate::flow::observe::BaseRequest;
use crate::flow::open::{self, PromptRequest, StartRequest};
use crate::rules::forge_env::ForgeEnv;

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

#[derive(Debug, Args)]
pub(crate) struct OrchestrateStartArgs {
    /// The agent's manifest
    #[arg(long, value_name = "AGENT", add = ArgValueCandidates::new(agent_names))]
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

#[derive(Debug, Args)]
pub(crate) struct OrchestrateResumeArgs {
    /// The bottle
    #[arg(long, value_name = "SLUG", add = ArgValueCandidates::new(bottle_names))]
    slug: String,
    /// What is to be done: a text, @file, or - for standard input
    #[arg(long, value_name = "PROMPT")]
    prompt: String,
    /// Where the box comes from this time: docker or bwrap
    #[arg(long, value_name = "BACKEND")]
    backend: Option<String>,
}

pub(crate) fn cmd_orchestrate(ui: &Ui, command: OrchestrateCommand) -> Outcome {
    match command {
        OrchestrateCommand::Start(args) => start(ui, args).map_err(Failure::headless),
        OrchestrateCommand::Resume(args) => resume(ui, args).map_err(Failure::headless),
        OrchestrateCommand::Status => status(ui),
    }
}

fn start(ui: &Ui, args: OrchestrateStartArgs) -> Outcome {
    let OrchestrateStartArgs { agent, bottles, prompt, label, backend } = args;
    let (access, run) = read_request(ui, &prompt, backend)?;
    let request = StartRequest {
        agent,
        bottles,
        label,
        repo: None,
        base: BaseRequest::default(),
        run,
        text: None,
    };
    with_home(ui, async |context| open::start(context, request, Some(access)).await)
}

fn resume(ui: &Ui, args: OrchestrateResumeArgs) -> Outcome {
    let OrchestrateResumeArgs { slug, prompt, backend } = args;
    let (access, request) = read_request(ui, &prompt, backend)?;
    with_home(ui, async |context| open::resume(context, &slug, request, Some(access)).await)
}

/// Reads the forge's variables and the prompt. The note puts the organisation into the log, because no manifest has it.
fn read_request(
    ui: &Ui,
    prompt: &str,
    backend: Option<String>,
) -> Result<(ForgeAccess, PromptRequest), Failure> {
    let access = ForgeAccess::from_env(&Home::from_env()?)?;
    let env = &access.env;
    let issue = format!("{}/{}#{}", env.owner, env.repo, env.issue);
    ui.note(&format!("{issue}, organisation '{}'", env.org));
    let prompt = read_prompt(prompt)?;
    Ok((access, PromptRequest { prompt, backend, ..PromptRequest::default() }))
}

fn status(ui: &Ui) -> Outcome {
    let home = Home::from_env()?;
    let states = open_store(&home)?.forge_states().or_general()?;
    let active = states.into_iter().filter(|state| state.status != BottleState::Destroyed);
    let rows: Vec<Value> = active.map(|state| row(&home, &state)).collect();
    if ui.is_json() {
        ui.document(&rows);
        return Ok(SUCCESS);
    }
    if rows.is_empty() {
        ui.line("No bottle works for a forge. Start one with: bot-bottle orchestrate start, or bot-bottle serve");
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

/// The addresses come from the bottle's record: the database has only numbers.
fn row(home: &Home, state: &ForgeState) -> Value {
    let record = Bottle::open(home, &state.slug).ok().map(|(_, record)| record);
    let env = record.and_then(|record| record.forge);
    json!({
        "slug": state.slug, "status": state.status.name(), "agent": state.agent_name,
        "bottles": state.bottle_names, "backend": state.backend_name,
        "owner": state.key.owner, "repo": state.key.repo, "issue": state.key.issue_number,
        "pull": state.pr_number, "last_checkin_at": state.last_checkin_at.to_string(),
        "issue_url": env.as_ref().map(ForgeEnv::issue_url),
        "pull_url": env.as_ref().zip(state.pr_number).map(|(env, number)| env.pull_url(number)),
    })
}
