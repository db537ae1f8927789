//! Repositories made for a demonstration: a project, somebody's fork of it, and a checkout of the fork.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::call::{Call, Git, args, program};
use super::seal::{init_env, sealed_flags};
use super::{GitError, SealedRepo};
use crate::signal::Cancel;

impl SealedRepo {
    /// Takes in history written in git's import language.
    pub async fn fast_import(&self, stream: &str) -> Result<(), GitError> {
        let call = Call::new(args(["fast-import", "--quiet"]));
        self.git.ask(call.reading(stream.as_bytes())).await?.success()?;
        Ok(())
    }
}

/// Checks `origin` out into the new folder `path`, with `origin` and `upstream` as its remotes.
pub async fn check_out_fork(path: &Path, origin: &Path, upstream: &Path) -> Result<(), GitError> {
    let mut git = Git {
        program: program(),
        cwd: PathBuf::from("/"),
        env: init_env(),
        flags: sealed_flags(None),
        log: None,
        cancel: Cancel::new(),
    };
    let mut clone = args(["clone", "--quiet", "--no-hardlinks", "--template=", "--"]);
    clone.extend([OsString::from(origin), OsString::from(path)]);
    git.ask(Call::new(clone)).await?.success()?;
    git.cwd = path.to_path_buf();
    let mut remote = args(["remote", "add", "upstream"]);
    remote.push(upstream.into());
    git.ask(Call::new(remote)).await?.success()?;
    Ok(())
}
