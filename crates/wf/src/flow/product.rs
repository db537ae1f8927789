//! The product repository of a project, and checks of a workstream's worktree.

use std::path::{Path, PathBuf};

use host::git::{DirtyPath, GitIdentity, WorktreeRepo};
use model::id::{RemoteName, Sha};

use crate::disk::{ProjectDirs, Workstream};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::meta::Meta;
use crate::rules::status::WorkstreamStatus;

pub(crate) async fn open_product(dirs: &ProjectDirs) -> WfResult<WorktreeRepo> {
    if !dirs.project.repo.is_dir() {
        let path = dirs.project.repo.display();
        return Err(Failure::usage(format!(
            "REPO_PATH {path} does not exist; correct project.env"
        )));
    }
    WorktreeRepo::discover(&dirs.project.repo).await.or_exit(WfExit::Config)
}

/// Says for each workstream that its branch is gone, and how it comes back. One that is done needs no branch.
pub(crate) async fn missing_branches(
    product: &WorktreeRepo,
    workstreams: &[&Workstream],
) -> WfResult<Vec<Option<String>>> {
    let branches: Vec<_> = workstreams.iter().map(|it| it.meta.branch.clone()).collect();
    let tips = product.branch_tips(&branches).await.or_exit(WfExit::General)?;
    let explain = |(workstream, tip): (&&Workstream, Option<Sha>)| {
        let Meta { branch, id, status, last_commit_sha, .. } = &workstream.meta;
        if tip.is_some() || *status == WorkstreamStatus::Done {
            return None;
        }
        Some(match last_commit_sha {
            Some(last) => {
                format!("{branch} does not exist any more; restore it: git branch {branch} {last}")
            }
            None => format!("{branch} does not exist any more; restore it, or: wf delete {id}"),
        })
    };
    Ok(workstreams.iter().zip(tips).map(explain).collect())
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum WorktreeFault {
    #[error("the worktree {path} does not exist; it was removed by hand: wf close --force, or add it again with git worktree add", path = .0.display())]
    Missing(PathBuf),
    #[error("the worktree {path} is not inside {ops}/worktrees", path = path.display(), ops = ops.display())]
    Outside { path: PathBuf, ops: PathBuf },
    #[error("{path} is not a worktree of the product repository", path = .0.display())]
    Foreign(PathBuf),
    #[error("the worktree is on {actual}, not on {expected}; run: git -C {path} switch {expected}", path = path.display())]
    WrongBranch { path: PathBuf, actual: String, expected: String },
}

/// Checks that the worktree is there, ours, and on its branch.
pub(crate) async fn check_worktree(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
) -> WfResult<Result<(), WorktreeFault>> {
    let meta = &workstream.meta;
    let path = meta.worktree.clone();
    if !is_below(&path, &dirs.worktrees_dir()) {
        return Ok(Err(WorktreeFault::Outside { path, ops: dirs.ops.clone() }));
    }
    if !path.is_dir() {
        return Ok(Err(WorktreeFault::Missing(path)));
    }
    // From a plain folder git may find an enclosing repository, so the result is compared with the expected path.
    let Ok(found) = WorktreeRepo::discover(&path).await else {
        return Ok(Err(WorktreeFault::Foreign(path)));
    };
    let same_place = found.user().toplevel().is_some_and(|top| is_same(top, &path));
    if !same_place || !is_same(found.user().common_dir(), product.user().common_dir()) {
        return Ok(Err(WorktreeFault::Foreign(path)));
    }
    let actual = product.current_branch(&path).await.or_exit(WfExit::General)?;
    if actual.as_ref() == Some(&meta.branch) {
        return Ok(Ok(()));
    }
    let actual =
        actual.map_or_else(|| "no branch (HEAD is detached)".to_owned(), |name| name.to_string());
    Ok(Err(WorktreeFault::WrongBranch { path, actual, expected: meta.branch.to_string() }))
}

/// Refuses a branch that has lost the last accepted commit: everything that was accepted would count as done without
/// being there. Returns the message of the refusal.
pub(crate) async fn check_accepted(
    product: &WorktreeRepo,
    workstream: &Workstream,
    head: Option<&Sha>,
) -> WfResult<Result<(), String>> {
    let (meta, Some(head)) = (&workstream.meta, head) else { return Ok(Ok(())) };
    let Some(accepted) = &meta.last_commit_sha else { return Ok(Ok(())) };
    let user = product.user();
    let is_known = user.resolve_commit(accepted.as_str()).await.or_exit(WfExit::General)?.is_some();
    if is_known && user.is_ancestor(accepted, head).await.or_exit(WfExit::General)? {
        return Ok(Ok(()));
    }
    let (branch, worktree) = (&meta.branch, meta.worktree.display());
    let remedy = match is_known {
        true => format!("bring it back: git -C {worktree} merge {accepted}"),
        false => "fetch or restore it".to_owned(),
    };
    Ok(Err(format!(
        "{branch} does not contain {accepted}, which was accepted; the branch was reset or rewritten: {remedy}, or have what is not on the branch done again: wf reset {}",
        meta.id
    )))
}

/// Uncommitted changes of a checkout, without the results that tests leave there: those are never committed.
pub(crate) async fn own_changes(
    product: &WorktreeRepo,
    checkout: &Path,
) -> WfResult<Vec<DirtyPath>> {
    let mut dirty = product.dirty_paths(checkout).await.or_exit(WfExit::General)?;
    dirty.retain(|dirty| dirty.code != "??" || !dirty.path.starts_with(TEST_RESULTS));
    Ok(dirty)
}

/// Folder in which suites leave their results.
const TEST_RESULTS: &[u8] = b"test-results/";

/// The remote that workstreams are pushed to.
pub(super) fn origin() -> WfResult<RemoteName> {
    RemoteName::parse("origin").or_exit(WfExit::Internal)
}

/// The user's git identity, or a fixed one where git has none configured.
pub(crate) async fn identity(product: &WorktreeRepo) -> WfResult<GitIdentity> {
    let (name, email) = product.user().user_identity().await.or_exit(WfExit::General)?;
    Ok(GitIdentity {
        name: name.unwrap_or_else(|| "wf".to_owned()),
        email: email.unwrap_or_else(|| "wf@localhost".to_owned()),
    })
}

/// Reports whether a path lies below a folder once links and dots are gone.
pub(crate) fn is_below(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| match path.canonicalize() {
        Ok(real) => real,
        // A path that does not exist is resolved through its parent.
        Err(_) => {
            let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
            parent
                .zip(path.file_name())
                .map_or_else(|| path.to_path_buf(), |(dir, name)| dir.join(name))
        }
    };
    let (path, folder) = (real(path), real(folder));
    path != folder && path.starts_with(&folder)
}

pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}
