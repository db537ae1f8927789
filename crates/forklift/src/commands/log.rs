//! `forklift log`: what the agent of a run printed, from the start or as it comes.

use model::exit::ForkliftExit;
use run_store::run_dir;
use shell::Ui;
use shell::agent_log::{LogEnd, print_agent_log};

use super::Places;
use crate::exit::{Failure, OrExit, Outcome};

/// Shows the log. Following ends when the box has ended and everything was shown.
pub(crate) fn run(ui: &Ui, name: &str, follow: bool) -> Outcome {
    let dir = run_dir::find(&Places::from_env()?.runs, name).or_exit(ForkliftExit::Usage)?;
    if print_agent_log(ui, &dir, LogEnd::follow(follow))? {
        return Ok(ForkliftExit::Success);
    }
    Err(Failure::usage(format!("the run {} has no log: no agent was started", dir.id())))
}
