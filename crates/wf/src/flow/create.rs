//! Creating a workstream: branch, worktree and folder, all of them or none.

use std::time::Duration;

use host::git::{RemoteBranch, WorktreeRepo};
use model::id::{BranchName, WorkstreamId};

use super::product::origin;
use super::refresh::{Tips, refresh};
use crate::disk::question::{ANSWERED, PENDING};
use crate::disk::uat::PENDING_UATS;
use crate::disk::workstream::{META, NOTES, PLAN, TOUCHED};
use crate::disk::{DiskError, DiskResult, ProjectDirs, Workstream, make_dir, save};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::conflict::parse_expected;
use crate::rules::meta::{NewMeta, render_new};
use crate::rules::plan::render_new_plan;
use crate::rules::project::branch_of;

const REMOTE_LIMIT: Duration = Duration::from_secs(10);
const TITLE_MAX: usize = 100;

/// Arguments of `wf new`, unchecked.
#[derive(Debug, Clone)]
pub(crate) struct CreateRequest<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) expected: &'a str,
    pub(crate) prefix: Option<&'a str>,
}

/// Creates the workstream. The warnings name what could not be checked.
pub(crate) async fn create(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    request: &CreateRequest<'_>,
) -> WfResult<(Workstream, Vec<String>)> {
    let spec = check(dirs, product, request).await?;
    let warnings = ask_remote(product, &spec.branch).await?;
    let _lock = dirs.lock_global(&format!("new {}", spec.id)).await?;
    refuse_taken(dirs, product, &spec).await?;
    match build(dirs, product, &spec).await {
        Ok(workstream) => {
            dirs.write_active()?;
            Ok((workstream, warnings))
        }
        Err(failure) => {
            roll_back(dirs, product, &spec).await;
            Err(failure)
        }
    }
}

/// Checks every argument before anything is created, so that a refusal leaves no trace.
async fn check(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    request: &CreateRequest<'_>,
) -> WfResult<NewMeta> {
    let id = WorkstreamId::parse(request.id).or_exit(WfExit::Config)?;
    let length = request.title.chars().count();
    if request.title.trim().is_empty() {
        return Err(Failure::usage("the title is empty; it must have 1 to 100 characters"));
    }
    if length > TITLE_MAX {
        let message = format!("the title must have 1 to {TITLE_MAX} characters, not {length}");
        return Err(Failure::usage(message));
    }
    let expected = parse_expected(request.expected).or_exit(WfExit::Config)?;
    let prefix = request.prefix.unwrap_or(&dirs.project.branch_prefix);
    let branch = branch_of(prefix, id.as_str()).or_exit(WfExit::Config)?;
    let default = &dirs.project.default_branch;
    let base = product.branch_tip(default).await.or_exit(WfExit::General)?.ok_or_else(|| {
        Failure::usage(format!(
            "the repository has no branch '{default}'; correct DEFAULT_BRANCH in project.env"
        ))
    })?;
    let spec = NewMeta {
        worktree: dirs.worktree(&id),
        id,
        title: request.title.to_owned(),
        branch,
        base_branch: default.clone(),
        base_sha: base,
        expected_paths: expected,
        now: host::clock::now(),
    };
    render_new(&spec).or_exit(WfExit::Config)?;
    Ok(spec)
}

/// Asks origin whether it has the branch, without fetching or pruning anything.
async fn ask_remote(product: &WorktreeRepo, branch: &BranchName) -> WfResult<Vec<String>> {
    let origin = origin()?;
    if !product.user().has_remote(&origin) {
        return Ok(Vec::new());
    }
    match product.remote_branch(&origin, branch, REMOTE_LIMIT).await {
        Ok(RemoteBranch::Absent) => Ok(Vec::new()),
        Ok(RemoteBranch::At(_)) => Err(Failure::usage(format!(
            "the branch {branch} exists on {origin}; choose another id or --prefix"
        ))),
        Err(error) => {
            Ok(vec![format!("{origin} could not be asked whether it has {branch}: {error}")])
        }
    }
}

async fn refuse_taken(dirs: &ProjectDirs, product: &WorktreeRepo, spec: &NewMeta) -> WfResult<()> {
    let NewMeta { id, branch, worktree, .. } = spec;
    if dirs.workstream_dir(id).exists() {
        return Err(Failure::usage(format!(
            "the workstream {id} exists already; see: wf status {id}"
        )));
    }
    if product.branch_tip(branch).await.or_exit(WfExit::General)?.is_some() {
        return Err(Failure::usage(format!(
            "the branch {branch} exists already; a closed workstream keeps its branch: choose another id or --prefix"
        )));
    }
    if worktree.symlink_metadata().is_ok() {
        return Err(Failure::usage(format!(
            "the worktree folder {} exists already",
            worktree.display()
        )));
    }
    Ok(())
}

async fn build(dirs: &ProjectDirs, product: &WorktreeRepo, spec: &NewMeta) -> WfResult<Workstream> {
    make_dir(&dirs.worktrees_dir())?;
    let NewMeta { worktree, branch, base_sha, .. } = spec;
    product.add_worktree(worktree, branch, base_sha).await.or_exit(WfExit::General)?;
    host::failpoint::hit("new-worktree");
    let mut workstream = write_files(dirs, spec)?;
    let tips = Tips::observe(product).await?;
    refresh(product, &tips, &mut workstream).await?;
    Ok(workstream)
}

/// Writes the files of a workstream. meta.env comes last, because a folder counts as a workstream only with it.
fn write_files(dirs: &ProjectDirs, spec: &NewMeta) -> DiskResult<Workstream> {
    let dir = dirs.workstream_dir(&spec.id);
    make_dir(&dirs.workstreams_dir())?;
    for folder in [PENDING, ANSWERED, PENDING_UATS, "uat/passed", "uat/failed"] {
        make_dir(&dir.join(folder))?;
    }
    save(&dir.join(PLAN), render_new_plan(spec.id.as_str(), &spec.title).as_bytes())?;
    save(&dir.join(NOTES), format!("# Notes: {}\n", spec.title).as_bytes())?;
    save(&dir.join(TOUCHED), b"")?;
    let meta = render_new(spec).map_err(DiskError::in_file(&dir.join(META)))?;
    save(&dir.join(META), meta.to_string().as_bytes())?;
    Workstream::load_dir(&dir)
}

/// Removes what this call created and nothing else: under the lock all three were absent, and the branch is deleted only
/// while it is still at its base. Errors are ignored, because the first error is the one to report.
async fn roll_back(dirs: &ProjectDirs, product: &WorktreeRepo, spec: &NewMeta) {
    product.discard_worktree(&spec.worktree).await.ok();
    product.delete_branch(&spec.branch, &spec.base_sha).await.ok();
    let dir = dirs.workstream_dir(&spec.id);
    if dir.is_dir() {
        host::file::remove_tree_safely(&dir).ok();
    }
}
