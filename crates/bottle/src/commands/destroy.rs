//! `bot-bottle destroy`: remove a bottle's workspace and harness state. Its runs and their records stay.

use super::keep;
use crate::exit::{Outcome, SUCCESS};
use crate::flow::end::{Loss, destroy};
use crate::flow::home::Home;
use crate::ui::Ui;

/// Removes it.
pub(crate) fn run(ui: &Ui, slug: &str, loss: Loss) -> Outcome {
    let home = Home::from_env()?;
    keep(ui, &home, async |keeper| destroy(keeper, slug, None, loss).await)?;
    ui.result("destroyed", slug);
    Ok(SUCCESS)
}
