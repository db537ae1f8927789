//! `bot-bottle logs`: output of the agent in a bottle's newest run.

use clap::Args;
use shell::Ui;
use shell::agent_log::{LogEnd, print_agent_log};

use super::bottle_name::BottleNameArgs;
use crate::exit::{Failure, Outcome, SUCCESS};
use crate::flow::bottle::Bottle;
use crate::flow::home::Home;

/// Show what the agent of the newest run printed
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    name: BottleNameArgs,
    /// Follow the log until the agent has ended
    #[arg(long, short)]
    follow: bool,
}

pub(crate) fn cmd_logs(ui: &Ui, LogsArgs { name, follow }: &LogsArgs) -> Outcome {
    let home = Home::from_env()?;
    let slug = name.find(ui, &home)?;
    let (bottle, record) = Bottle::open(&home, &slug)?;
    let has_log = match bottle.last_run(&record)? {
        Some(dir) => print_agent_log(ui, &dir, LogEnd::follow(*follow))?,
        None => false,
    };
    match has_log {
        true => Ok(SUCCESS),
        false => {
            Err(Failure::not_found(format!("the bottle '{slug}' has no log: no agent was started")))
        }
    }
}
