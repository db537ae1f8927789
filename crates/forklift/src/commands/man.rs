//! `forklift man`: the manual page, made from the same words as the help.

use model::exit::ForkliftExit;

use crate::exit::{OrExit, Outcome};
use crate::ui::Ui;

/// Renders it as roff.
pub(crate) fn run(ui: &Ui, command: clap::Command) -> Outcome {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).or_exit(ForkliftExit::Machine)?;
    ui.page(&String::from_utf8_lossy(&page));
    Ok(ForkliftExit::Success)
}
