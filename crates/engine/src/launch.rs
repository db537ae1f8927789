//! Launch of a box, and its status afterwards: the parent's side of the shim.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use egress::EgressConfig;
use host::env::EnvError;
use host::file::FileError;
use host::lock::{FileLock, LockError, LockKind};
use host::process::{ProcessError, Signal, send_signal, spawn_detached_with};
use host::web_proxy::{self, WebProxy};
use model::command::CommandSpec;
use model::secret::Secret;
use sandbox::backend::BackendKind;
use sandbox::error::SandboxError;
use sandbox::spec::BoxSpec;

use crate::box_dir::{BoxDir, ShimConfig};
use crate::lease_file::LeaseFile;
use crate::record::ExitRecord;
use crate::shim::SHIM_WORD;

/// Variables that the shim inherits, to find programs, engines and certificates. Beside them it inherits those that name
/// the proxy of the network, and no others.
const SHIM_VARIABLES: [&str; 7] =
    ["PATH", "HOME", "DOCKER_HOST", "XDG_RUNTIME_DIR", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Time between two looks for a shim that is being started.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The path of the current program is unknown, so it cannot be started as a shim.
    #[error(transparent)]
    Program(#[from] EnvError),
    /// The container of a shim that was killed could not be removed.
    #[error("could not end the box in {path}, whose shim was killed", path = path.display())]
    Orphan { path: PathBuf, source: Box<SandboxError> },
    #[error("the box in {path} was started before; a box is never run twice", path = path.display())]
    NotNew { path: PathBuf },
}

#[derive(Debug, Clone)]
pub struct Launcher {
    /// The product itself with its shim word, or `bottle-shim`.
    pub program: PathBuf,
    /// Arguments before the folder of the box.
    pub words: Vec<String>,
    pub backend: BackendKind,
    /// Values that must never be written to a log.
    pub secrets: Vec<Secret>,
    /// Its boxes end with this lease, whatever becomes of its holder.
    pub lease: Option<LeaseFile>,
}

#[derive(Debug, Clone)]
pub struct BoxEgress {
    pub config: EgressConfig,
    /// Variables with the keys that the configuration names. They reach the shim's environment and nothing else, and are
    /// redacted from the box's logs.
    pub keys: Vec<(String, Secret)>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BoxStatus {
    NeverStarted,
    Running,
    Ended(Box<ExitRecord>),
    /// Its shim died without leaving a record. On a container engine the container may still run; [`attach`] and
    /// [`end`] remove it.
    Orphaned,
}

impl Launcher {
    /// The current program is the shim, as in every product.
    pub fn of_this_program(
        backend: BackendKind,
        secrets: Vec<Secret>,
    ) -> Result<Self, LaunchError> {
        let program = host::env::current_exe()?;
        Ok(Self { program, words: vec![SHIM_WORD.to_owned()], backend, secrets, lease: None })
    }

    /// Starts a box, which outlives the caller. Without egress it reaches nothing.
    pub fn launch(
        &self,
        spec: &BoxSpec,
        egress: Option<&BoxEgress>,
    ) -> Result<BoxDir, LaunchError> {
        let box_dir = BoxDir::new(&spec.box_dir);
        std::fs::create_dir_all(box_dir.path()).map_err(FileError::io("create", box_dir.path()))?;
        // The lock passes from this process to the shim without ever being free.
        let lock = FileLock::try_acquire(&box_dir.lock(), LockKind::Exclusive { note: "launch" })?;
        // The records of an earlier box must not be overwritten.
        if box_dir.load_shim()?.is_some() || box_dir.load_exit()?.is_some() {
            return Err(LaunchError::NotNew { path: box_dir.path().to_path_buf() });
        }
        host::trace::line(|| describe(spec, self.backend));
        let keys = egress.map_or(&[][..], |egress| &egress.keys);
        let egress = egress.map(|egress| egress.config.clone());
        let (spec, lease) = (spec.clone(), self.lease.clone());
        box_dir.save_config(&ShimConfig { spec, backend: self.backend, egress, lease })?;
        let log = box_dir.shim_log();
        let log = File::create(&log).map_err(FileError::io("create", &log))?;
        let command = self.command(&box_dir, keys);
        spawn_detached_with(&command, lock.into_file(), log, &self.redacted(keys))?;
        Ok(box_dir)
    }

    fn command(&self, box_dir: &BoxDir, keys: &[(String, Secret)]) -> CommandSpec {
        let inherited = SHIM_VARIABLES
            .iter()
            .chain(&web_proxy::VARIABLES)
            .filter_map(|name| host::env::var(name).map(|value| ((*name).to_owned(), value)));
        let mut command =
            CommandSpec::new(&self.program).args(&self.words).arg(box_dir.path()).cwd("/");
        for (name, value) in inherited {
            command = command.env(name, value);
        }
        for (name, value) in keys {
            command = command.env(name, value.expose());
        }
        command
    }

    /// The values that must not appear in a log, as a JSON list. A forge's token among them does nothing else in the shim,
    /// so it is not in its environment.
    fn redacted(&self, keys: &[(String, Secret)]) -> Vec<u8> {
        // Servers repeat keys that they do not know, and a box may print their answers.
        let proxy: Vec<Secret> =
            WebProxy::from_env().map(|it| it.secrets().collect()).unwrap_or_default();
        let secrets = self.secrets.iter().chain(keys.iter().map(|(_, key)| key)).chain(&proxy);
        let values: Vec<&str> = secrets.map(Secret::expose).collect();
        serde_json::to_vec(&values).unwrap_or_default()
    }
}

/// Characters of a word in [`describe`].
const WORD_MAX: usize = 80;

/// The box in one line: where it comes from, what it sees, and what it starts.
fn describe(spec: &BoxSpec, backend: BackendKind) -> String {
    let limits = &spec.limits;
    // A prompt is a word of its own, and long.
    let word = |word: &String| match word.chars().nth(WORD_MAX) {
        Some(_) => word.chars().take(WORD_MAX).chain(['…']).collect(),
        None => word.clone(),
    };
    let words: Vec<String> = spec.argv.iter().map(word).collect();
    format!(
        "$ {}  # in a box of {backend}: {}, {} MiB of memory, {} processes, {} s; workspace {}, records {}",
        words.join(" "),
        spec.name,
        limits.memory_bytes / sandbox::spec::MIB,
        limits.pids,
        spec.deadline_secs,
        spec.workspace.display(),
        spec.box_dir.display(),
    )
}

pub fn box_status(box_dir: &BoxDir) -> Result<BoxStatus, LaunchError> {
    // The lock first: a shim writes its record before it releases the lock.
    let held = host::lock::is_held(&box_dir.lock())?;
    match (held, box_dir.load_exit()?) {
        (true, _) => Ok(BoxStatus::Running),
        (false, Some(record)) => Ok(BoxStatus::Ended(Box::new(record))),
        (false, None) if box_dir.load_shim()?.is_some() => Ok(BoxStatus::Orphaned),
        (false, None) => Ok(BoxStatus::NeverStarted),
    }
}

/// Returns whether one of the boxes in a folder is running, whichever process launched it.
pub fn has_running_box(boxes: &Path) -> Result<bool, LaunchError> {
    let Ok(entries) = std::fs::read_dir(boxes) else { return Ok(false) };
    for entry in entries.flatten() {
        if box_status(&BoxDir::new(entry.path()))? == BoxStatus::Running {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Waits until the box has ended, whichever process launched it. The container of a shim that was killed is removed
/// first: until then its agent still works in the folders, and the next box would work beside it.
pub async fn attach(box_dir: &BoxDir) -> Result<ExitRecord, LaunchError> {
    host::lock::wait_released(&box_dir.lock()).await?;
    if let Some(record) = box_dir.load_exit()? {
        return Ok(record);
    }
    let record = lost(box_dir);
    record.backend.remove_orphans().await.map_err(|source| LaunchError::Orphan {
        path: box_dir.path().to_path_buf(),
        source: Box::new(source),
    })?;
    Ok(record)
}

/// Signals the shim to end the box as `stopped`. Returns false if there is no shim.
pub fn stop(box_dir: &BoxDir) -> Result<bool, LaunchError> {
    signal(box_dir, Signal::TERM)
}

/// Ends the box and waits until it has ended. A shim that was just started has not recorded its process yet, and is
/// signalled as soon as it has.
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

/// Signals the shim to end the box as `frozen`; its folders are kept. Returns false if there is no shim.
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
    let log = std::fs::read_to_string(box_dir.shim_log()).unwrap_or_default();
    let last = log.lines().last().unwrap_or("it said nothing");
    let backend = box_dir.load_config().map_or(BackendKind::Bwrap, |config| config.backend);
    let shim = box_dir.load_shim().ok().flatten();
    let started_at = shim.map_or_else(host::clock::now, |shim| shim.started_at);
    ExitRecord::infra(backend, started_at, format!("the shim ended without a record ({last})"))
}
