//! Fast-forwards of checkouts that survive a kill. Git changes the files first and the branch last, so a git that is
//! killed in the middle leaves files of both commits and its locks. The record that is written before tells
//! such files from a person's changes.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use host::git::{DirtyPath, GitError, WorktreeRepo};
use model::command::CommandExit;
use model::id::{Sha, WorkstreamId};

use crate::disk::{DiskError, PendingForward, ProjectDirs, StateFile};
use crate::exit::{OrExit, WfExit, WfResult};

/// Largest file that is compared with its commit; a larger one counts as a person's.
const FILE_CAP: usize = 256 << 20;

/// Fast-forwards a checkout. The caller holds the global lock and git holds it too.
pub(crate) async fn fast_forward(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    id: &WorkstreamId,
    pending: &PendingForward,
) -> WfResult<Result<(), GitError>> {
    let PendingForward { checkout, to, .. } = pending;
    if !product.worktree_locks(checkout).await.or_exit(WfExit::General)?.is_empty() {
        // Another git works there. Without a record its locks stay, and git says what is the matter.
        return Ok(product.fast_forward(checkout, to).await);
    }
    pending.save(dirs, id)?;
    let forwarded = product.fast_forward(checkout, to).await;
    match &forwarded {
        // A git that was killed is like a wf that was killed.
        Err(GitError::Failed { status: CommandExit::Signalled(_), .. }) => {
            mend_forward(dirs, product, id).await?;
        }
        _ => PendingForward::remove(dirs, id)?,
    }
    Ok(forwarded)
}

/// Puts a checkout back that a killed fast-forward left half changed. Files that differ from both commits are a
/// person's, and then everything stays as it is.
pub(crate) async fn mend_forward(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    id: &WorkstreamId,
) -> WfResult<()> {
    let Some(pending) = PendingForward::load(dirs, id)? else { return Ok(()) };
    if pending.checkout.is_dir() {
        mend(product, &pending).await?;
    }
    Ok(PendingForward::remove(dirs, id)?)
}

async fn mend(product: &WorktreeRepo, pending: &PendingForward) -> WfResult<()> {
    let PendingForward { checkout, from, to } = pending;
    let head = product.head(checkout).await.or_exit(WfExit::General)?;
    if head.as_ref() != Some(from) {
        return Ok(());
    }
    product.clear_worktree_locks(checkout).await.or_exit(WfExit::General)?;
    let changed = product.changed_paths(from, to).await.or_exit(WfExit::General)?;
    let mut dirty = product.dirty_paths(checkout).await.or_exit(WfExit::General)?;
    dirty.retain(|dirty| changed.contains(&dirty.path));
    for dirty in &dirty {
        if !is_of(product, checkout, to, dirty).await? {
            return Ok(());
        }
    }
    let (new, known): (Vec<_>, Vec<_>) = dirty.iter().partition(|dirty| dirty.code == "??");
    new.into_iter().try_for_each(|dirty| remove_new(checkout, dirty))?;
    let known: Vec<&[u8]> = known.iter().map(|dirty| dirty.path.as_slice()).collect();
    if known.is_empty() {
        return Ok(());
    }
    product.restore_paths(checkout, &known).await.or_exit(WfExit::General)
}

/// Reports whether a file is as far as it goes what the commit has: git writes a file from its beginning.
async fn is_of(
    product: &WorktreeRepo,
    checkout: &Path,
    commit: &Sha,
    dirty: &DirtyPath,
) -> WfResult<bool> {
    let Ok(name) = std::str::from_utf8(&dirty.path) else { return Ok(false) };
    let path = checkout.join(name);
    let found = match fs::symlink_metadata(&path) {
        // Removed by the commit, or not yet written again.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(DiskError::io("look at", &path)(error).into()),
        Ok(found) if found.is_symlink() => {
            fs::read_link(&path).map(|target| target.as_os_str().as_bytes().to_vec())
        }
        Ok(_) => fs::read(&path),
    };
    let found = found.map_err(DiskError::io("read", &path))?;
    let blob = product.user().read_blob(commit, name, FILE_CAP).await.or_exit(WfExit::General)?;
    Ok(blob.is_some_and(|blob| !blob.truncated && blob.bytes.starts_with(&found)))
}

/// Removes a file that only the newer commit has, and the folders that this leaves empty.
fn remove_new(checkout: &Path, dirty: &DirtyPath) -> WfResult<()> {
    let path = checkout.join(std::ffi::OsStr::from_bytes(&dirty.path));
    crate::disk::remove_optional(&path)?;
    for above in path.ancestors().skip(1).take_while(|above| *above != checkout) {
        if fs::remove_dir(above).is_err() {
            break;
        }
    }
    Ok(())
}
