//! `bot-bottle freeze` and `bot-bottle stop`: end the agent of a bottle and keep everything.

use clap::Args;

use super::keep;
use crate::exit::{Outcome, SUCCESS};
use crate::flow::end::{End, end_agent};
use crate::flow::home::Home;
use crate::ui::Ui;

/// End the agent of a bottle and keep everything, to resume later
#[derive(Debug, Args)]
pub(crate) struct FreezeArgs {
    /// The bottle
    slug: String,
}

/// End the agent of a bottle for good; its work is kept and not published
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The bottle
    slug: String,
}

/// Freezes a bottle.
pub(crate) fn cmd_freeze(ui: &Ui, args: &FreezeArgs) -> Outcome {
    end(ui, &args.slug, End::Freeze)
}

/// Stops the agent of a bottle.
pub(crate) fn cmd_stop(ui: &Ui, args: &StopArgs) -> Outcome {
    end(ui, &args.slug, End::Stop)
}

/// Ends the agent, and waits until its run is closed.
fn end(ui: &Ui, slug: &str, end: End) -> Outcome {
    let home = Home::from_env()?;
    keep(ui, &home, async |keeper| end_agent(keeper, slug, end).await)?;
    ui.result("frozen", slug);
    ui.event("frozen", &serde_json::json!({ "slug": slug }));
    Ok(SUCCESS)
}
