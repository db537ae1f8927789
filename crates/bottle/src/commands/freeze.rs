//! `bot-bottle freeze` and `bot-bottle stop`: end the agent of a bottle and keep everything.

use clap::Args;
use shell::Ui;

use super::with_home;
use crate::exit::{Outcome, SUCCESS};
use crate::flow::end::{End, end_agent};

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

pub(crate) fn cmd_freeze(ui: &Ui, args: &FreezeArgs) -> Outcome {
    end(ui, &args.slug, End::Freeze)
}

pub(crate) fn cmd_stop(ui: &Ui, args: &StopArgs) -> Outcome {
    end(ui, &args.slug, End::Stop)
}

/// Ends the agent, and waits until its run is closed.
fn end(ui: &Ui, slug: &str, end: End) -> Outcome {
    with_home(ui, async |context| end_agent(context, slug, end).await)?;
    ui.result("frozen", slug);
    ui.event("frozen", &serde_json::json!({ "slug": slug }));
    Ok(SUCCESS)
}
