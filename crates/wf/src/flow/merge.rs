//! Merging a finished workstream into the default branch.
//!
//! The merge commit is built from git objects, without a working tree. The branch then moves only if it is still where
//! it was observed; where it is checked out, git fast-forwards the files with it or refuses.

use std::path::{Path, PathBuf};
use std::time::Duration;

use host::git::{CommitDraft, WorktreeRepo};
use host::lock::{FileLock, PassLock};
use model::id::{Sha, WorkstreamId};
use model::inert::inert_line;

use super::base::{check_lower, check_rewritten, stands_on};
use super::forward::{fast_forward, mend_forward};
use super::product::{check_accepted, check_worktree, identity, origin, own_changes};
use crate::disk::question::blocking_questions;
use crate::disk::{DiskError, Effect, PendingForward, ProjectDirs, ProjectEffects, Workstream};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::plan::Plan;
use crate::rules::status::WorkstreamStatus;

const PUSH_LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Publish {
    Here,
    Push,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Merged {
    pub(crate) commit: Sha,
    pub(crate) is_fast_forward: bool,
    pub(crate) pushed: bool,
}

/// Checks every condition of a merge before anything moves.
pub(crate) async fn check_ready(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
) -> WfResult<()> {
    let meta = &workstream.meta;
    if meta.status != WorkstreamStatus::MergeReady {
        let words = format!("{} is not merge-ready: its status is {}", meta.id, meta.status);
        let needs = meta.status.needs_of(&meta.id);
        let needs = needs.map(|needs| format!("; {needs}")).unwrap_or_default();
        return Err(Failure::new(WfExit::Blocked, words + &needs));
    }
    // A plan that was extended after the acceptance, by a person or by a command that was killed. One that cannot be read may
    // have been.
    let plan = workstream.find_plan().map_err(|error| unreadable_plan(workstream, &error))?;
    if let Some(next) = plan.as_ref().and_then(Plan::next) {
        let words = format!("{} is not done: {} is still in the plan", meta.id, next.id);
        let remedy =
            format!("do it: wf run {0}, or drop it: wf plan drop {1} -w {0}", meta.id, next.id);
        return Err(Failure::new(WfExit::Blocked, format!("{words}; {remedy}")));
    }
    let stands = check_rewritten(dirs, product, workstream).await?;
    stands.map_err(|message| Failure::new(WfExit::Implement, message))?;
    check_lower(dirs, workstream)?;
    let questions = blocking_questions(&workstream.dir)?;
    if !questions.is_empty() {
        let words = format!("{} waits for answers: {}", meta.id, questions.join(", "));
        return Err(Failure::new(WfExit::Blocked, words));
    }
    check_worktree(dirs, product, workstream).await?.or_exit(WfExit::Implement)?;
    let head = product.branch_tip(&meta.branch).await.or_exit(WfExit::General)?;
    let accepted = check_accepted(product, workstream, head.as_ref()).await?;
    accepted.map_err(|message| Failure::new(WfExit::Implement, message))?;
    refuse_dirty(product, &meta.worktree, "the worktree").await
}

fn unreadable_plan(workstream: &Workstream, error: &DiskError) -> Failure {
    let id = &workstream.meta.id;
    let words = format!("{id} is not known to be done: {}", model::error_chain(error));
    Failure::new(WfExit::Blocked, words)
        .with_remedy(format!("correct its plan, then: wf merge {id}"))
}

/// Workstreams that start from a merged one.
#[derive(Debug, Default)]
pub(crate) struct Retargeted {
    /// Those that are based on what it was merged into now.
    pub(crate) moved: Vec<WorkstreamId>,
    /// Those that hold commits which were dropped from it, with the reason; they stay as they are.
    pub(crate) stuck: Vec<String>,
}

/// Moves the workstreams that start from a merged one to its base, which contains it now.
pub(crate) async fn retarget(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    merged: &Workstream,
) -> WfResult<Retargeted> {
    let mut found = Retargeted::default();
    for mut above in dirs.load_workstreams()?.0 {
        if above.meta.base_branch != merged.meta.branch {
            continue;
        }
        match stands_on(product, &above, merged).await? {
            Ok(()) => {
                above.change(&[("BASE_BRANCH", merged.meta.base_branch.as_str())])?;
                found.moved.push(above.meta.id.clone());
            }
            Err(message) => found.stuck.push(message),
        }
    }
    Ok(found)
}

pub(super) async fn refuse_dirty(product: &WorktreeRepo, dir: &Path, what: &str) -> WfResult<()> {
    let dirty = own_changes(product, dir).await?;
    match dirty.first() {
        None => Ok(()),
        Some(first) => Err(Failure::new(
            WfExit::Blocked,
            format!(
                "{what} {} has uncommitted changes, such as {}",
                dir.display(),
                String::from_utf8_lossy(&first.path)
            ),
        )),
    }
}

/// Merges locally what the gates judged, or returns `None` if a branch has moved since. The caller holds the workstream's
/// lock and the global one. The status changes last, so that a command that was killed before the push is finished by
/// running it again.
pub(crate) async fn merge_local(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &mut Workstream,
    judged: &Sha,
    publish: Publish,
    lock: &FileLock,
) -> WfResult<Option<Merged>> {
    let effects = ProjectEffects::of(dirs)?;
    let meta = workstream.meta.clone();
    let lost =
        |what: &str| Failure::new(WfExit::Implement, format!("{what} does not exist any more"));
    let base = product.branch_tip(&meta.base_branch).await.or_exit(WfExit::General)?;
    let base = base.ok_or_else(|| lost(meta.base_branch.as_str()))?;
    let head = product.branch_tip(&meta.branch).await.or_exit(WfExit::General)?;
    let head = head.ok_or_else(|| lost(meta.branch.as_str()))?;
    let checkout = checkout_of(product, workstream).await?;
    mend_forward(dirs, product, &meta.id).await?;
    if let Some(dir) = &checkout {
        refuse_dirty(product, dir, "the checkout").await?;
    }
    if !is_judged(product, judged, &base, &head).await? {
        return Ok(None);
    }
    let commit = make_commit(product, workstream, &base, &head).await?;
    host::failpoint::hit("merge-before-move");
    let target = format!("{} with {}", meta.base_branch, meta.branch);
    let merge = Effect { op: "branch.merge", target: &target, workstream: Some(&meta.id) };
    let moving = move_base(dirs, product, workstream, checkout.as_deref(), [&base, &commit]);
    effects.record(merge, moving).await??;
    host::failpoint::hit("merge-after-move");
    // A helper that git starts to reach origin may outlive it, and must not keep the lock.
    lock.pass_to_children(PassLock::No).or_exit(WfExit::General)?;
    let pushed = publish == Publish::Push;
    if pushed {
        let origin = origin()?;
        let target = meta.base_branch.as_str();
        let push = Effect { op: "branch.push", target, workstream: Some(&meta.id) };
        let pushing = product.push_branch(&origin, &meta.base_branch, PUSH_LIMIT);
        effects.record(push, pushing).await?.or_exit(WfExit::General)?;
    }
    workstream.set_status(WorkstreamStatus::Done, "")?;
    Ok(Some(Merged { is_fast_forward: commit == head, commit, pushed }))
}

/// Returns whether the merge of the two tips has the tree that the gates judged.
async fn is_judged(product: &WorktreeRepo, judged: &Sha, base: &Sha, head: &Sha) -> WfResult<bool> {
    Ok(head == judged && merges_to_head(product, base, head).await?)
}

/// Returns whether the base branch has the files of this head once it is merged, so that judging the head judges the result.
/// A base that contains the head has them if an earlier try was killed after it moved the base, or could not push; one that
/// went on from there is another result.
pub(crate) async fn merges_to_head(
    product: &WorktreeRepo,
    base: &Sha,
    head: &Sha,
) -> WfResult<bool> {
    let user = product.user();
    if user.is_ancestor(base, head).await.or_exit(WfExit::General)? {
        return Ok(true);
    }
    let trees = user.trees_of(&[base.clone(), head.clone()]).await.or_exit(WfExit::General)?;
    Ok(trees[0].is_some()
        && trees[0] == trees[1]
        && user.is_ancestor(head, base).await.or_exit(WfExit::General)?)
}

/// Moves the base branch: with its files where it is checked out, by its ref elsewhere.
async fn move_base(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
    checkout: Option<&Path>,
    [base, commit]: [&Sha; 2],
) -> WfResult<()> {
    let meta = &workstream.meta;
    let reason = format!("wf merge {}", meta.id);
    match checkout {
        Some(dir) => {
            let (from, to) = (base.clone(), commit.clone());
            let pending = PendingForward { checkout: dir.to_path_buf(), from, to };
            fast_forward(dirs, product, &meta.id, &pending).await?
        }
        None => product.move_branch(&meta.base_branch, commit, base, &reason).await,
    }
    .or_exit(WfExit::Blocked)
}

async fn checkout_of(product: &WorktreeRepo, workstream: &Workstream) -> WfResult<Option<PathBuf>> {
    let worktrees = product.worktrees().await.or_exit(WfExit::General)?;
    let base = &workstream.meta.base_branch;
    Ok(worktrees
        .into_iter()
        .find(|entry| entry.branch.as_ref() == Some(base))
        .map(|entry| entry.path))
}

/// Builds the new tip of the base branch: the workstream's tip, a merge of both, or the merge of an earlier try.
async fn make_commit(
    product: &WorktreeRepo,
    workstream: &Workstream,
    base: &Sha,
    head: &Sha,
) -> WfResult<Sha> {
    let user = product.user();
    if user.is_ancestor(head, base).await.or_exit(WfExit::General)? {
        return Ok(base.clone());
    }
    // A branch that merged its base would put the base's own commits behind it: its history begins with the other parent.
    if user.is_on_main_line(base, head).await.or_exit(WfExit::General)? {
        return Ok(head.clone());
    }
    let merged = product.merge_tree(base, head).await.or_exit(WfExit::General)?;
    if !merged.is_clean {
        let first =
            merged.stages.first().map(|stage| String::from_utf8_lossy(&stage.path).into_owned());
        let meta = &workstream.meta;
        return Err(Failure::new(
            WfExit::Blocked,
            format!(
                "{} conflicts with {} in {}; merge {} into the worktree {} and run: wf merge {}",
                meta.branch,
                meta.base_branch,
                first.unwrap_or_default(),
                meta.base_branch,
                meta.worktree.display(),
                meta.id
            ),
        ));
    }
    let meta = &workstream.meta;
    let message = format!("Merge workstream {}: {}\n", meta.id, inert_line(&meta.title));
    let new_commit = CommitDraft {
        tree: &merged.tree,
        parents: &[base.clone(), head.clone()],
        identity: &identity(product).await?,
        when: host::clock::now(),
        message: &message,
    };
    product.commit_tree(new_commit).await.or_exit(WfExit::General)
}
