//! What the agent of a run printed, from the start or as it comes.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use engine::box_dir::BoxDir;
use engine::launch::{BoxStatus, box_status};
use model::exit::ExitStatus;
use model::id::BoxName;
use model::redact::RedactingStream;
use run_store::run_dir::RunDir;
use sandbox::spec::BoxOutput;

use crate::failure::{Failure, OrExit};
use crate::terminal;
use crate::ui::Ui;

/// How often a log that is followed is read.
const PAUSE: Duration = Duration::from_millis(200);

/// When printing a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnd {
    Now,
    AgentEnd,
}

impl LogEnd {
    /// From the flag `--follow`.
    pub fn follow(follow: bool) -> Self {
        if follow { Self::AgentEnd } else { Self::Now }
    }
}

/// Prints the output of a run's agent. Returns false if the run has none: no agent was started, and none will be.
pub fn print_agent_log<S: ExitStatus>(
    ui: &Ui,
    dir: &RunDir,
    end: LogEnd,
) -> Result<bool, Failure<S>> {
    let agent = BoxName::parse("agent").or_exit(S::INTERNAL)?;
    let box_dir = BoxDir::new(dir.box_dir(&agent));
    let path = box_dir.stdout(BoxOutput::Log { cap: 0 });
    // A piece may end in the middle of a secret, so a line is held back until it is whole.
    let mut stream = RedactingStream::new(terminal::redactor());
    let mut file = None;
    loop {
        // Before the log is read: what the agent printed until it ended is then all there is.
        let more = end == LogEnd::AgentEnd && may_print_more(&box_dir, dir)?;
        if file.is_none() {
            file = File::open(&path).ok();
        }
        if let Some(file) = &mut file {
            let mut fresh = Vec::new();
            file.read_to_end(&mut fresh).or_exit(S::GENERAL)?;
            ui.page(&String::from_utf8_lossy(&stream.push(&fresh)));
        }
        if !more {
            ui.page(&String::from_utf8_lossy(&stream.finish()));
            return Ok(file.is_some());
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether the agent is at work, or may still be started: a closed run starts none.
fn may_print_more<S: ExitStatus>(box_dir: &BoxDir, dir: &RunDir) -> Result<bool, Failure<S>> {
    Ok(match box_status(box_dir).or_exit(S::GENERAL)? {
        BoxStatus::Running => true,
        BoxStatus::NeverStarted => !dir.is_closed(),
        BoxStatus::Ended(_) | BoxStatus::Orphaned => false,
    })
}
