//! Background runs: `wf run --detach` starts the same command again as a process of its own session, which survives the
//! terminal. Its record says where it prints to and how it ended; a lock that it holds says whether it lives.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use host::lock::{FileLock, LockError, LockKind};
use jiff::Timestamp;
use model::command::CommandSpec;
use model::exit::WfExit;
use model::id::WorkstreamId;
use serde::{Deserialize, Serialize};
use shell::start::MULTI_CALL;

use crate::disk::{DiskError, ProjectDirs, StateFile, load_json, make_dir};
use crate::exit::{Failure, OrExit, WfResult};
use crate::rules::schema::render_json;

/// The hidden word by which this program starts itself.
pub(crate) const BACKGROUND_WORD: &str = "__wf-background";

/// A run that was started in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackgroundRun {
    /// The command, without the program's name.
    pub(crate) words: Vec<String>,
    /// Output of the command.
    pub(crate) log: PathBuf,
    pub(crate) started: Timestamp,
    /// The exit status; none while it runs, and if it was killed.
    #[serde(default)]
    pub(crate) exit: Option<u8>,
}

impl StateFile for BackgroundRun {
    const SUFFIX: &'static str = "background.json";
}

impl ProjectDirs {
    fn background_lock(&self, id: &WorkstreamId) -> PathBuf {
        self.locks_dir().join(format!("background.{}.{id}.lock", self.project.name))
    }

    /// Reports whether a background run of the workstream lives.
    pub(crate) fn is_in_background(&self, id: &WorkstreamId) -> bool {
        host::lock::is_held(&self.background_lock(id)).unwrap_or(false)
    }
}

/// Starts a command in the background. Returns its process id.
pub(crate) fn start_background(
    dirs: &ProjectDirs,
    id: &WorkstreamId,
    words: Vec<String>,
    here: &Path,
) -> WfResult<i32> {
    make_dir(&dirs.locks_dir())?;
    make_dir(&dirs.state_dir())?;
    let busy = || {
        let message =
            format!("a run of {id} is active; follow it: wf attach {id}, or wf log {id} -f");
        Failure::new(WfExit::Lock, message)
    };
    if dirs.is_running(id) {
        return Err(busy());
    }
    // The lock passes to the new process without ever being free.
    let kind = LockKind::Exclusive { note: "background run" };
    let lock = FileLock::try_acquire(&dirs.background_lock(id), kind);
    let lock = match lock {
        Err(LockError::Held { .. }) => return Err(busy()),
        lock => lock.map_err(DiskError::from)?,
    };
    let log = BackgroundRun::path(dirs, id).with_extension("log");
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true).mode(0o600);
    let file = options.open(&log).map_err(DiskError::io("write", &log))?;
    let run = BackgroundRun { words, log, started: host::clock::now(), exit: None };
    run.save(dirs, id)?;
    let program = host::env::current_exe().or_exit(WfExit::General)?;
    let is_multi_call = program.file_name().is_some_and(|name| name == MULTI_CALL);
    let name = is_multi_call.then_some("wf");
    let spec = CommandSpec::new(&program).args(name).args([BACKGROUND_WORD]);
    let mut spec = spec.args([BackgroundRun::path(dirs, id)]).cwd(here);
    spec.env = host::env::vars_os();
    let child = host::process::spawn_detached_logged(&spec, lock.into_file(), file);
    Ok(child.or_exit(WfExit::General)?.pid)
}

/// Plays the background run of a record to its end, and records how it ended.
pub(crate) fn play_background(
    path: &Path,
    run: impl FnOnce(&[String]) -> u8,
) -> Result<(), String> {
    host::process::become_session_leader().map_err(|error| error.to_string())?;
    let record: Option<BackgroundRun> = load_json(path).map_err(|error| error.to_string())?;
    let mut record = record.ok_or_else(|| format!("{} does not exist", path.display()))?;
    record.exit = Some(run(&record.words));
    let text = render_json(&record);
    host::file::write_atomic(path, text.as_bytes(), 0o600).map_err(|error| error.to_string())
}
