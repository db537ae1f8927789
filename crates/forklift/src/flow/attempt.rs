//! Record of every attempt to bring a fork up to date: written before anything can fail, and ended with how it went.
//!
//! The records are outside the runs, because a sync that cannot fetch, or finds its token unreadable, never has a run.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use host::dirs::Dirs;
use host::lock::{FileLock, LockKind, is_held};
use jiff::Timestamp;
use model::exit::ForkliftExit;
use model::id::{BranchName, RunId};
use run_store::run_dir::{self, RunDir};
use serde_json::json;
use shell::Ui;
use shell::config::Config;

use super::notify::run_notification;
use super::observe::{fork_directory, project_of};
use super::record::ForkRunRecord;
use super::sync_history::run_outcome;
use crate::commands::block_on;
use crate::commands::run_args::{NameArgs, RunArgs};
use crate::exit::{Failure, OrExit, Outcome};
use crate::rules::sync_attempt::{
    AttemptEnd, AttemptLog, AttemptOrder, AttemptProcess, Notification, SyncAttempt,
};
use crate::rules::sync_health::SyncOutcome;

/// End of the names of files that are locked by syncs at work.
const ATTEMPT_LOCK: &str = ".at-work";

/// Tries to get the lock of a log, which is held as long as it takes to write a small file.
const TRIES: usize = 20;

/// Folder of the attempts: one file for each fork.
pub(crate) struct AttemptStore {
    folder: PathBuf,
}

impl AttemptStore {
    pub(crate) fn from_env() -> Result<Self, Failure> {
        let dirs = Dirs::from_env().or_usage()?;
        Ok(Self { folder: dirs.state_home().join("forklift/attempts") })
    }

    fn path(&self, fork: &Path) -> PathBuf {
        let key = model::digest::short_sha256(fork.as_os_str().as_encoded_bytes(), 10);
        self.folder.join(format!("{key}.json"))
    }

    pub(crate) fn knows(&self, fork: &Path) -> bool {
        self.path(fork).exists()
    }

    /// The logs of all forks, and the files that cannot be read.
    pub(crate) fn load_all(&self) -> Result<(Vec<AttemptLog>, Vec<PathBuf>), Failure> {
        let (mut logs, mut unreadable) = (Vec::new(), Vec::new());
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok((logs, unreadable));
            }
            entries => entries.or_machine()?,
        };
        for entry in entries {
            let path = entry.or_machine()?.path();
            if path.extension().is_some_and(|kind| kind == "json") {
                match load(&path) {
                    Some(log) => logs.push(self.with_work(log)),
                    None => unreadable.push(path),
                }
            }
        }
        logs.sort_by(|one, other| one.fork.cmp(&other.fork));
        Ok((logs, unreadable))
    }

    /// Notes which attempts are at work. The lock of a process ends with it, in whichever container it was.
    fn with_work(&self, mut log: AttemptLog) -> AttemptLog {
        for attempt in log.attempts.iter_mut().filter(|attempt| attempt.end.is_none()) {
            attempt.is_at_work = match &attempt.lock_file {
                Some(name) => is_held(&self.folder.join(name)).unwrap_or(false),
                None => {
                    let AttemptProcess { pid, boot } = &attempt.process;
                    *boot == host::proc::boot_id() && host::proc::is_running(*pid)
                }
            };
        }
        log
    }

    /// Locks a file for as long as this process is at work on a fork, and removes those of processes that were killed.
    fn lock_attempt(&self, fork: &Path, began_at: Timestamp) -> Option<FileLock> {
        let own = self.path(fork).with_extension("");
        let prefix = format!("{}.", own.file_name()?.to_str()?);
        std::fs::create_dir_all(&self.folder).ok()?;
        let kind = LockKind::Exclusive { note: "sync" };
        for entry in std::fs::read_dir(&self.folder).ok()?.flatten() {
            let name = entry.file_name();
            let name = name.to_str().unwrap_or_default();
            let is_lock = name.starts_with(&prefix) && name.ends_with(ATTEMPT_LOCK);
            // The lock of a process that is at work cannot be had.
            if is_lock && FileLock::try_acquire(&entry.path(), kind).is_ok() {
                drop(std::fs::remove_file(entry.path()));
            }
        }
        let name =
            format!("{prefix}{}-{}{ATTEMPT_LOCK}", std::process::id(), began_at.as_nanosecond());
        FileLock::try_acquire(&self.folder.join(name), kind).ok()
    }

    /// Place of an attempt that begins now; `None` if the runs cannot be listed.
    fn order(&self, fork: &Path) -> Option<AttemptOrder> {
        let start = format!("{}_", project_of(fork));
        let of_fork = |run: &RunDir| run.id().as_str().starts_with(&start);
        let runs = run_dir::list(&self.folder.with_file_name("runs")).ok()?;
        Some(AttemptOrder { after: runs.into_iter().find(of_fork).map(|run| run.id().clone()) })
    }

    /// Takes a fork back that the user did not want to see any more.
    pub(crate) fn bring_back(&self, fork: &Path) -> Result<(), Failure> {
        match load(&self.path(fork)).is_some_and(|log| log.is_forgotten) {
            true => self.update(fork, |log| log.is_forgotten = false),
            false => Ok(()),
        }
    }

    /// Changes the log of a fork, which begins empty. One that cannot be read is begun again.
    pub(crate) fn update<T>(
        &self,
        fork: &Path,
        change: impl FnOnce(&mut AttemptLog) -> T,
    ) -> Result<T, Failure> {
        host::file::create_dirs(&self.folder).or_machine()?;
        let path = self.path(fork);
        let kind = LockKind::Exclusive { note: "attempt" };
        let lock_path = path.with_extension("lock");
        let mut tries = (1..TRIES).map(|_| FileLock::try_acquire(&lock_path, kind));
        let _lock = match tries.find(Result::is_ok) {
            Some(lock) => lock.or_machine()?,
            None => FileLock::try_acquire(&lock_path, kind).or_machine()?,
        };
        let mut log = load(&path).unwrap_or_else(|| AttemptLog::new(fork.to_path_buf()));
        let changed = change(&mut log);
        let bytes = serde_json::to_vec(&log).or_exit(ForkliftExit::Internal)?;
        host::file::write_atomic(&path, &bytes, 0o600).or_machine()?;
        Ok(changed)
    }
}

