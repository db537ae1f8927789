//! The shim: one small process per box. It holds the box's lock, its deadline, its logs and its exit record, so
//! that the death of its launcher lifts no deadline and loses no result.

mod egress;
mod output;
mod supervise;
mod watch;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use host::file::{FileError, mask_tree};
use host::lock::{FileLock, LockError};
use host::process::{ProcessError, ProcessHandle, become_session_leader, take_handed_over};
use model::error_chain;
use model::redact::{Redactor, SecretMask};
use model::secret::Secret;
use sandbox::backend::BackendKind;
use sandbox::bwrap::Bwrap;
use sandbox::docker::{Docker, Engine};
use sandbox::error::SandboxError;

use crate::box_dir::{BoxDir, ShimConfig};
use crate::record::{ExitRecord, ShimRecord};
use supervise::{StopSignals, supervise};

pub use self::egress::EGRESS_SOCKET;

/// The word by which a product's own program is started as a shim.
pub const SHIM_WORD: &str = "__shim";

/// The shim could not do its own work.
#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("could not {doing}")]
    Io { doing: &'static str, source: io::Error },
    #[error("the box in {0} has ended already; a box is never run twice")]
    Ended(String),
}

/// Runs the box in `box_dir` to its end. Standard input is its locked lock file.
pub fn run(box_dir: &BoxDir) -> Result<(), ShimError> {
    become_session_leader()?;
    let failed = |doing| move |source| ShimError::Io { doing, source };
    let secrets = handed_secrets().map_err(failed("take over the secrets"))?;
    let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(failed("take over the lock"))?;
    let inherited = File::from(stdin);
    let lock = FileLock::from_inherited(inherited, &box_dir.lock(), "shim")?;
    if box_dir.load_exit()?.is_some() {
        return Err(ShimError::Ended(box_dir.path().display().to_string()));
    }
    let config = box_dir.load_config()?;
    // One thread: the kernel ties a box to the thread that made it, and this one lives until the end.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed("start the runtime"))?;
    let record = runtime.block_on(async {
        let mut stop_signals = StopSignals::listen().map_err(failed("listen for signals"))?;
        // Recorded only now: before, a signal would have ended the shim itself.
        box_dir.save_shim(&ShimRecord {
            process: ProcessHandle::current()?,
            started_at: host::clock::now(),
        })?;
        let redactor = Arc::new(Redactor::new(secrets.iter().cloned()));
        Ok::<_, ShimError>(run_box(&config, &redactor, &mut stop_signals).await)
    })?;
    mask_harness_state(box_dir, &config.spec.harness_state, &secrets);
    box_dir.save_exit(&record)?;
    // A walk over a large tree may still be under way.
    runtime.shutdown_background();
    drop(lock);
    Ok(())
}

async fn run_box(
    config: &ShimConfig,
    redactor: &Arc<Redactor>,
    stop_signals: &mut StopSignals,
) -> ExitRecord {
    let infra = |error: SandboxError| {
        ExitRecord::infra(config.backend, host::clock::now(), error.to_string())
    };
    match config.backend {
        BackendKind::Bwrap => match Bwrap::find() {
            Ok(bwrap) => supervise(&bwrap, config, redactor, stop_signals).await,
            Err(error) => infra(error),
        },
        BackendKind::Docker => match Engine::find().await {
            Ok(engine) => supervise(&Docker::new(&engine), config, redactor, stop_signals).await,
            Err(error) => infra(error),
        },
    }
}

fn handed_secrets() -> io::Result<Vec<Secret>> {
    let values: Vec<String> = serde_json::from_slice(&take_handed_over()?).unwrap_or_default();
    Ok(values.into_iter().map(Secret::new).collect())
}

/// Masks secrets in what the agent wrote about itself: its harness keeps a log of its own, which no redactor has seen.
fn mask_harness_state(box_dir: &BoxDir, harness_state: &Path, secrets: &[Secret]) {
    let mask = SecretMask::new(secrets);
    if let Err(error) = mask_tree(harness_state, &mask, &box_dir.config_file()) {
        // The exit of the box stays the same; the run tries again when it closes.
        drop(writeln!(io::stderr(), "{}", error_chain(&error)));
    }
}
