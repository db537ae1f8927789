//! Changes of whole workstreams that a killed command left: `wf new` is taken back, `wf delete` and `wf close` are
//! finished. Each has one atomic step, the move of the workstream's folder, and a record that is written before.

use std::path::Path;

use host::git::WorktreeRepo;
use host::lock::FileLock;
use model::id::{BranchName, Sha, WorkstreamId};

use super::archive::{self, Deleted};
use crate::disk::{PendingChange, ProjectDirs, StateFile, Workstream};
use crate::exit::{OrExit, WfExit, WfResult};

/// Change that was finished or taken back for a command that was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FinishedChange {
    /// It had not begun, or everything but its record was done.
    Nothing,
    Created,
    Opened,
    NewUndone,
    Deleted {
        branch: BranchName,
        deleted: Deleted,
    },
    Closed {
        branch: BranchName,
        archive: std::path::PathBuf,
    },
}

/// Finishes what was left, if anything was. Takes the locks that the interrupted command had.
pub(crate) async fn finish_interrupted(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    id: &WorkstreamId,
) -> WfResult<Option<FinishedChange>> {
    if !PendingChange::path(dirs, id).exists() {
        return Ok(None);
    }
    let _run = dirs.try_lock_workstream(id, "finish what was interrupted")?;
    let lock = dirs.lock_global_with_git(&format!("finish {id}")).await?;
    finish_locked(dirs, product, id, &lock).await
}

/// Same, for a caller that holds the global lock.
pub(super) async fn finish_locked(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    id: &WorkstreamId,
    lock: &FileLock,
) -> WfResult<Option<FinishedChange>> {
    let Some(change) = PendingChange::load(dirs, id)? else { return Ok(None) };
    product.clear_packed_refs_lock().await.or_exit(WfExit::General)?;
    let in_place = dirs.workstream_dir(id).exists();
    let finished = match change {
        PendingChange::New { .. } if in_place => FinishedChange::Created,
        PendingChange::New { branch, base, worktree } => {
            undo_new(dirs, product, id, (&branch, &base, &worktree)).await?;
            FinishedChange::NewUndone
        }
        PendingChange::Delete(ref it) if in_place && !it.trash.exists() => FinishedChange::Nothing,
        PendingChange::Delete(it) => {
            let deleted = archive::finish_delete(dirs, product, (id, &it), None, lock).await?;
            FinishedChange::Deleted { branch: it.branch, deleted }
        }
        PendingChange::Close { ref archive, .. } if in_place && !archive.exists() => {
            FinishedChange::Nothing
        }
        PendingChange::Open { .. } if in_place => {
            archive::mark_open(&mut Workstream::load_dir(&dirs.workstream_dir(id))?)?;
            FinishedChange::Opened
        }
        PendingChange::Open { worktree } => {
            product.erase_worktree(&worktree).await.or_exit(WfExit::General)?;
            FinishedChange::Nothing
        }
        PendingChange::Close { branch, worktree, archive } => {
            archive::finish_close(dirs, product, id, &worktree).await?;
            FinishedChange::Closed { branch, archive }
        }
    };
    dirs.write_active()?;
    // Last, so that a command that is killed here finds that it was done.
    PendingChange::remove(dirs, id)?;
    Ok(Some(finished))
}

/// Removes what a `wf new` has created and nothing else: all of it was absent when the change was recorded, and the
/// branch is deleted only while it is still at its base.
pub(super) async fn undo_new(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    id: &WorkstreamId,
    (branch, base, worktree): (&BranchName, &Sha, &Path),
) -> WfResult<()> {
    product.erase_worktree(worktree).await.or_exit(WfExit::General)?;
    product.clear_branch_lock(branch).or_exit(WfExit::General)?;
    let tip = product.branch_tip(branch).await.or_exit(WfExit::General)?;
    if tip.as_ref() == Some(base) {
        product.delete_branch(branch, base).await.or_exit(WfExit::General)?;
    }
    for dir in [dirs.unfinished_dir(id), dirs.workstream_dir(id)] {
        host::file::remove_tree_safely(&dir).or_exit(WfExit::General)?;
    }
    Ok(())
}
