//! One run at a time for each fork: a second forklift waits for its turn.

use std::path::Path;
use std::time::Duration;

use host::git::UserRepo;
use host::lock::{FileLock, LockError, LockKind};
use model::verdict::ForkliftStatus;

use super::observe::fork_key;
use crate::exit::{Failure, OrExit};
use crate::ui::Ui;

/// Waits for the fork's lock, at most so many seconds. It is held until the run is over.
pub(crate) async fn take_turn(
    ui: &Ui,
    repo: &UserRepo,
    cache: &Path,
    wait_secs: u64,
) -> Result<FileLock, Failure> {
    let folder = cache.join("forks");
    std::fs::create_dir_all(&folder).or_exit(ForkliftStatus::Machine)?;
    let path = folder.join(format!("{}.run", fork_key(repo)));
    let kind = LockKind::Exclusive { note: "forklift" };
    match FileLock::try_acquire(&path, kind) {
        Err(LockError::Held { .. }) if wait_secs > 0 => {
            ui.phase("wait", "another forklift is at work on this fork; waiting for it");
        }
        other => return other.map_err(|error| busy(repo, error)),
    }
    let waited = FileLock::acquire(&path, kind, Duration::from_secs(wait_secs)).await;
    waited.map_err(|error| busy(repo, error))
}

fn busy(repo: &UserRepo, error: LockError) -> Failure {
    match error {
        LockError::Held { holder, .. } => {
            let who =
                holder.map_or_else(String::new, |holder| format!(" (process {})", holder.pid));
            let fork = repo.toplevel().unwrap_or(repo.common_dir()).display();
            let words = format!(
                "another forklift{who} is at work on {fork}; see 'forklift runs', or wait longer with --wait"
            );
            Failure::new(ForkliftStatus::Machine, words)
        }
        other => Err::<(), _>(other).or_exit(ForkliftStatus::Machine).expect_err("it is an error"),
    }
}