fn load(path: &Path) -> Option<AttemptLog> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Place that a sync is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncPlace {
    /// A folder of which nothing is known: only a repository is recorded.
    Folder,
    /// A fork that a list or the command line names as one.
    Listed,
}

/// A sync that is at work, with the record of it. A machine on which it cannot be written is no reason not to sync.
pub(crate) struct RecordedSync {
    store: Option<AttemptStore>,
    fork: PathBuf,
    began_at: Timestamp,
    process: AttemptProcess,
    args: RunArgs,
    /// Held until the end.
    lock: Option<FileLock>,
    pub(crate) notes: SyncNotes,
}

/// Findings of a sync on its way, for its record.
#[derive(Debug, Default)]
pub(crate) struct SyncNotes {
    branch: RefCell<Option<BranchName>>,
    run: RefCell<Option<RunDir>>,
    waits_for_person: Cell<bool>,
}

impl SyncNotes {
    /// The branch of the fork that it is about.
    pub(crate) fn note_branch(&self, branch: &BranchName) {
        self.branch.replace(Some(branch.clone()));
    }

    /// A run that it makes.
    pub(crate) fn note_run(&self, run: &RunDir) {
        self.run.replace(Some(run.clone()));
    }

    /// An earlier result waits for a person, so that nothing is started.
    pub(crate) fn note_waiting(&self) {
        self.waits_for_person.set(true);
    }

    /// The run with its outcome, if it is closed.
    fn run(&self) -> (Option<RunId>, Option<SyncOutcome>) {
        let run = self.run.borrow();
        let Some(run) = run.as_ref() else { return (None, None) };
        let record = ForkRunRecord::load(run).ok().filter(|_| run.is_closed());
        (Some(run.id().clone()), record.map(|record| run_outcome(&record)))
    }
}

impl RecordedSync {
    /// Records that a sync begins in the folder of these options.
    pub(crate) fn begin(ui: &Ui, args: &RunArgs, place: SyncPlace) -> Self {
        let found = fork_directory(args.directory.as_deref()).map(|dir| fork_root(&dir));
        let (fork, is_repository) = found.unwrap_or_default();
        let store = AttemptStore::from_env()
            .ok()
            .filter(|store| is_repository || place == SyncPlace::Listed || store.knows(&fork));
        Self::begin_at(ui, store, fork, args)
    }

    /// The same for a file that lists forks.
    pub(crate) fn begin_list(ui: &Ui, list: &Path, args: &RunArgs) -> Self {
        let list = std::path::absolute(list).unwrap_or_else(|_| list.to_path_buf());
        // A list has no branch of its own.
        let args = RunArgs { names: NameArgs::default(), target: None, ..args.clone() };
        Self::begin_at(ui, AttemptStore::from_env().ok(), list, &args)
    }

    fn begin_at(ui: &Ui, store: Option<AttemptStore>, fork: PathBuf, args: &RunArgs) -> Self {
        // A folder whose name is no text has no runs either; the sync is refused with the reason.
        let store = store.filter(|_| fork.to_str().is_some());
        let process = AttemptProcess { pid: std::process::id(), boot: host::proc::boot_id() };
        let began_at = host::clock::now();
        let (branch, target) = (args.names.main_branch.clone(), args.target.clone());
        let lock = store.as_ref().and_then(|store| store.lock_attempt(&fork, began_at));
        let lock_name = lock.as_ref().and_then(|lock| lock.path().file_name()?.to_str());
        let attempt = SyncAttempt {
            began_at,
            process: process.clone(),
            branch,
            target,
            found_branch: None,
            order: store.as_ref().and_then(|store| store.order(&fork)),
            lock_file: lock_name.map(str::to_owned),
            end: None,
            is_at_work: false,
        };
        if let Some(store) = &store {
            warn_unless_written(ui, store.update(&fork, |log| log.begin(attempt)));
            host::failpoint::hit("sync-begun");
        }
        let (args, notes) = (args.clone(), SyncNotes::default());
        Self { store, fork, began_at, process, args, lock, notes }
    }

