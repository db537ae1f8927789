//! `bot-bottle start` and `bot-bottle resume`: one prompt, without a person beside it.

use super::{keep, read_prompt};
use crate::cli::{ResumeArgs, StartArgs};
use crate::exit::{Failure, Outcome};
use crate::flow::home::Home;
use crate::flow::open::{self, ResumeWish, StartWish};
use crate::ui::Ui;

/// Said by both where a terminal was wanted.
const HEADLESS_ONLY: &str = "a bottle has no terminal: give --headless and --prompt; look into it with 'bot-bottle logs -f' and 'bot-bottle exec'";

/// Starts a bottle.
pub(crate) fn start(ui: &Ui, args: StartArgs) -> Outcome {
    let prompt = headless_prompt(args.headless, args.prompt.as_deref())?;
    let wish = StartWish {
        agent: args.agent,
        bottles: args.bottles,
        prompt,
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
    let prompt = headless_prompt(args.headless, args.prompt.as_deref())?;
    let wish = ResumeWish { slug: args.slug, prompt, backend: args.backend, claim: None };
    let run = || {
        let home = Home::from_env()?;
        keep(ui, &home, async |keeper| open::resume(keeper, wish, None).await)
    };
    run().map_err(Failure::headless)
}

fn headless_prompt(headless: bool, prompt: Option<&str>) -> Result<String, Failure> {
    match (headless, prompt) {
        (true, Some(prompt)) => read_prompt(prompt),
        (true, None) => Err(Failure::usage("--headless needs --prompt TEXT, @file or -")),
        (false, _) => Err(Failure::usage(HEADLESS_ONLY)),
    }
}
