//! `bot-bottle serve` and `bot-bottle config`: from webhook to pull request, and the configuration of it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use shell::Ui;
use shell::config::{SharedConfigCommand, cmd_shared_config};

use super::block_on;
use crate::PROGRAM;
use crate::exit::{Outcome, SUCCESS};
use crate::flow::home::Home;
use crate::serve::settings::{EXPLAINED, ServeSettings};
use crate::serve::web::check as check_web;
use crate::serve::{log, run as serve};

/// Serve webhooks, the page and the API: issues become pull requests without a person beside them
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The configuration; see: bot-bottle config show
    #[arg(long)]
    config: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BottleConfigCommand {
    /// Print a configuration of `serve` in which every key is explained
    Show,
    #[command(flatten)]
    Shared(SharedConfigCommand),
    /// Check a configuration of `serve`
    Check {
        /// The file
        file: PathBuf,
    },
}

pub(crate) fn cmd_serve(ui: &Ui, args: &ServeArgs) -> Outcome {
    let home = Home::from_env()?;
    let settings = ServeSettings::load(&args.config)?;
    log::start(&settings, &home);
    block_on(serve(ui, home, &args.config, settings))?;
    Ok(SUCCESS)
}

pub(crate) fn cmd_config(ui: &Ui, command: &BottleConfigCommand) -> Outcome {
    match command {
        BottleConfigCommand::Show if ui.is_json() => ui.document(&json!({ "text": EXPLAINED })),
        BottleConfigCommand::Show => ui.page(EXPLAINED),
        BottleConfigCommand::Shared(command) => cmd_shared_config(ui, &PROGRAM, command)?,
        BottleConfigCommand::Check { file } => {
            let settings = ServeSettings::load(file)?;
            check_web(&settings)?;
            let organisations =
                settings.forges.iter().map(|forge| forge.organisations().count()).sum::<usize>();
            let named = settings.forges.iter().map(|forge| forge.repos.len()).sum::<usize>();
            let repos = named - organisations;
            let words = if repos == 1 { "repository is" } else { "repositories are" };
            ui.result("good", &format!("{repos} {words} served"));
            if organisations > 0 {
                ui.note(&format!(
                    "and the repositories that are found in {organisations} organisations"
                ));
            }
        }
    }
    Ok(SUCCESS)
}
