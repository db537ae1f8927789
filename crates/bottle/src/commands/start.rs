//! `bot-bottle start` and `bot-bottle resume`: one prompt without a person beside it, or the agent's own interface on the
//! terminal of whoever started it.

use std::path::PathBuf;

use clap::Args;
use engine::terminal::TerminalPlan;

use super::{keep, read_prompt};
use crate::exit::{Failure, Outcome};
use crate::flow::home::Home;
use crate::flow::open::{self, ResumeRequest, StartRequest};
use crate::ui::Ui;

/// Said by both where a terminal was wanted and there is none.
const NO_TERMINAL: &str = "there is no terminal to show the agent on: give --headless and --prompt TEXT, @file or -; look into it with 'bot-bottle logs -f' and 'bot-bottle exec'";

const START_EXAMPLES: &str = "Examples:
  bot-bottle agent new worker                             write a manifest to begin with
  bot-bottle start worker                                 sit at the agent's own interface
  bot-bottle start worker --headless --prompt @task.md    let it work by itself
  git diff | bot-bottle start worker --headless --prompt - --label review";

const RESUME_EXAMPLES: &str = "Examples:
  bot-bottle list                                         find the bottle's name
  bot-bottle resume worker                                sit at it again
  bot-bottle resume worker --headless --prompt 'Add tests.'";

/// Start a new bottle: at your terminal, or headless with one prompt
///
/// Without --headless the agent shows its own interface on this terminal and gets the keys; --prompt is then its first
/// message, and may be left out. With --headless it works on --prompt by itself. Either way it works in a sealed copy of
/// the checkout, and what it commits is taken out and judged when it ends. Returns the agent's status, or 125 if the
/// failure is not the agent's.
#[derive(Debug, Args)]
#[command(after_help = START_EXAMPLES)]
pub(crate) struct StartArgs {
    /// The agent's manifest
    agent: String,
    /// A bottle's manifest, in the place of the agent's own (repeatable)
    #[arg(long = "bottle", value_name = "NAME")]
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
}

/// Resume a frozen bottle: at your terminal, or headless with one more prompt
///
/// The workspace, the agent's files and, where the agent can, its conversation are those of the last run; what is new
/// at origin is brought in first. Returns the agent's status, or 125 if the failure is not the agent's.
#[derive(Debug, Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub(crate) struct ResumeBottleArgs {
    /// The bottle
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

/// Starts a bottle.
pub(crate) fn cmd_start(ui: &Ui, args: StartArgs) -> Outcome {
    let asked = PromptRequest::check(ui, args.headless, args.prompt.as_deref())?;
    let wish = StartRequest {
        agent: args.agent,
        bottles: args.bottles,
        prompt: asked.prompt,
        terminal: asked.terminal,
        label: args.label,
        backend: args.backend,
        repo: args.repo,
        claim: None,
    };
    run_start(ui, wish).map_err(Failure::headless)
}

fn run_start(ui: &Ui, wish: StartRequest) -> Outcome {
    let home = Home::from_env()?;
    keep(ui, &home, async |keeper| open::start(keeper, wish, None).await)
}

/// Resumes a frozen bottle.
pub(crate) fn cmd_resume(ui: &Ui, args: ResumeBottleArgs) -> Outcome {
    let asked = PromptRequest::check(ui, args.headless, args.prompt.as_deref())?;
    let wish = ResumeRequest {
        slug: args.slug,
        prompt: asked.prompt,
        terminal: asked.terminal,
        backend: args.backend,
        claim: None,
    };
    let run = || {
        let home = Home::from_env()?;
        keep(ui, &home, async |keeper| open::resume(keeper, wish, None).await)
    };
    run().map_err(Failure::headless)
}

/// What the agent is asked, and where it shows itself.
struct PromptRequest {
    prompt: String,
    terminal: Option<TerminalPlan>,
}

impl PromptRequest {
    fn check(ui: &Ui, headless: bool, prompt: Option<&str>) -> Result<Self, Failure> {
        match (headless, prompt) {
            (true, Some(prompt)) => Ok(Self { prompt: read_prompt(prompt)?, terminal: None }),
            (true, None) => Err(Failure::usage("--headless needs --prompt TEXT, @file or -")),
            (false, _) if ui.is_json() => {
                Err(Failure::usage("--json needs --headless: a terminal shows no events"))
            }
            (false, Some("-")) => Err(Failure::usage(
                "--prompt - needs --headless: at a terminal the keys are the agent's",
            )),
            (false, prompt) => {
                let terminal =
                    TerminalPlan::observe().ok_or_else(|| Failure::usage(NO_TERMINAL))?;
                let prompt = prompt.map(read_prompt).transpose()?.unwrap_or_default();
                Ok(Self { prompt, terminal: Some(terminal) })
            }
        }
    }
}
