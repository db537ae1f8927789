//! Output of a run's agent, from the start or as it comes: as a person reads it, or for scripts as the agent printed it.

use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

use engine::agent_log::LogText;
use engine::box_dir::BoxDir;
use engine::launch::{BoxStatus, box_status};
use engine::run::is_alive;
use model::exit::ExitStatus;
use model::id::BoxName;
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
    let mut idle_reads = 0;
    let mut log = AgentLog::new(box_dir.clone());
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
        log.print_new(ui).or_exit(S::GENERAL)?;
        if !more {
            log.finish(ui);
            return Ok(log.has_begun());
        }
        std::thread::sleep(PAUSE);
    }
}

/// The log of one agent's box, printed as it grows.
#[derive(Debug)]
pub struct AgentLog {
    box_dir: BoxDir,
    file: Option<File>,
    /// `None` while the box has not begun, and for a program without events.
    text: Option<LogText>,
    /// The start of a line that is not whole yet: it may end in the middle of a secret.
    rest: Vec<u8>,
}

impl AgentLog {
    pub fn new(box_dir: BoxDir) -> Self {
        Self { box_dir, file: None, text: None, rest: Vec::new() }
    }

    /// Goes on in the same box after its folder was renamed.
    pub fn set_box_dir(&mut self, box_dir: BoxDir) {
        self.box_dir = box_dir;
    }

    /// Returns whether there is a log.
    pub fn has_begun(&self) -> bool {
        self.file.is_some()
    }

    /// Prints the whole lines that have come since.
    pub fn print_new(&mut self, ui: &Ui) -> io::Result<()> {
        if self.file.is_none() {
            self.file = File::open(self.box_dir.stdout(BoxOutput::Log { cap: 0 })).ok();
            self.text = LogText::of_box(&self.box_dir).filter(|_| !ui.is_json());
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let known = self.rest.len();
        file.read_to_end(&mut self.rest)?;
        if let Some(text) = self.text.as_mut().filter(|_| self.rest.len() > known) {
            text.read_times(&self.box_dir);
        }
        let whole = self.rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        self.print(ui, whole);
        Ok(())
    }

    /// Prints what is left when nothing more will come.
    pub fn finish(&mut self, ui: &Ui) {
        self.print(ui, self.rest.len());
        if let Some(text) = &self.text {
            ui.page(&text.finish());
        }
    }

    fn print(&mut self, ui: &Ui, end: usize) {
        let lines: Vec<u8> = self.rest.drain(..end).collect();
        let lines = String::from_utf8_lossy(&lines);
        let Some(text) = &mut self.text else { return ui.page(&redacted(&lines)) };
        for line in lines.split_inclusive('\n') {
            // Before a line is shortened, so that no part of a secret is left.
            ui.page(&text.push_line(&redacted(line)));
        }
    }
}

fn redacted(text: &str) -> String {
    terminal::redactor().redact(text).into_owned()
}
