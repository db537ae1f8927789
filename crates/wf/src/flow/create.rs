//! Creating a workstream: branch, worktree and folder, all of them or none.
//!
//! The change is recorded first, and the folder gets its name last: a `wf new` that was killed before that is taken back
//! by the next command.

use std::path::Path;
use std::time::Duration;

use host::git::{RemoteBranch, WorktreeRepo};
use model::id::{BranchName, Sha, WorkstreamId};

use super::include::fill;
use super::interrupted::{FinishedChange, finish_locked, undo_new};
use super::product::origin;
use super::refresh::{Tips, refresh};
use crate::disk::question::{ANSWERED, PENDING};
use crate::disk::uat::PENDING_UATS;
use crate::disk::workstream::{META, NOTES, PLAN, TOUCHED};
use crate::disk::{
    DiskError, DiskResult, PendingChange, ProjectDirs, StateFile, Workstream, make_dir, move_dir,
    save,
};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::conflict::parse_expected;
use crate::rules::meta::{NewMeta, StoryLink, render_new};
use crate::rules::plan::render_new_plan;
use crate::rules::profile::TestIn;
use crate::rules::project::branch_of;
use crate::rules::sparse::choose_sparse;
use crate::rules::status::WorkstreamStatus;

const REMOTE_LIMIT: Duration = Duration::from_secs(10);
const TITLE_MAX: usize = 100;

/// Arguments of `wf new`, unchecked.
#[derive(Debug, Clone)]
pub(crate) struct CreateRequest<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) expected: &'a str,
    pub(crate) prefix: Option<&'a str>,
    /// A workstream or a branch.
    pub(crate) base: Option<&'a str>,
    /// Workstreams that must be merged before.
    pub(crate) after: &'a [String],
    pub(crate) checkout: CheckoutExtent,
    pub(crate) story: Option<StoryLink>,
}

/// Part of the repository that a worktree has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckoutExtent {
    /// The choice of `SPARSE` in the profile.
    Profile,
    /// The expected paths and the folders that `SPARSE_PATHS` names.
    Sparse,
}

