//! `bot-bottle serve` and `bot-bottle config`: from webhook to pull request, and what it is told.

use std::path::Path;

use super::block_on;
use crate::cli::ConfigAction;
use crate::exit::{Outcome, SUCCESS};
use crate::flow::home::Home;
use crate::serve::settings::{EXPLAINED, Settings};
use crate::serve::{log, run as serve};
use crate::ui::Ui;

/// Serves until a signal says to stop.
pub(crate) fn run(ui: &Ui, config: &Path) -> Outcome {
    let home = Home::from_env()?;
    let settings = Settings::load(config)?;
    log::start(&settings, &home);
    block_on(serve(ui, home, settings))?;
    Ok(SUCCESS)
}

/// Shows or checks a configuration.
pub(crate) fn config(ui: &Ui, action: &ConfigAction) -> Outcome {
    match action {
        ConfigAction::Show => ui.page(EXPLAINED),
        ConfigAction::Check { file } => {
            let settings = Settings::load(file)?;
            let repos = settings.forges.iter().map(|forge| forge.repos.len()).sum::<usize>();
            ui.result("good", &format!("{repos} repositories are served"));
        }
    }
    Ok(SUCCESS)
}
