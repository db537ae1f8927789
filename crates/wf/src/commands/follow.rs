//! `wf log --follow`: what the agents of the newest run print, until the run has ended.

use std::time::Duration;

use engine::box_dir::BoxDir;
use shell::agent_log::AgentLog;

use super::{App, no_run};
use crate::disk::run_dir::is_held_by_its_process;
use crate::disk::{OpenRun, ProjectDirs, StateFile, Workstream};
use crate::exit::{Failure, OrExit, Outcome, WfExit};

/// Boxes of a run's agents, in the order in which they start.
const AGENT_BOXES: [&str; 3] = ["implement", "implement-anew", "review"];
const PAUSE: Duration = Duration::from_millis(200);

/// Follows the newest run. It ends when the run is closed or its process is dead.
pub(super) fn follow(app: &App, dirs: &ProjectDirs, workstream: &Workstream) -> Outcome {
    let id = &workstream.meta.id;
    let newest = OpenRun::load(dirs, id)?.map(|run| (run.directory, Some(run.stem)));
    let last = || workstream.meta.last_run_id.clone().map(|name| (name, None));
    let (mut directory, stem) = newest.or_else(last).ok_or_else(|| no_run(id))?;
    let box_dir = |directory: &str, name| {
        BoxDir::new(dirs.runs_dir().join(directory).join("boxes").join(name))
    };
    let mut logs = AGENT_BOXES.map(|name| (name, AgentLog::new(box_dir(&directory, name))));
    loop {
        // Asked before the logs are read: what was printed until the run ended is then all there is.
        let open = OpenRun::load(dirs, id)?.filter(|run| Some(&run.stem) == stem.as_ref());
        let is_open = open.is_some();
        // The directory is renamed once the micro-commit is known.
        directory = open.map_or(directory, |run| run.directory);
        let run_dir = dirs.runs_dir().join(&directory);
        // Other commands lock the workstream too; only the process of the run holds the lock of its directory.
        let is_active = is_open && (is_held_by_its_process(&run_dir) || !run_dir.exists());
        for (name, log) in &mut logs {
            log.set_box_dir(box_dir(&directory, *name));
            log.print_new(&app.ui).or_exit(WfExit::General)?;
        }
        if !is_active {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    logs.iter_mut().for_each(|(_, log)| log.finish(&app.ui));
    match logs.iter().any(|(_, log)| log.has_begun()) {
        true => Ok(WfExit::Success),
        false => {
            Err(Failure::usage(format!("the run {directory} has no log: no agent was started")))
        }
    }
}