/// Creates the workstream. The warnings name what could not be checked.
pub(crate) async fn create(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    request: &CreateRequest<'_>,
) -> WfResult<(Workstream, Vec<String>)> {
    let spec = check(dirs, product, request).await?;
    let mut warnings = ask_remote(product, &spec.branch).await?;
    let lock = dirs.lock_global_with_git(&format!("new {}", spec.id)).await?;
    if finish_locked(dirs, product, &spec.id, &lock).await? == Some(FinishedChange::Created) {
        let workstream = Workstream::load_dir(&dirs.workstream_dir(&spec.id))?;
        return Ok((workstream, warnings));
    }
    refuse_taken(dirs, product, &spec).await?;
    let NewMeta { id, branch, base_sha: base, worktree, .. } = spec.clone();
    PendingChange::New { branch, base, worktree }.save(dirs, &id)?;
    host::failpoint::hit("new-intended");
    match build(dirs, product, &spec).await {
        Ok((workstream, more)) => {
            warnings.extend(more);
            dirs.write_active()?;
            PendingChange::remove(dirs, &id)?;
            Ok((workstream, warnings))
        }
        Err(failure) => {
            let made = (&spec.branch, &spec.base_sha, spec.worktree.as_path());
            // The first error is the one to report. The record stays where not everything could be taken back.
            if undo_new(dirs, product, &id, made).await.is_ok() {
                PendingChange::remove(dirs, &id).ok();
            }
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
    if product.user().is_shallow() {
        return Err(Failure::usage(
            "the repository is a shallow clone, in which nothing can run; run 'git fetch --unshallow' in it first",
        ));
    }
    let mut after: Vec<String> = Vec::new();
    for id in request.after {
        dirs.find_workstream(id)?;
        if !after.contains(id) {
            after.push(id.clone());
        }
    }
    let sparse = sparse_folders(dirs, request.checkout, &expected)?;
    let (base_branch, base) = find_base(dirs, product, request.base).await?;
    let spec = NewMeta {
        worktree: dirs.worktree(&id),
        id,
        title: request.title.to_owned(),
        branch,
        base_branch,
        base_sha: base,
        expected_paths: expected,
        after,
        sparse,
        story: request.story.clone(),
        now: host::clock::now(),
    };
    render_new(&spec).or_exit(WfExit::Config)?;
    Ok(spec)
}

/// Folders of a sparse worktree; none for a whole one.
fn sparse_folders(
    dirs: &ProjectDirs,
    extent: CheckoutExtent,
    expected: &[String],
) -> WfResult<Vec<String>> {
    let (profile, _) = dirs.load_profile()?;
    if extent == CheckoutExtent::Profile && !profile.sparse.is_on {
        return Ok(Vec::new());
    }
    if profile.test_in == TestIn::Host {
        return Err(Failure::usage(
            "with TEST_IN=host the tests run in the worktree, and a sparse one has not all of them; set TEST_IN=box in the profile, or leave out --sparse and SPARSE",
        ));
    }
    let folders = choose_sparse(expected, &profile.sparse.paths);
    if folders.is_empty() {
        return Err(Failure::usage(
            "a sparse worktree has the expected paths, and none are named; name them after the title, or set SPARSE_PATHS in the profile",
        ));
    }
    Ok(folders)
}

/// Finds the base of a workstream and its tip. A workstream of that name comes before a branch.
async fn find_base(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    named: Option<&str>,
) -> WfResult<(BranchName, Sha)> {
    let workstream = named.and_then(|name| dirs.find_workstream(name).ok());
    let branch = match (named, workstream) {
        (None, _) => dirs.project.default_branch.clone(),
        // Its branch is not merged again, so what starts there would stay there.
        (Some(_), Some(it)) if it.meta.status == WorkstreamStatus::Done => it.meta.base_branch,
        (Some(_), Some(workstream)) => workstream.meta.branch,
        (Some(name), None) => BranchName::parse(name).or_exit(WfExit::Config)?,
    };
    let tip = product.branch_tip(&branch).await.or_exit(WfExit::General)?;
    let tip = tip.ok_or_else(|| {
        let message = match named {
            Some(name) => {
                format!("there is no workstream and no branch '{name}' to start from; see: wf list")
            }
            None => format!(
                "the repository has no branch '{branch}'; correct DEFAULT_BRANCH in project.env"
            ),
        };
        Failure::usage(message)
    })?;
    Ok((branch, tip))
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

async fn build(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    spec: &NewMeta,
) -> WfResult<(Workstream, Vec<String>)> {
    make_dir(&dirs.worktrees_dir())?;
    let NewMeta { worktree, branch, base_sha, .. } = spec;
    let folders = &spec.sparse;
    if folders.is_empty() {
        product.add_worktree(worktree, branch, base_sha).await.or_exit(WfExit::General)?;
    } else {
        let made = product.add_sparse_worktree(worktree, branch, base_sha, folders).await;
        made.or_exit(WfExit::General)?;
    }
    host::failpoint::hit("new-worktree");
    let warnings = fill(dirs, product, worktree).await;
    write_files(&dirs.unfinished_dir(&spec.id), spec)?;
    host::failpoint::hit("new-files");
    let dir = dirs.workstream_dir(&spec.id);
    move_dir(&dirs.unfinished_dir(&spec.id), &dir)?;
    host::failpoint::hit("new-moved");
    let mut workstream = Workstream::load_dir(&dir)?;
    let tips = Tips::observe(product).await?;
    refresh(product, &tips, &mut workstream).await?;
    Ok((workstream, warnings))
}

/// Writes the files of a workstream into a folder that becomes one when it is complete.
fn write_files(dir: &Path, spec: &NewMeta) -> DiskResult<()> {
    for folder in [PENDING, ANSWERED, PENDING_UATS, "uat/passed", "uat/failed"] {
        make_dir(&dir.join(folder))?;
    }
    save(&dir.join(PLAN), render_new_plan(spec.id.as_str(), &spec.title).as_bytes())?;
    save(&dir.join(NOTES), format!("# Notes: {}\n", spec.title).as_bytes())?;
    save(&dir.join(TOUCHED), b"")?;
    let meta = render_new(spec).map_err(DiskError::in_file(&dir.join(META)))?;
    save(&dir.join(META), meta.to_string().as_bytes())
}
