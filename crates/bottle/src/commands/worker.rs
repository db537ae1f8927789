//! `bot-bottle worker`: runs bottles for the servers on a shared database.

use std::path::PathBuf;

use clap::Args;
use shell::Ui;

use super::block_on;
use crate::exit::{Failure, Outcome, SUCCESS};
use crate::flow::fleet::fleet_of;
use crate::flow::home::Home;
use crate::serve::settings::ServeSettings;
use crate::serve::{log, run_worker};

/// Run bottles for `serve` on other machines: claim queued issues of the shared database as far as there is room
///
/// The configuration is that of `serve`; forges, agents and tokens have to be there on this machine too. A worker takes no
/// webhooks and shows no page. SIGTERM lets it claim nothing more, waits `drain_secs` for its bottles, and leaves those that
/// run longer to the next start.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// The configuration; see: bot-bottle config show
    #[arg(long)]
    config: PathBuf,
}

pub(crate) fn cmd_worker(ui: &Ui, args: &WorkerArgs) -> Outcome {
    let home = Home::from_env()?;
    if fleet_of(&home)?.is_none() {
        let words = "a worker needs a database that it shares with bot-bottle serve";
        let remedy = "name it: bot-bottle config set fleet.database postgres://user@host/database";
        return Err(Failure::usage(words).with_remedy(remedy));
    }
    let settings = ServeSettings::load(&args.config)?;
    log::start(&settings, &home);
    block_on(run_worker(ui, home, &args.config, settings))?;
    Ok(SUCCESS)
}
