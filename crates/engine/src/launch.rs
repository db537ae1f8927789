//! Launching a box, and finding it again: the parent's side of the shim.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use egress::EgressConfig;
use host::env::EnvError;
use host::lock::{FileLock, LockError, LockKind};
use host::process::{ProcessError, Signal, send_signal, spawn_detached};
use model::command::CommandSpec;
use model::secret::Secret;
use sandbox::backend::BackendKind;
use sandbox::docker::{Engine, sweep};
use sandbox::error::SandboxError;
use sandbox::spec::BoxSpec;

use crate::box_dir::{BoxDir, BoxDirError, ShimConfig};
use crate::record::ExitRecord;
use crate::shim::{REDACT_VARIABLE, SHIM_WORD};

/// Variables of the caller that the shim needs to find programs and engines. Nothing else goes along.
const SHIM_VARIABLES: [&str; 5] = ["PATH", "HOME", "DOCKER_HOST", "XDG_RUNTIME_DIR", "TMPDIR"];

/// Between two looks for a shim that is on its way.
const PAUSE: Duration = Duration::from_millis(50);

/// A box could not be launched or found again.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error(transparent)]
    BoxDir(#[from] BoxDirError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The program that runs now cannot be told, so it cannot be started as a shim.
    #[error(transparent)]
    Program(#[from] EnvError),
    /// The container of a shim that was killed could not be removed.
    #[error("could not end the box in {path}, whose shim was killed", path = path.display())]
    Orphan { path: PathBuf, source: Box<SandboxError> },
    #[error("the box in {path} was started before; a box is never run twice", path = path.display())]
    NotNew { path: PathBuf },
    #[error("could not create {path}", path = path.display())]
    Create { path: PathBuf, source: std::io::Error },
}

/// How to start shims.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// The program that is a shim when started so: the product itself with its shim word, or `bottle-shim`.
    pub program: PathBuf,
    /// What stands between the program and the folder of the box.
    pub words: Vec<String>,
    /// Which backend builds the boxes.
    pub backend: BackendKind,
    /// Values that must never be written to a log.
    pub secrets: Vec<Secret>,
}

/// The way out of a box.
#[derive(Debug, Clone)]
pub struct BoxEgress {
    /// What may be reached, and how the model is.
    pub config: EgressConfig,
    /// Variables with the keys that the configuration names. They reach the shim's environment and nothing else, and are
    /// struck out of the box's logs.
    pub keys: Vec<(String, Secret)>,
}

/// What is known about a box that was launched at some time.
#[derive(Debug, Clone, PartialEq)]
pub enum BoxStatus {
    /// No shim was ever started for it.
    NeverStarted,
    /// A shim watches over it.
    Running,
    Ended(Box<ExitRecord>),
    /// Its shim died without leaving a record. On a container engine the container may still run; [`attach`] and
    /// [`end`] remove it.
    Orphaned,
}

impl Launcher {
    /// Shims that are the program that runs now: every product is its own.
    pub fn of_this_program(
        backend: BackendKind,
        secrets: Vec<Secret>,
    ) -> Result<Self, LaunchError> {
        let program = host::env::current_exe()?;
        Ok(Self { program, words: vec![SHIM_WORD.to_owned()], backend, secrets })
    }

    /// Starts a box without a way out. It goes on when the caller ends.
    pub fn launch(&self, spec: &BoxSpec) -> Result<BoxDir, LaunchError> {
        self.start(spec, None)
    }

    /// Starts a box that may reach what `way_out` allows.
    pub fn launch_with_egress(
        &self,
        spec: &BoxSpec,
        egress: &BoxEgress,
    ) -> Result<BoxDir, LaunchError> {
        self.start(spec, Some(egress))
    }

    fn start(&self, spec: &BoxSpec, egress: Option<&BoxEgress>) -> Result<BoxDir, LaunchError> {
        let box_dir = BoxDir::new(&spec.box_dir);
        std::fs::create_dir_all(box_dir.path())
            .map_err(|source| LaunchError::Create { path: box_dir.path().to_path_buf(), source })?;
        // The lock goes from us to the shim without ever being free: there is no moment in which the box seems
        // to be nobody's.
        let lock = FileLock::try_acquire(&box_dir.lock(), LockKind::Exclusive { note: "launch" })?;
        // What an earlier box left is its record, and nothing of it may be written over.
        if box_dir.load_shim()?.is_some() || box_dir.load_exit()?.is_some() {
            return Err(LaunchError::NotNew { path: box_dir.path().to_path_buf() });
        }
        let keys = egress.map_or(&[][..], |egress| &egress.keys);
        let egress = egress.map(|egress| egress.config.clone());
        box_dir.save_config(&ShimConfig { spec: spec.clone(), backend: self.backend, egress })?;
        let log = File::create(box_dir.shim_log())
            .map_err(|source| LaunchError::Create { path: box_dir.shim_log(), source })?;
        spawn_detached(&self.command(&box_dir, keys), lock.into_file(), log)?;
        Ok(box_dir)
    }

