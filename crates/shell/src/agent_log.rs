//! Output of a run's agent, from the start or as it comes.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use engine::box_dir::BoxDir;
use engine::launch::{BoxStatus, box_status};
use engine::run::is_alive;
use model::exit::ExitStatus;
use model::id::BoxName;
use model::redact::RedactingStream;
use run_store::run_dir::RunDir;
use sandbox::spec::BoxOutput;

use crate::failure::{Failure, OrExit};
use crate::terminal;
use crate::ui::Ui;

/// Time between two reads of a log that is followed.
const PAUSE: Duration = Duration::from_millis(200);

/// Reads without a process at work on the run after which none is expected: a new run has none for a moment.
const IDLE_READS_MAX: u32 = 10;

/// End of printing a log.
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

/// Prints the output of a run's agent. Returns false if the run has none: no agent was started, and none will be unless
/// another process continues the run.
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
    let (mut file, mut idle_reads) = (None, 0);
    loop {
        // Before the log is read: what the agent printed until it ended is then all there is.
        let more = end == LogEnd::AgentEnd
            && match box_status(&box_dir).or_exit(S::GENERAL)? {
                BoxStatus::Running => true,
                BoxStatus::NeverStarted => {
                    idle_reads =
                        if is_alive(dir).or_exit(S::GENERAL)? { 0 } else { idle_reads + 1 };
                    idle_reads < IDLE_READS_MAX && !dir.is_closed()
                }
                BoxStatus::Ended(_) | BoxStatus::Orphaned => false,
            };
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
