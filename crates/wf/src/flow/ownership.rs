//! Checks before anything of a workstream is removed: meta.env may have been edited, copied or restored wrongly, so
//! what it names must be the workstream's own.

use std::path::Path;

use host::git::WorktreeRepo;
use model::id::WorkstreamId;

use super::product::{WorktreeFault, check_worktree, is_below, is_same};
use crate::disk::{ProjectDirs, Workstream};
use crate::exit::{Failure, OrExit, WfExit, WfResult};

/// Refuses a WORKTREE that is not this workstream's, and a BRANCH that is not only its own.
pub(super) async fn check_owned(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
) -> WfResult<()> {
    check_place(dirs, &workstream.meta.id, &workstream.meta.worktree)?;
    check_branch(dirs, product, workstream).await?;
    let worktree = &workstream.meta.worktree;
    // A folder without .git is what a git that was killed while it removed the worktree leaves.
    if !worktree.join(".git").exists() {
        return Ok(());
    }
    match check_worktree(dirs, product, workstream).await? {
        Ok(()) | Err(WorktreeFault::Missing(_)) => Ok(()),
        Err(fault) => Err(Failure::usage(fault.to_string())),
    }
}

fn check_place(dirs: &ProjectDirs, id: &WorkstreamId, worktree: &Path) -> WfResult<()> {
    let (shown, all, own) = (worktree.display(), dirs.worktrees_dir(), dirs.worktree(id));
    if !is_below(worktree, &all) {
        return Err(Failure::usage(format!("WORKTREE {shown} is not inside {}", all.display())));
    }
    let is_own = is_same(worktree, &own)
        || (worktree.file_name() == own.file_name()
            && worktree.parent().is_some_and(|above| is_same(above, &all)));
    match is_own {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "WORKTREE {shown} in meta.env is not the worktree of {id}, which is {}; correct it",
            own.display()
        ))),
    }
}

async fn check_branch(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
) -> WfResult<()> {
    let meta = &workstream.meta;
    let branch = &meta.branch;
    if *branch == dirs.project.default_branch || *branch == meta.base_branch {
        return Err(Failure::usage(format!(
            "BRANCH {branch} in meta.env is the branch that {} is merged into; correct it",
            meta.id
        )));
    }
    let worktrees = product.worktrees().await.or_exit(WfExit::General)?;
    let elsewhere = worktrees
        .iter()
        .find(|it| it.branch.as_ref() == Some(branch) && !is_same(&it.path, &meta.worktree));
    match elsewhere {
        None => Ok(()),
        Some(it) => Err(Failure::usage(format!(
            "BRANCH {branch} in meta.env is checked out in {}, which is not the worktree of {}",
            it.path.display(),
            meta.id
        ))),
    }
}
