//! `wf man`: the manual page, made from the same words as the help.

use model::exit::WfExit;

use super::App;
use crate::exit::{OrExit, Outcome};

/// Renders it as roff.
pub(crate) fn run(app: &App, command: clap::Command) -> Outcome {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).or_exit(WfExit::General)?;
    app.ui.page(&String::from_utf8_lossy(&page));
    Ok(WfExit::Success)
}
