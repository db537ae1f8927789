//! Closing and deleting workstreams. Both are refused while a run is active, and neither destroys work without asking.
//!
//! Both are recorded first, then move the workstream's folder in one step, then do the rest. From the move on the next
//! command finishes what a killed one left.

use std::path::{Path, PathBuf};
use std::time::Duration;

use host::git::{RemoteBranch, WorktreeRepo};
use host::lock::{FileLock, PassLock};
use model::id::{BranchName, Sha, WorkstreamId};

use super::include::fill;
use super::interrupted::{FinishedChange, finish_locked};
use super::ownership::check_owned;
use super::product::{origin, own_changes};
use super::setup_host::WorktreeSetup;
use crate::disk::{
    Deletion, Effect, Implemented, PendingChange, PendingForward, ProjectDirs, ProjectEffects,
    RemoteBranchPolicy, StateFile, Workstream, make_dir, move_dir,
};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::meta::stamp;
use crate::rules::status::WorkstreamStatus;

const REMOTE_LIMIT: Duration = Duration::from_secs(30);

/// Strictness of `wf close`: an unfinished status or uncommitted work stops a checked close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseMode {
    Checked,
    Forced,
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
    let _lock = dirs.lock_global_with_git(&format!("close {id}")).await?;
    *workstream = Workstream::load_dir(&workstream.dir)?;
    let status = workstream.meta.status;
    if mode == CloseMode::Checked && !status.is_complete() {
        return Err(Failure::usage(format!(
            "{id} is not complete ({status}); close it anyway: --force"
        )));
    }
    check_owned(dirs, product, workstream).await?;
    if mode == CloseMode::Checked {
        refuse_stacked(dirs, workstream, "; or close it all the same: --force")?;
        refuse_dirty(product, workstream).await?;
    }
    let now = stamp(host::clock::now());
    let archive = dirs.closed_dir().join(format!("{id}-{}", now.replace(':', "-")));
    let meta = workstream.meta.clone();
    let (branch, worktree) = (meta.branch, meta.worktree);
    let change = PendingChange::Close { branch, worktree, archive: archive.clone() };
    change.save(dirs, &id)?;
    workstream.change(&[("CLOSED_AT", &now)])?;
    make_dir(&dirs.closed_dir())?;
    move_dir(&workstream.dir, &archive)?;
    host::failpoint::hit("close-moved");
    finish_close(dirs, product, &id, &workstream.meta.worktree).await?;
    dirs.write_active()?;
    PendingChange::remove(dirs, &id)?;
    Ok(archive)
}

/// Opens a closed workstream again: a worktree of its branch, then its folder in its old place.
pub(crate) async fn open(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    id: &WorkstreamId,
) -> WfResult<(Workstream, Vec<String>)> {
    let _run = dirs.try_lock_workstream(id, "open")?;
    let lock = dirs.lock_global_with_git(&format!("open {id}")).await?;
    let finished = finish_locked(dirs, product, id, &lock).await?;
    let dir = dirs.workstream_dir(id);
    if finished == Some(FinishedChange::Opened) {
        return Ok((Workstream::load_dir(&dir)?, Vec::new()));
    }
    if dir.exists() {
        return Err(Failure::usage(format!("{id} is open; see: wf status {id}")));
    }
    let (closed, _) = dirs.load_closed()?;
    let closed = closed.into_iter().rfind(|closed| closed.meta.id == *id).ok_or_else(|| {
        Failure::usage(format!("there is no closed workstream {id}; see: wf list --all"))
    })?;
    let (branch, worktree) = (&closed.meta.branch, dirs.worktree(id));
    if finished.is_some() {
        // The git of an interrupted `wf open` may have been killed while it locked the branch.
        product.clear_branch_lock(branch).or_exit(WfExit::General)?;
    }
    if product.branch_tip(branch).await.or_exit(WfExit::General)?.is_none() {
        return Err(Failure::usage(format!(
            "the branch {branch} of {id} is gone; restore it, or start over: wf new {id}"
        )));
    }
    if worktree.symlink_metadata().is_ok() {
        let message = format!("the worktree folder {} exists already", worktree.display());
        return Err(Failure::usage(message));
    }
    PendingChange::Open { worktree: worktree.clone() }.save(dirs, id)?;
    make_dir(&dirs.worktrees_dir())?;
    let folders = &closed.meta.sparse;
    let added = match folders.is_empty() {
        true => product.reopen_worktree(&worktree, branch).await,
        false => product.reopen_sparse_worktree(&worktree, branch, folders).await,
    };
    if let Err(error) = added {
        product.erase_worktree(&worktree).await.or_exit(WfExit::General)?;
        let lock = format!("{}.lock", branch.full_ref());
        // A git that was killed leaves the branch locked, and the next `wf open` has to know whose lock it is.
        if !product.user().common_dir().join(lock).exists() {
            PendingChange::remove(dirs, id)?;
        }
        return Err(error).or_exit(WfExit::General);
    }
    let warnings = fill(dirs, product, &worktree).await;
    move_dir(&closed.dir, &dir)?;
    host::failpoint::hit("open-moved");
    let mut workstream = Workstream::load_dir(&dir)?;
    mark_open(&mut workstream)?;
    dirs.write_active()?;
    PendingChange::remove(dirs, id)?;
    Ok((workstream, warnings))
}

