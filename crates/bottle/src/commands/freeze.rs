//! `bot-bottle freeze` and `bot-bottle stop`: end the agent of a bottle and keep everything.

use super::keep;
use crate::exit::{Outcome, SUCCESS};
use crate::flow::end::{End, end_agent};
use crate::flow::home::Home;
use crate::ui::Ui;

/// Ends the agent, and waits until its run is closed.
pub(crate) fn run(ui: &Ui, slug: &str, end: End) -> Outcome {
    let home = Home::from_env()?;
    keep(ui, &home, async |keeper| end_agent(keeper, slug, end).await)?;
    ui.result("frozen", slug);
    ui.event("frozen", &serde_json::json!({ "slug": slug }));
    Ok(SUCCESS)
}
