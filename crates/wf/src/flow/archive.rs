//! Closing and deleting workstreams. Both are refused while a run is active, and neither destroys work without asking.

use std::path::PathBuf;
use std::time::Duration;

use host::git::{RemoteBranch, WorktreeRepo};
use model::id::{Sha, WorkstreamId};

use super::product::{is_below, origin};
use crate::disk::{
    DiskError, Effect, Implemented, ProjectDirs, ProjectEffects, StateFile, Workstream, make_dir,
};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::meta::stamp;

const REMOTE_LIMIT: Duration = Duration::from_secs(30);

/// Strictness of `wf close`: an unfinished status or uncommitted work stops a checked close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseMode {
    Checked,
    Forced,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemoteBranchPolicy {
    Delete,
    Keep,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RemoteBranchState {
    /// There is no such branch, or no remote.
    Absent,
    /// It is there, and merged into the base branch.
    Merged,
    /// It is there, not merged, and all its commits are here too.
    Unmerged,
    /// It is there with commits that this repository does not have: they may be someone else's work.
    Foreign,
    /// Origin did not answer, with the reason.
    Unknown(String),
}

/// Closes a workstream: removes the worktree, moves the folder to `_closed` and keeps the branch. Returns the new folder.
pub(crate) async fn close(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &mut Workstream,
    mode: CloseMode,
) -> WfResult<PathBuf> {
    let id = workstream.meta.id.clone();
    let _run = dirs.try_lock_workstream(&id, "close")?;
    let _lock = dirs.lock_global(&format!("close {id}")).await?;
    *workstream = Workstream::load_dir(&workstream.dir)?;
    let status = workstream.meta.status;
    if mode == CloseMode::Checked && !status.is_complete() {
        return Err(Failure::usage(format!(
            "{id} is not complete ({status}); close it anyway: --force"
        )));
    }
    if mode == CloseMode::Checked {
        refuse_dirty(product, workstream).await?;
    }
    remove_worktree(dirs, product, workstream).await?;
    let now = stamp(host::clock::now());
    workstream.change(&[("CLOSED_AT", &now)])?;
    make_dir(&dirs.closed_dir())?;
    let archive = dirs.closed_dir().join(format!("{id}-{}", now.replace(':', "-")));
    std::fs::rename(&workstream.dir, &archive)
        .map_err(DiskError::io("move to the closed ones", &workstream.dir))?;
    forget(dirs, &id);
    dirs.write_active()?;
    Ok(archive)
}

async fn refuse_dirty(product: &WorktreeRepo, workstream: &Workstream) -> WfResult<()> {
    let worktree = &workstream.meta.worktree;
    if !worktree.is_dir() {
        return Ok(());
    }
    let dirty = product.dirty_paths(worktree).await.or_exit(WfExit::General)?;
    match dirty.first() {
        None => Ok(()),
        Some(first) => Err(Failure::usage(format!(
            "{} has {} uncommitted changes, such as {}; commit them, or discard them: --force",
            worktree.display(),
            dirty.len(),
            String::from_utf8_lossy(&first.path)
        ))),
    }
}

/// Removes the worktree, whether or not its folder still exists. Refuses a path outside the ops directory, because a
/// wrong `WORKTREE` in meta.env would otherwise delete someone's files.
async fn remove_worktree(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
) -> WfResult<()> {
    let worktree = &workstream.meta.worktree;
    if !is_below(worktree, &dirs.worktrees_dir()) {
        let (path, ops) = (worktree.display(), dirs.worktrees_dir());
        return Err(Failure::usage(format!("WORKTREE {path} is not inside {}", ops.display())));
    }
    if worktree.is_dir() {
        product.discard_worktree(worktree).await.or_exit(WfExit::General)
    } else {
        product.prune_worktrees().await.or_exit(WfExit::General)
    }
}

/// Removes the agents' memory of a workstream and the mirror of its history. Errors are ignored: leftovers only take space.
fn forget(dirs: &ProjectDirs, id: &WorkstreamId) {
    for path in [dirs.agents_dir(id), dirs.mirror(id)] {
        if path.exists() {
            host::file::remove_tree_safely(&path).ok();
        }
    }
    Implemented::remove(dirs, id).ok();
}

pub(crate) async fn observe_remote(
    product: &WorktreeRepo,
    workstream: &Workstream,
) -> WfResult<RemoteBranchState> {
    let origin = origin()?;
    if !product.user().has_remote(&origin) {
        return Ok(RemoteBranchState::Absent);
    }
    let meta = &workstream.meta;
    let tip = match product.remote_branch(&origin, &meta.branch, REMOTE_LIMIT).await {
        Ok(RemoteBranch::Absent) => return Ok(RemoteBranchState::Absent),
        Ok(RemoteBranch::At(tip)) => tip,
        Err(error) => return Ok(RemoteBranchState::Unknown(error.to_string())),
    };
    if product.user().resolve_commit(tip.as_str()).await.or_exit(WfExit::General)?.is_none() {
        return Ok(RemoteBranchState::Foreign);
    }
    let base = product.branch_tip(&meta.base_branch).await.or_exit(WfExit::General)?;
    let merged = match base {
        Some(base) => product.user().is_ancestor(&tip, &base).await.or_exit(WfExit::General)?,
        None => false,
    };
    Ok(if merged { RemoteBranchState::Merged } else { RemoteBranchState::Unmerged })
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Deleted {
    /// The tip of the deleted branch, from which it can be restored.
    pub(crate) tip: Option<Sha>,
    pub(crate) warnings: Vec<String>,
    pub(crate) remote_deleted: bool,
}

/// Deletes a workstream, its worktree and its branch. The caller has the person's confirmation.
pub(crate) async fn delete(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
    policy: RemoteBranchPolicy,
) -> WfResult<Deleted> {
    let meta = &workstream.meta;
    let state = match policy {
        RemoteBranchPolicy::Delete => observe_remote(product, workstream).await?,
        RemoteBranchPolicy::Keep => RemoteBranchState::Absent,
    };
    let _run = dirs.try_lock_workstream(&meta.id, "delete")?;
    let _lock = dirs.lock_global(&format!("delete {}", meta.id)).await?;
    let tip = product.branch_tip(&meta.branch).await.or_exit(WfExit::General)?;
    remove_worktree(dirs, product, workstream).await?;
    let effects = ProjectEffects::of(dirs)?;
    let target = meta.branch.as_str();
    let effect = Effect { op: "branch.delete", target, workstream: Some(&meta.id) };
    if let Some(tip) = &tip {
        let delete = product.delete_branch(&meta.branch, tip);
        effects.record(effect, delete).await?.or_exit(WfExit::General)?;
    } else {
        effects.confirm(effect)?;
    }
    let (remote_deleted, warnings) = delete_remote(&effects, product, workstream, state).await?;
    host::file::remove_tree_safely(&workstream.dir).or_exit(WfExit::General)?;
    forget(dirs, &meta.id);
    dirs.write_active()?;
    Ok(Deleted { tip, warnings, remote_deleted })
}

async fn delete_remote(
    effects: &ProjectEffects,
    product: &WorktreeRepo,
    workstream: &Workstream,
    state: RemoteBranchState,
) -> WfResult<(bool, Vec<String>)> {
    let branch = &workstream.meta.branch;
    let kept = |why: String| Ok((false, vec![why]));
    let (target, id) = (branch.as_str(), Some(&workstream.meta.id));
    let effect = Effect { op: "remote_branch.delete", target, workstream: id };
    match state {
        RemoteBranchState::Absent | RemoteBranchState::Merged => {
            effects.confirm(effect)?;
            Ok((false, Vec::new()))
        }
        RemoteBranchState::Foreign => {
            kept(format!("{branch} on origin has commits that are not here, so it was left there"))
        }
        RemoteBranchState::Unknown(why) => {
            kept(format!("origin could not be asked about {branch}: {why}"))
        }
        RemoteBranchState::Unmerged => {
            let origin = origin()?;
            let delete = product.delete_remote_branch(&origin, branch, REMOTE_LIMIT);
            let deleted =
                effects.record(effect, delete).await.map(|done| done.or_exit(WfExit::General));
            match deleted.flatten() {
                Ok(()) => Ok((true, Vec::new())),
                Err(error) => kept(format!("{branch} could not be deleted on origin: {error}")),
            }
        }
    }
}
