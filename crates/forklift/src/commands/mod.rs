//! One file per subcommand.

pub(crate) mod agents;
pub(crate) mod all;
pub(crate) mod attach;
pub(crate) mod changelog;
pub(crate) mod delta;
mod delta_stack;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod files;
pub(crate) mod first;
mod first_check;
pub(crate) mod history;
pub(crate) mod image;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod merge_plan;
pub(crate) mod prune;
pub(crate) mod publish;
pub(crate) mod replay;
pub(crate) mod request;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod run_args;
pub(crate) mod run_name;
pub(crate) mod runs;
pub(crate) mod security;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod train;
mod train_check;
mod train_run;
pub(crate) mod trust;
pub(crate) mod withdraw;

use std::path::PathBuf;

use host::dirs::Dirs;
use model::secret::Secret;
use shell::config::Config;

use crate::exit::{Failure, OrExit};
use crate::flow::pull::TOKEN_FILE;

/// Folders of forklift.
#[derive(Debug, Clone)]
pub(crate) struct ForkliftDirs {
    pub(crate) runs: PathBuf,
    pub(crate) cache: PathBuf,
    pub(crate) config: PathBuf,
    pub(crate) agents: PathBuf,
    /// The configuration that the programs share.
    pub(crate) shared: Config,
}

impl ForkliftDirs {
    /// From the XDG variables.
    pub(crate) fn from_env() -> Result<Self, Failure> {
        let dirs = Dirs::from_env().or_usage()?;
        let places = Self {
            runs: dirs.state_home().join("forklift/runs"),
            cache: dirs.cache_home().join("bottleworks"),
            config: dirs.config_home().join("forklift"),
            agents: dirs.data_home().join("bottleworks/agents"),
            shared: Config::load().or_usage()?,
        };
        // A file that cannot be read is reported where the token is needed.
        let token = host::file::read_private(&places.config.join(TOKEN_FILE)).ok();
        shell::terminal::hide(
            token.map(|bytes| Secret::new(String::from_utf8_lossy(&bytes).trim())),
        );
        Ok(places)
    }
}

pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    shell::runtime::block_on(work)
}

/// Runs async work that leaves nothing behind when it is dropped: a signal drops it.
pub(crate) fn block_on_stoppable<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    shell::runtime::block_on_stoppable(work)
}