/// Marks a workstream whose folder was moved back as open. One that was merged goes on with new micro-commits.
pub(super) fn mark_open(workstream: &mut Workstream) -> WfResult<()> {
    let status = match workstream.meta.status {
        WorkstreamStatus::Done => WorkstreamStatus::Implement,
        status => status,
    };
    Ok(workstream.change(&[("CLOSED_AT", ""), ("STATUS", status.word())])?)
}

/// Removes what a closed workstream does not keep. Idempotent.
pub(super) async fn finish_close(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    id: &WorkstreamId,
    worktree: &Path,
) -> WfResult<()> {
    product.erase_worktree(worktree).await.or_exit(WfExit::General)?;
    forget(dirs, id);
    Ok(())
}

async fn refuse_dirty(product: &WorktreeRepo, workstream: &Workstream) -> WfResult<()> {
    let worktree = &workstream.meta.worktree;
    if !worktree.join(".git").exists() {
        return Ok(());
    }
    let dirty = own_changes(product, worktree).await?;
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

/// Removes the agents' memory of a workstream and the mirror of its history. Errors are ignored: leftovers only take space.
fn forget(dirs: &ProjectDirs, id: &WorkstreamId) {
    for path in [dirs.agents_dir(id), dirs.mirror(id)] {
        if path.exists() {
            host::file::remove_tree_safely(&path).ok();
        }
    }
    Implemented::remove(dirs, id).ok();
    PendingForward::remove(dirs, id).ok();
    WorktreeSetup::remove(dirs, id).ok();
}

pub(crate) async fn observe_remote(
    product: &WorktreeRepo,
    [branch, base_branch]: [&BranchName; 2],
) -> WfResult<RemoteBranchState> {
    let origin = origin()?;
    if !product.user().has_remote(&origin) {
        return Ok(RemoteBranchState::Absent);
    }
    let tip = match product.remote_branch(&origin, branch, REMOTE_LIMIT).await {
        Ok(RemoteBranch::Absent) => return Ok(RemoteBranchState::Absent),
        Ok(RemoteBranch::At(tip)) => tip,
        Err(error) => return Ok(RemoteBranchState::Unknown(error.to_string())),
    };
    if product.user().resolve_commit(tip.as_str()).await.or_exit(WfExit::General)?.is_none() {
        return Ok(RemoteBranchState::Foreign);
    }
    let base = product.branch_tip(base_branch).await.or_exit(WfExit::General)?;
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
    let id = &workstream.meta.id;
    let state = match policy {
        RemoteBranchPolicy::Delete => {
            let meta = &workstream.meta;
            observe_remote(product, [&meta.branch, &meta.base_branch]).await?
        }
        RemoteBranchPolicy::Keep => RemoteBranchState::Absent,
    };
    let _run = dirs.try_lock_workstream(id, "delete")?;
    let lock = dirs.lock_global_with_git(&format!("delete {id}")).await?;
    let workstream = Workstream::load_dir(&workstream.dir)?;
    check_owned(dirs, product, &workstream).await?;
    refuse_stacked(dirs, &workstream, "")?;
    let meta = workstream.meta.clone();
    let tip = product.branch_tip(&meta.branch).await.or_exit(WfExit::General)?;
    let now = stamp(host::clock::now()).replace(':', "-");
    let deletion = Deletion {
        branch: meta.branch,
        base_branch: meta.base_branch,
        tip,
        worktree: meta.worktree,
        trash: dirs.deleted_dir().join(format!("{id}-{now}")),
        remote: policy,
    };
    PendingChange::Delete(deletion.clone()).save(dirs, id)?;
    make_dir(&dirs.deleted_dir())?;
    move_dir(&workstream.dir, &deletion.trash)?;
    host::failpoint::hit("delete-moved");
    let deleted = finish_delete(dirs, product, (id, &deletion), Some(state), &lock).await?;
    dirs.write_active()?;
    PendingChange::remove(dirs, id)?;
    Ok(deleted)
}

/// Refuses to end a workstream that others start from.
fn refuse_stacked(dirs: &ProjectDirs, workstream: &Workstream, remedy: &str) -> WfResult<()> {
    let (branch, (all, _)) = (&workstream.meta.branch, dirs.load_workstreams()?);
    let above: Vec<&str> = all
        .iter()
        .filter(|other| other.meta.base_branch == *branch)
        .map(|other| other.meta.id.as_str())
        .collect();
    match above.is_empty() {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "{} starts from {branch}; merge, close or delete it first{remedy}",
            above.join(", ")
        ))),
    }
}

