//! `bot-bottle start` and `bot-bottle resume`: one headless prompt, or the agent's own interface on the
//! user's terminal.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use engine::terminal::TerminalPlan;
use shell::Ui;

use super::bottle_name::find_name;
use super::complete::{agent_names, bottle_names, manifest_bottle_names};
use super::{read_prompt, with_home};
use crate::exit::{Failure, Outcome};
use crate::flow::context::RunContext;
use crate::flow::home::Home;
use crate::flow::observe::BaseRequest;
use crate::flow::open::{self, PromptRequest, StartRequest};

/// Message of both commands without a terminal.
const NO_TERMINAL: &str = "there is no terminal to show the agent on: give --headless and --prompt TEXT, @file or -; look into it with 'bot-bottle logs -f' and 'bot-bottle exec'";

const START_EXAMPLES: &str = "Examples:
  bot-bottle agent new worker                             write a manifest to begin with
  bot-bottle start worker                                 sit at the agent's own interface
  bot-bottle start worker --headless --prompt @task.md    let it work by itself
  bot-bottle start worker --with-changes                  with what is not committed yet
  git diff | bot-bottle start worker --headless --prompt - --label review";

const RESUME_EXAMPLES: &str = "Examples:
  bot-bottle list                                         find the bottle's name
  bot-bottle resume worker                                sit at it again
  bot-bottle resume worker --headless --prompt 'Add tests.'";

/// Start a new bottle: at your terminal, or headless with one prompt
///
/// Without --headless the agent shows its own interface on this terminal and gets the keys; --prompt is then its first
/// message, and may be left out. With --headless it works on --prompt by itself. Either way it works in a sealed copy of
/// the checkout's HEAD, and what it commits is taken out and judged when it ends: look at it with `bot-bottle diff`, take it
/// with `bot-bottle apply` or `bot-bottle checkout`. Returns the agent's status, or 125 if the failure is not the agent's.
#[derive(Debug, Args)]
#[command(after_help = START_EXAMPLES)]
pub(crate) struct StartArgs {
    /// The agent's manifest
    #[arg(add = ArgValueCandidates::new(agent_names))]
    agent: String,
    /// A bottle's manifest, in the place of the agent's own (repeatable)
    #[arg(long = "bottle", value_name = "NAME", add = ArgValueCandidates::new(manifest_bottle_names))]
    bottles: Vec<String>,
    /// Run without a terminal; needs --prompt
    #[arg(long)]
    headless: bool,
    /// What is to be done: a text, @file, or - for standard input
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// What the bottle's name is made from [default: the agent's name]
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Where the box comes from: docker or bwrap
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// The checkout to work on [default: the one around the current folder]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// What to start from: a branch, a commit, or origin/BRANCH, which is fetched first [default: HEAD of the checkout]
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// Take the uncommitted changes of the checkout along, as one more commit; files that git ignores stay out
    #[arg(long, conflicts_with = "base")]
    with_changes: bool,
}

/// Resume a frozen bottle: at your terminal, or headless with one more prompt
///
/// The workspace, the agent's files and, where the agent can, its conversation are those of the last run; what is new
/// in the branch that the bottle started from is brought in first. Returns the agent's status, or 125 if the failure is not the agent's.
#[derive(Debug, Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub(crate) struct ResumeBottleArgs {
    /// The bottle: its name, the start of its name, or `last`
    #[arg(add = ArgValueCandidates::new(bottle_names))]
    slug: String,
    /// Run without a terminal; needs --prompt
    #[arg(long)]
    headless: bool,
    /// What is to be done: a text, @file, or - for standard input
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Where the box comes from this time: docker or bwrap
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
}

pub(crate) fn cmd_start(ui: &Ui, args: StartArgs) -> Outcome {
    let StartArgs { agent, bottles, headless, prompt, label, backend, .. } = args;
    let (repo, base) =
        (args.repo, BaseRequest { base: args.base, with_changes: args.with_changes });
    let run = read_request(ui, headless, prompt.as_deref(), backend)?;
    let request = StartRequest { agent, bottles, label, repo, base, run, text: None };
    let start = async |context: RunContext<'_>| open::start(context, request, None).await;
    with_home(ui, start).map_err(Failure::headless)
}

pub(crate) fn cmd_resume(ui: &Ui, args: ResumeBottleArgs) -> Outcome {
    let ResumeBottleArgs { slug, headless, prompt, backend } = args;
    let request = read_request(ui, headless, prompt.as_deref(), backend)?;
    let slug = Home::from_env().and_then(|home| find_name(ui, &home, &slug));
    let slug = slug.map_err(Failure::headless)?;
    let resume = async |context: RunContext<'_>| open::resume(context, &slug, request, None).await;
    with_home(ui, resume).map_err(Failure::headless)
}

fn read_request(
    ui: &Ui,
    headless: bool,
    prompt: Option<&str>,
    backend: Option<String>,
) -> Result<PromptRequest, Failure> {
    let (prompt, terminal) = match (headless, prompt) {
        (true, Some(prompt)) => (read_prompt(prompt)?, None),
        (true, None) => {
            return Err(Failure::usage("--headless needs --prompt TEXT, @file or -"));
        }
        (false, _) if ui.is_json() => {
            return Err(Failure::usage("--json needs --headless: a terminal shows no events"));
        }
        (false, Some("-")) => {
            return Err(Failure::usage(
                "--prompt - needs --headless: at a terminal the keys are the agent's",
            ));
        }
        (false, prompt) => {
            let terminal = TerminalPlan::observe().ok_or_else(|| Failure::usage(NO_TERMINAL))?;
            (prompt.map(read_prompt).transpose()?.unwrap_or_default(), Some(terminal))
        }
    };
    Ok(PromptRequest { prompt, terminal, backend, ..PromptRequest::default() })
}
