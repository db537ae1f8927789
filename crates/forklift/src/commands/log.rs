//! `forklift log`: output of a run's agent, from the start or as it comes.

use std::path::Path;

use clap::Args;
use model::exit::ForkliftExit;
use shell::Ui;
use shell::agent_log::{LogEnd, print_agent_log};

use super::ForkliftDirs;
use super::run_name::RunNameArgs;
use crate::exit::{Failure, Outcome};

/// Show what a run's agent printed
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    run: RunNameArgs,
    /// Follow the log until the agent has ended
    #[arg(long, short)]
    follow: bool,
}

pub(crate) fn cmd_log(ui: &Ui, args: &LogArgs, here: Option<&Path>) -> Outcome {
    let dir = args.run.find(&ForkliftDirs::from_env()?, here)?;
    if print_agent_log(ui, &dir, LogEnd::follow(args.follow))? {
        return Ok(ForkliftExit::Success);
    }
    let id = dir.id();
    if args.follow && !dir.is_closed() {
        let text =
            format!("the run {id} has no log: no agent was started, and no forklift works on it");
        let remedy = format!("finish it with: forklift attach {id}");
        return Err(Failure::usage(text).with_remedy(remedy));
    }
    Err(Failure::usage(format!("the run {id} has no log: no agent was started")))
}
