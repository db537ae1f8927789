//! `bot-bottle freeze` and `bot-bottle stop`: end the agent of a bottle and keep everything.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use shell::Ui;

use super::bottle_name::find_name;
use super::complete::bottle_names;
use super::with_home;
use crate::exit::{Outcome, SUCCESS};
use crate::flow::end::{End, end_agent};
use crate::flow::home::Home;

#[derive(Debug, Args)]
pub(crate) struct EndArgs {
    /// The bottle: its name, the start of its name, or `last`
    #[arg(add = ArgValueCandidates::new(bottle_names))]
    slug: String,
}

/// Ends the agent, and waits until its run is closed.
pub(crate) fn cmd_end(ui: &Ui, EndArgs { slug }: &EndArgs, end: End) -> Outcome {
    let slug = &find_name(ui, &Home::from_env()?, slug)?;
    with_home(ui, async |context| end_agent(context, slug, end).await)?;
    ui.result("frozen", slug);
    ui.event("frozen", &serde_json::json!({ "slug": slug }));
    Ok(SUCCESS)
}
