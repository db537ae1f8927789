//! `wf log --follow`: what the agents of the newest run print, until the run has ended.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use engine::box_dir::BoxDir;
use sandbox::spec::BoxOutput;
use shell::Ui;

use super::{App, no_run};
use crate::disk::run_dir::is_held_by_its_process;
use crate::disk::{OpenRun, ProjectDirs, StateFile, Workstream};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};

/// Boxes of a run's agents, in the order in which they start.
const AGENT_BOXES: [&str; 3] = ["implement", "implement-anew", "review"];
const PAUSE: Duration = Duration::from_millis(200);

/// Follows the newest run. It ends when the run is closed or its process is dead.
pub(super) fn follow(app: &App, dirs: &ProjectDirs, workstream: &Workstream) -> Outcome {
    let id = &workstream.meta.id;
    let newest = OpenRun::load(dirs, id)?.map(|run| (run.directory, Some(run.stem)));
    let last = || workstream.meta.last_run_id.clone().map(|name| (name, None));
    let (mut directory, stem) = newest.or_else(last).ok_or_else(|| no_run(id))?;
    let mut logs = AGENT_BOXES.map(|name| AgentLog { name, file: None, rest: Vec::new() });
    loop {
        // Asked before the logs are read: what was printed until the run ended is then all there is.
        let open = OpenRun::load(dirs, id)?.filter(|run| Some(&run.stem) == stem.as_ref());
        let is_open = open.is_some();
        // The directory is renamed once the micro-commit is known.
        directory = open.map_or(directory, |run| run.directory);
        let run_dir = dirs.runs_dir().join(&directory);
        // Other commands lock the workstream too; only the process of the run holds the lock of its directory.
        let is_active = is_open && (is_held_by_its_process(&run_dir) || !run_dir.exists());
        for log in &mut logs {
            log.print_new(&app.ui, &run_dir, is_active)?;
        }
        if !is_active {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    match logs.iter().any(|log| log.file.is_some()) {
        true => Ok(WfExit::Success),
        false => {
            Err(Failure::usage(format!("the run {directory} has no log: no agent was started")))
        }
    }
}

struct AgentLog {
    name: &'static str,
    file: Option<File>,
    /// The start of a line that is not whole yet: it may end in the middle of a secret.
    rest: Vec<u8>,
}

impl AgentLog {
    fn print_new(&mut self, ui: &Ui, run_dir: &Path, is_active: bool) -> WfResult<()> {
        if self.file.is_none() {
            let box_dir = BoxDir::new(run_dir.join("boxes").join(self.name));
            self.file = File::open(box_dir.stdout(BoxOutput::Log { cap: 0 })).ok();
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        file.read_to_end(&mut self.rest).or_exit(WfExit::General)?;
        let whole = self.rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let end = if is_active { whole } else { self.rest.len() };
        let printed: Vec<u8> = self.rest.drain(..end).collect();
        ui.page(&String::from_utf8_lossy(&printed));
        Ok(())
    }
}
