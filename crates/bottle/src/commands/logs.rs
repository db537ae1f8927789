//! `bot-bottle logs`: what the agent of a bottle's newest run printed, from the start or as it comes.

use shell::Ui;
use shell::agent_log::{LogEnd, print_agent_log};

use crate::exit::{Failure, Outcome, SUCCESS};
use crate::flow::bottle::Bottle;
use crate::flow::home::Home;

/// Shows the log. Following ends when the box has ended and everything was shown.
pub(crate) fn run(ui: &Ui, slug: &str, follow: bool) -> Outcome {
    let (bottle, record) = Bottle::open(&Home::from_env()?, slug)?;
    let has_log = match bottle.last_run(&record)? {
        Some(dir) => print_agent_log(ui, &dir, LogEnd::follow(follow))?,
        None => false,
    };
    match has_log {
        true => Ok(SUCCESS),
        false => {
            Err(Failure::not_found(format!("the bottle '{slug}' has no log: no agent was started")))
        }
    }
}
