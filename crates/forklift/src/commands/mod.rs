//! One file per subcommand.

pub(crate) mod agents;
pub(crate) mod all;
pub(crate) mod attach;
pub(crate) mod changelog;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod files;
pub(crate) mod first;
mod history;
pub(crate) mod image;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod merge_plan;
pub(crate) mod prune;
pub(crate) mod replay;
mod request;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod show;
pub(crate) mod trust;

use std::path::PathBuf;

use host::dirs::Dirs;
use host::signal::{Cancel, cancel_on_signals};
use model::exit::ForkliftExit;

use crate::exit::{Failure, OrExit};

/// Where runs and caches are kept.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) runs: PathBuf,
    pub(crate) cache: PathBuf,
    pub(crate) config: PathBuf,
    pub(crate) agents: PathBuf,
}

impl Places {
    /// As the XDG variables say.
    pub(crate) fn from_env() -> Result<Self, Failure> {
        let dirs = Dirs::from_env().or_exit(ForkliftExit::Usage)?;
        Ok(Self {
            runs: dirs.state_home().join("forklift/runs"),
            cache: dirs.cache_home().join("bottleworks"),
            config: dirs.config_home().join("forklift"),
            agents: dirs.data_home().join("bottleworks/agents"),
        })
    }
}

/// One thread is enough, and boxes want their maker to stay on it.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .or_exit(ForkliftExit::Machine)?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
}

/// The same for work that leaves nothing behind when it is dropped: a signal ends it.
pub(crate) fn block_on_stoppable<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    block_on(async {
        let cancel = cancel_on_signals().or_exit(ForkliftExit::Machine)?;
        unless_stopped(&cancel, work).await
    })
}

/// Does the work unless somebody wants it stopped first.
pub(crate) async fn unless_stopped<T>(
    cancel: &Cancel,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        done = work => done,
        why = cancel.cancelled() => Err(Failure::new(ForkliftExit::Machine, format!("stopped by {why}"))),
    }
}
