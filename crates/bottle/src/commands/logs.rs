//! `bot-bottle logs`: output of the agent in a bottle's newest run.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use shell::Ui;
use shell::agent_log::{LogEnd, print_agent_log};

use super::complete::bottle_names;
use crate::exit::{Failure, Outcome, SUCCESS};
use crate::flow::bottle::Bottle;
use crate::flow::home::Home;

/// Show what the agent of the newest run printed
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The bottle
    #[arg(add = ArgValueCandidates::new(bottle_names))]
    slug: String,
    /// Follow the log until the agent has ended
    #[arg(long, short)]
    follow: bool,
}

pub(crate) fn cmd_logs(ui: &Ui, LogsArgs { slug, follow }: &LogsArgs) -> Outcome {
    let (bottle, record) = Bottle::open(&Home::from_env()?, slug)?;
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