/// Removes everything of a deleted workstream whose folder was moved away. Idempotent.
pub(super) async fn finish_delete(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    (id, deletion): (&WorkstreamId, &Deletion),
    state: Option<RemoteBranchState>,
    lock: &FileLock,
) -> WfResult<Deleted> {
    let Deletion { branch, base_branch, tip, worktree, trash, remote } = deletion;
    product.erase_worktree(worktree).await.or_exit(WfExit::General)?;
    product.clear_branch_lock(branch).or_exit(WfExit::General)?;
    let effects = ProjectEffects::of(dirs)?;
    let effect = Effect { op: "branch.delete", target: branch.as_str(), workstream: Some(id) };
    let is_there = product.branch_tip(branch).await.or_exit(WfExit::General)?.is_some();
    match tip {
        Some(tip) if is_there => {
            let delete = product.delete_branch(branch, tip);
            effects.record(effect, delete).await?.or_exit(WfExit::General)?;
        }
        _ => effects.confirm(effect)?,
    }
    // A helper that git starts to reach origin may outlive it, and must not keep the lock.
    lock.pass_to_children(PassLock::No).or_exit(WfExit::General)?;
    let state = match (state, remote) {
        (Some(state), _) => state,
        (None, RemoteBranchPolicy::Delete) => {
            observe_remote(product, [branch, base_branch]).await?
        }
        (None, RemoteBranchPolicy::Keep) => RemoteBranchState::Absent,
    };
    let (remote_deleted, warnings) = delete_remote(&effects, product, (id, branch), state).await?;
    host::file::remove_tree_safely(trash).or_exit(WfExit::General)?;
    // Not empty while another deletion is unfinished.
    std::fs::remove_dir(dirs.deleted_dir()).ok();
    forget(dirs, id);
    Ok(Deleted { tip: tip.clone(), warnings, remote_deleted })
}

async fn delete_remote(
    effects: &ProjectEffects,
    product: &WorktreeRepo,
    (id, branch): (&WorkstreamId, &BranchName),
    state: RemoteBranchState,
) -> WfResult<(bool, Vec<String>)> {
    let kept = |why: String| Ok((false, vec![why]));
    let target = branch.as_str();
    let effect = Effect { op: "remote_branch.delete", target, workstream: Some(id) };
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
