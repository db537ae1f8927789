//! `forklift log`: what the agent of a run printed, from the start or as it comes.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use engine::box_dir::BoxDir;
use engine::launch::{self, BoxStatus};
use model::exit::ForkliftExit;
use model::id::BoxName;
use sandbox::spec::Output;
use store::run_dir;

use super::Places;
use crate::exit::{Failure, OrExit, Outcome};
use crate::ui::Ui;

/// How often a log that is followed is looked at.
const PAUSE: Duration = Duration::from_millis(200);

/// Shows the log. Following ends when the box has ended and everything was shown.
pub(crate) fn run(ui: &Ui, name: &str, follow: bool) -> Outcome {
    let dir = run_dir::find(&Places::from_env()?.runs, name).or_exit(ForkliftExit::Usage)?;
    let agent = BoxName::parse("agent").or_exit(ForkliftExit::Internal)?;
    let place = BoxDir::new(dir.box_dir(&agent));
    let path = place.stdout(Output::Log { cap: 0 });
    if !follow && !path.exists() {
        return Err(Failure::usage(format!(
            "the run {} has no log: no agent was started",
            dir.id()
        )));
    }
    let mut file = None;
    loop {
        // Looked at before the log is read: what was printed until then is all there is.
        let running = matches!(look(&place)?, BoxStatus::Running | BoxStatus::NeverStarted);
        if file.is_none() {
            file = File::open(&path).ok();
        }
        let mut fresh = Vec::new();
        if let Some(file) = &mut file {
            file.read_to_end(&mut fresh).or_exit(ForkliftExit::Machine)?;
            ui.page(&String::from_utf8_lossy(&fresh));
        }
        if !follow || !running {
            return Ok(ForkliftExit::Success);
        }
        std::thread::sleep(PAUSE);
    }
}

fn look(place: &BoxDir) -> Result<BoxStatus, Failure> {
    launch::box_status(place).or_exit(ForkliftExit::Machine)
}
