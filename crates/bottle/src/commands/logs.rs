//! `bot-bottle logs`: what the agent of a bottle's newest run printed, from the start or as it comes.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use engine::box_dir::BoxDir;
use engine::launch::{self, BoxStatus};
use model::exit::BottleExit;
use model::id::BoxName;
use sandbox::spec::Output;

use crate::exit::{Failure, OrExit, Outcome, SUCCESS};
use crate::flow::bottle::Bottle;
use crate::flow::home::Home;
use crate::ui::Ui;

/// How often a log that is followed is looked at.
const PAUSE: Duration = Duration::from_millis(200);

/// Shows the log. Following ends when the box has ended and everything was shown.
pub(crate) fn run(ui: &Ui, slug: &str, follow: bool) -> Outcome {
    let (bottle, record) = Bottle::open(&Home::from_env()?, slug)?;
    let none =
        || Failure::not_found(format!("the bottle '{slug}' has no log: no agent was started"));
    let dir = bottle.last_run(&record)?.ok_or_else(none)?;
    let agent = BoxName::parse("agent").or_exit(BottleExit::Internal)?;
    let place = BoxDir::new(dir.box_dir(&agent));
    let path = place.stdout(Output::Log { cap: 0 });
    let mut file = None;
    loop {
        // Looked at before the log is read: what was printed until then is all there is.
        let seen = launch::box_status(&place).or_general()?;
        let waits = match seen {
            BoxStatus::Running => true,
            BoxStatus::NeverStarted => !dir.is_closed(),
            BoxStatus::Ended(_) | BoxStatus::Orphaned => false,
        };
        if file.is_none() {
            file = File::open(&path).ok();
        }
        if let Some(file) = &mut file {
            let mut fresh = Vec::new();
            file.read_to_end(&mut fresh).or_general()?;
            ui.page(&String::from_utf8_lossy(&fresh));
        } else if !(follow && waits) {
            return Err(none());
        }
        if !follow || !waits {
            return Ok(SUCCESS);
        }
        std::thread::sleep(PAUSE);
    }
}
