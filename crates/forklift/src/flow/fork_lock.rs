//! Lock of a fork: one run at a time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use host::git::UserRepo;
use host::lock::{FileLock, LockError, LockKind};
use model::exit::ForkliftExit;
use shell::Ui;

use super::observe::fork_key;
use crate::exit::{Failure, OrExit};

const KIND: LockKind<'static> = LockKind::Exclusive { note: "forklift" };

/// Waits up to `wait_secs` for the fork's lock, which is held until the run ends.
pub(crate) async fn acquire_fork_lock(
    ui: &Ui,
    repo: &UserRepo,
    cache: &Path,
    wait_secs: u64,
) -> Result<FileLock, Failure> {
    let path = lock_path(repo, cache)?;
    match FileLock::try_acquire(&path, KIND) {
        Err(LockError::Held { .. }) if wait_secs > 0 => {
            ui.phase("wait", "another forklift is at work on this fork; waiting for it");
        }
        other => return other.map_err(|error| busy(repo, error)),
    }
    let waited = FileLock::acquire(&path, KIND, Duration::from_secs(wait_secs)).await;
    waited.map_err(|error| busy(repo, error))
}

pub(crate) fn try_fork_lock(repo: &UserRepo, cache: &Path) -> Result<Option<FileLock>, Failure> {
    match FileLock::try_acquire(&lock_path(repo, cache)?, KIND) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Held { .. }) => Ok(None),
        Err(error) => Err(busy(repo, error)),
    }
}

fn lock_path(repo: &UserRepo, cache: &Path) -> Result<PathBuf, Failure> {
    let folder = cache.join("forks");
    host::file::create_dirs(&folder).or_machine()?;
    Ok(folder.join(format!("{}.run", fork_key(repo))))
}

fn busy(repo: &UserRepo, error: LockError) -> Failure {
    match error {
        LockError::Held { holder, .. } => {
            let who =
                holder.map_or_else(String::new, |holder| format!(" (process {})", holder.pid));
            let fork = repo.toplevel().unwrap_or(repo.common_dir()).display();
            let message = format!(
                "another forklift{who} is at work on {fork}; see 'forklift runs', or wait longer with --wait"
            );
            Failure::busy(message)
        }
        other => Failure::of(ForkliftExit::Machine, other),
    }
}
