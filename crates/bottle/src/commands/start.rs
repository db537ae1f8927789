//! `bot-bottle start` and `bot-bottle resume`: one prompt without a person beside it, or the agent's own interface on the
//! terminal of whoever started it.

use engine::terminal::TerminalPlan;

use super::{keep, read_prompt};
use crate::cli::{ResumeArgs, StartArgs};
use crate::exit::{Failure, Outcome};
use crate::flow::home::Home;
use crate::flow::open::{self, ResumeWish, StartWish};
use crate::ui::Ui;

/// Said by both where a terminal was wanted and there is none.
const NO_TERMINAL: &str = "there is no terminal to show the agent on: give --headless and --prompt TEXT, @file or -; look into it with 'bot-bottle logs -f' and 'bot-bottle exec'";

/// Starts a bottle.
pub(crate) fn start(ui: &Ui, args: StartArgs) -> Outcome {
    let asked = Asked::check(ui, args.headless, args.prompt.as_deref())?;
    let wish = StartWish {
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

fn run_start(ui: &Ui, wish: StartWish) -> Outcome {
    let home = Home::from_env()?;
    keep(ui, &home, async |keeper| open::start(keeper, wish, None).await)
}

/// Goes on with a frozen one.
pub(crate) fn resume(ui: &Ui, args: ResumeArgs) -> Outcome {
    let asked = Asked::check(ui, args.headless, args.prompt.as_deref())?;
    let wish = ResumeWish {
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
struct Asked {
    prompt: String,
    terminal: Option<TerminalPlan>,
}

impl Asked {
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
