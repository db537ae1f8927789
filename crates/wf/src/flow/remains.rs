//! Remains of a workstream that has no meta.env: a folder without it, a worktree without a folder. Older versions
//! left both when they were killed; a bad restore leaves them too.

use std::path::PathBuf;

use host::git::WorktreeRepo;
use model::id::{BranchName, Sha, WorkstreamId};
use serde::Serialize;

use super::product::own_changes;
use crate::disk::workstream::META;
use crate::disk::{ProjectDirs, make_dir, move_dir};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::project::branch_of;

/// Remains of a workstream, observed and not changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Remains {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) worktree: Option<PathBuf>,
    /// The branch that the workstream would have, if everything in it is merged.
    pub(crate) merged_branch: Option<(BranchName, Sha)>,
}

impl Remains {
    /// Observes what is left of `id`; none where there is a workstream, or nothing.
    pub(crate) async fn observe(
        dirs: &ProjectDirs,
        product: &WorktreeRepo,
        id: &WorkstreamId,
    ) -> WfResult<Option<Self>> {
        let folder = dirs.workstream_dir(id);
        if folder.join(META).symlink_metadata().is_ok() {
            return Ok(None);
        }
        let folder = Some(folder).filter(|folder| folder.is_dir());
        let worktree = Some(dirs.worktree(id)).filter(|worktree| worktree.is_dir());
        if folder.is_none() && worktree.is_none() {
            return Ok(None);
        }
        let merged_branch = merged_branch(dirs, product, id).await?;
        Ok(Some(Self { folder, worktree, merged_branch }))
    }

    /// Removes all of it. Refused while the worktree has uncommitted changes; a branch with commits of its own stays.
    pub(crate) async fn remove(
        &self,
        dirs: &ProjectDirs,
        product: &WorktreeRepo,
        id: &WorkstreamId,
    ) -> WfResult<()> {
        let _run = dirs.try_lock_workstream(id, "delete")?;
        let _lock = dirs.lock_global_with_git(&format!("delete {id}")).await?;
        if let Some(worktree) = &self.worktree {
            if worktree.join(".git").exists() {
                refuse_changes(product, worktree).await?;
            }
            product.erase_worktree(worktree).await.or_exit(WfExit::General)?;
        }
        if let Some((branch, tip)) = &self.merged_branch {
            product.delete_branch(branch, tip).await.or_exit(WfExit::General)?;
        }
        if let Some(folder) = &self.folder {
            make_dir(&dirs.deleted_dir())?;
            let trash = dirs.deleted_dir().join(id.as_str());
            host::file::remove_tree_safely(&trash).or_exit(WfExit::General)?;
            move_dir(folder, &trash)?;
            host::file::remove_tree_safely(&trash).or_exit(WfExit::General)?;
            std::fs::remove_dir(dirs.deleted_dir()).ok();
        }
        dirs.write_active()?;
        Ok(())
    }
}

async fn refuse_changes(product: &WorktreeRepo, worktree: &std::path::Path) -> WfResult<()> {
    match own_changes(product, worktree).await?.first() {
        None => Ok(()),
        Some(first) => Err(Failure::usage(format!(
            "{} has uncommitted changes, such as {}; commit them or remove them first",
            worktree.display(),
            String::from_utf8_lossy(&first.path)
        ))),
    }
}

async fn merged_branch(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    id: &WorkstreamId,
) -> WfResult<Option<(BranchName, Sha)>> {
    let branch = branch_of(&dirs.project.branch_prefix, id.as_str()).or_exit(WfExit::Config)?;
    let tip = product.branch_tip(&branch).await.or_exit(WfExit::General)?;
    let base = product.branch_tip(&dirs.project.default_branch).await.or_exit(WfExit::General)?;
    let (Some(tip), Some(base)) = (tip, base) else { return Ok(None) };
    let merged = product.user().is_ancestor(&tip, &base).await.or_exit(WfExit::General)?;
    Ok(merged.then_some((branch, tip)))
}
