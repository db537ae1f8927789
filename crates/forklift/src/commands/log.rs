//! `forklift log`: output of a run's agent, from the start or as it comes.

use clap::Args;
use model::exit::ForkliftExit;
use run_store::run_dir;
use shell::Ui;
use shell::agent_log::{LogEnd, print_agent_log};

use super::ForkliftDirs;
use crate::exit::{Failure, OrExit, Outcome};

/// Show what a run's agent printed
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// The run's name, or the start of it
    run: String,
    /// Follow the log until the agent has ended
    #[arg(long, short)]
    follow: bool,
}

pub(crate) fn cmd_log(ui: &Ui, args: &LogArgs) -> Outcome {
    let dir = run_dir::find(&ForkliftDirs::from_env()?.runs, &args.run).or_usage()?;
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