    fn command(&self, box_dir: &BoxDir, keys: &[(String, Secret)]) -> CommandSpec {
        let inherited = SHIM_VARIABLES
            .iter()
            .filter_map(|name| host::env::var(name).map(|value| ((*name).to_owned(), value)));
        // Servers repeat keys that they do not know, and a box may print what it was told.
        let secrets = self.secrets.iter().chain(keys.iter().map(|(_, key)| key));
        let values: Vec<&str> = secrets.map(Secret::expose).collect();
        let redact = serde_json::to_string(&values).unwrap_or_default();
        let mut command = CommandSpec::new(&self.program)
            .args(&self.words)
            .arg(box_dir.path())
            .cwd("/")
            .env(REDACT_VARIABLE, redact);
        for (name, value) in inherited {
            command = command.env(name, value);
        }
        for (name, value) in keys {
            command = command.env(name, value.expose());
        }
        command
    }
}

/// Looks at a box without touching it.
pub fn box_status(box_dir: &BoxDir) -> Result<BoxStatus, LaunchError> {
    // The lock first: a shim writes its record before it lets go.
    let held = host::lock::is_held(&box_dir.lock())?;
    match (held, box_dir.load_exit()?) {
        (true, _) => Ok(BoxStatus::Running),
        (false, Some(record)) => Ok(BoxStatus::Ended(Box::new(record))),
        (false, None) if box_dir.load_shim()?.is_some() => Ok(BoxStatus::Orphaned),
        (false, None) => Ok(BoxStatus::NeverStarted),
    }
}

/// Waits until the box has ended, whichever process launched it. The container of a shim that was killed is removed
/// first: until then its agent still works in the folders, and the next box would work beside it.
pub async fn attach(box_dir: &BoxDir) -> Result<ExitRecord, LaunchError> {
    host::lock::wait_released(&box_dir.lock()).await?;
    if let Some(record) = box_dir.load_exit()? {
        return Ok(record);
    }
    let record = lost(box_dir);
    if record.backend == BackendKind::Docker {
        let path = box_dir.path().to_path_buf();
        let orphan = |source| LaunchError::Orphan { path, source: Box::new(source) };
        remove_orphans().await.map_err(orphan)?;
    }
    Ok(record)
}

async fn remove_orphans() -> Result<(), SandboxError> {
    sweep(&Engine::find().await?).await.map(drop)
}

/// Tells the shim to end the box; its record will say `stopped`.
pub fn stop(box_dir: &BoxDir) -> Result<bool, LaunchError> {
    signal(box_dir, Signal::TERM)
}

/// Ends the box and waits until it has ended. A shim that was started this moment has not said yet who it is; it is told
/// as soon as it has.
pub async fn end(box_dir: &BoxDir) -> Result<ExitRecord, LaunchError> {
    let mut waiting = std::pin::pin!(attach(box_dir));
    while !stop(box_dir)? {
        tokio::select! {
            ended = &mut waiting => return ended,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
    waiting.await
}

/// Tells the shim to freeze the box: it is ended, its folders are kept, and its record says `frozen`.
pub fn freeze(box_dir: &BoxDir) -> Result<bool, LaunchError> {
    signal(box_dir, Signal::USR1)
}

fn signal(box_dir: &BoxDir, signal: Signal) -> Result<bool, LaunchError> {
    match box_dir.load_shim()? {
        Some(shim) => Ok(send_signal(&shim.process, signal)?),
        None => Ok(false),
    }
}

/// The record of a box whose shim left none: an infrastructure failure, never the agent's.
fn lost(box_dir: &BoxDir) -> ExitRecord {
    let said = std::fs::read_to_string(box_dir.shim_log()).unwrap_or_default();
    let last = said.lines().last().unwrap_or("it said nothing");
    let backend = box_dir.load_config().map_or(BackendKind::Bwrap, |config| config.backend);
    let shim = box_dir.load_shim().ok().flatten();
    let started_at = shim.map_or_else(host::clock::now, |shim| shim.started_at);
    ExitRecord::infra(backend, started_at, format!("the shim ended without a record ({last})"))
}