    /// Records a sync that was not begun, because the process was stopped before it. Nobody waits for a notification then.
    pub(crate) fn end_unbegun(&self, ui: &Ui, failure: &Failure) {
        self.write_end(ui, Err(failure));
    }

    /// Writes down how the sync ended, and returns whether the user is to be notified.
    fn write_end(&self, ui: &Ui, ended: Result<SyncEnd, &Failure>) -> bool {
        let Some(store) = &self.store else { return false };
        let status = ended.map_or_else(|failure| failure.status, |end| end.status);
        let failure = ended.err();
        let is_deferred =
            failure.is_some_and(Failure::is_held) || self.notes.waits_for_person.get();
        // A person who stops a sync knows about it.
        let is_problem = !is_deferred && status != ForkliftExit::Interrupted;
        let (run, outcome) = self.notes.run();
        let end = AttemptEnd {
            at: host::clock::now(),
            status: status.code(),
            problem: failure.filter(|_| is_problem).map(ToString::to_string),
            is_up_to_date: ended.is_ok_and(|end| end.is_up_to_date),
            is_deferred,
            run,
            outcome,
        };
        let end = (end, self.notes.branch.borrow().clone());
        let ended = store.update(&self.fork, |log| log.end(self.began_at, &self.process, end));
        let is_due = matches!(ended, Ok(Notification::Due));
        warn_unless_written(ui, ended.map(drop));
        if let Some(lock) = &self.lock {
            drop(std::fs::remove_file(lock.path()));
        }
        is_due
    }

    /// Records how the sync ended, and notifies the user about a failure that left no run to do so.
    pub(crate) async fn end(&self, ui: &Ui, ended: Result<SyncEnd, &Failure>) {
        let is_due = self.write_end(ui, ended);
        let (Some(store), Some(failure)) = (&self.store, ended.err().filter(|_| is_due)) else {
            return;
        };
        let status = failure.status;
        let given = self.args.notify_cmd.clone();
        let command = given.or_else(|| Config::load().ok()?.notify.command);
        let Some(command) = command else { return };
        let event = json!({
            "event": "sync_failed", "fork": self.fork, "status": status.code(), "name": status.name(),
            "problem": failure.to_string(), "remedy": failure.remedy(), "next": "forklift status",
        });
        let folder = if self.fork.is_dir() { &self.fork } else { Path::new("/") };
        if run_notification(ui, &command, folder, &event).await {
            let (branch, problem) = (self.args.names.main_branch.clone(), failure.to_string());
            let noted = store.update(&self.fork, |log| log.note_notified(branch, &problem));
            warn_unless_written(ui, noted);
        }
    }
}

fn warn_unless_written(ui: &Ui, written: Result<(), Failure>) {
    if let Err(failure) = written {
        ui.warn(&format!("the attempt is not recorded for 'forklift status': {failure}"));
    }
}

/// The root of the checkout that has a folder, and whether it is a repository, without git: a repository that git refuses to
/// read, or a folder that is gone, has attempts as well.
fn fork_root(dir: &Path) -> (PathBuf, bool) {
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
    let real = std::fs::canonicalize(&absolute).unwrap_or(absolute);
    if let Some(root) = real.ancestors().find(|folder| folder.join(".git").exists()) {
        return (root.to_path_buf(), true);
    }
    let is_bare = ["HEAD", "objects", "refs"].iter().all(|part| real.join(part).exists());
    (real, is_bare)
}

/// Runs a sync with a record of it.
pub(crate) fn recorded(
    ui: &Ui,
    args: &RunArgs,
    sync: impl FnOnce(&SyncNotes) -> Result<SyncEnd, Failure>,
) -> Outcome {
    let record = RecordedSync::begin(ui, args, SyncPlace::Folder);
    let ended = sync(&record.notes);
    block_on(async {
        record.end(ui, ended.as_ref().copied()).await;
        Ok(())
    })?;
    ended.map(|end| end.status)
}

/// End of a sync that did not fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SyncEnd {
    pub(crate) status: ForkliftExit,
    /// There was nothing to do, and no run says so.
    pub(crate) is_up_to_date: bool,
}

impl From<ForkliftExit> for SyncEnd {
    fn from(status: ForkliftExit) -> Self {
        Self { status, is_up_to_date: false }
    }
}
