//! The base of a workstream where that is the branch of another one: whether it may be merged into it, whether it still
//! stands on it, and whether what counts as merged is there.

use std::collections::BTreeSet;

use host::git::WorktreeRepo;
use model::id::Sha;

use crate::disk::{ProjectDirs, Workstream};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::status::WorkstreamStatus;

/// The workstream that another one starts from.
pub(crate) enum LowerWorkstream {
    Open(Workstream),
    Closed(Workstream),
}

impl LowerWorkstream {
    fn workstream(&self) -> &Workstream {
        match self {
            Self::Open(workstream) | Self::Closed(workstream) => workstream,
        }
    }
}

/// Finds the workstream whose branch is the base of this one; of closed ones the last.
pub(crate) fn find_lower(
    dirs: &ProjectDirs,
    workstream: &Workstream,
) -> WfResult<Option<LowerWorkstream>> {
    let is_it = |it: &Workstream| {
        it.meta.branch == workstream.meta.base_branch && it.meta.id != workstream.meta.id
    };
    if let Some(open) = dirs.load_workstreams()?.0.into_iter().find(is_it) {
        return Ok(Some(LowerWorkstream::Open(open)));
    }
    let closed = dirs.load_closed()?.0.into_iter().rfind(is_it);
    Ok(closed.map(LowerWorkstream::Closed))
}

/// Refuses a merge into the branch of another workstream: what is merged there does not come to the branch that people use.
pub(crate) fn check_lower(dirs: &ProjectDirs, workstream: &Workstream) -> WfResult<()> {
    let id = &workstream.meta.id;
    let Some(lower) = find_lower(dirs, workstream)? else { return Ok(()) };
    let name = &lower.workstream().meta.id;
    let is_done = lower.workstream().meta.status == WorkstreamStatus::Done;
    let words = match (&lower, is_done) {
        (LowerWorkstream::Open(_), false) => {
            format!("{id} starts from {name}, which is not merged yet; first: wf merge {name}")
        }
        (LowerWorkstream::Open(_), true) => format!(
            "{id} still starts from {name}, which is merged; move it to what that one was merged into: wf merge {name}"
        ),
        (LowerWorkstream::Closed(closed), is_done) => {
            let how = if is_done { "is merged and closed" } else { "was closed without a merge" };
            let base = &closed.meta.base_branch;
            let open = if is_done { "" } else { &format!("open it again: wf open {name}, or ") };
            format!(
                "{id} starts from {name}, which {how}; {open}merge {id} into {base} with its commits: BASE_BRANCH={base} in {}",
                workstream.dir.join("meta.env").display()
            )
        }
    };
    Err(Failure::new(WfExit::Blocked, words))
}

/// Refuses a workstream whose lower one was reset or rewritten below it: it holds commits that were dropped there, and
/// would bring them back. Returns the message of the refusal.
pub(crate) async fn check_rewritten(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
) -> WfResult<Result<(), String>> {
    match find_lower(dirs, workstream)? {
        None => Ok(Ok(())),
        Some(lower) => stands_on(product, workstream, lower.workstream()).await,
    }
}

/// Checks that the commit which a workstream starts from is on the branch of the lower one.
pub(super) async fn stands_on(
    product: &WorktreeRepo,
    workstream: &Workstream,
    lower: &Workstream,
) -> WfResult<Result<(), String>> {
    let meta = &workstream.meta;
    let (branch, base) = (&lower.meta.branch, &meta.base_sha);
    // A branch that is gone is reported where it is needed.
    let Some(tip) = product.branch_tip(branch).await.or_exit(WfExit::General)? else {
        return Ok(Ok(()));
    };
    let user = product.user();
    let is_known = user.resolve_commit(base.as_str()).await.or_exit(WfExit::General)?.is_some();
    if !is_known || user.is_ancestor(base, &tip).await.or_exit(WfExit::General)? {
        return Ok(Ok(()));
    }
    let (id, short, worktree) = (&meta.id, base.short(), meta.worktree.display());
    Ok(Err(format!(
        "{id} starts from {short}, which is not on {branch} any more: that branch was reset or rewritten, and {id} holds what was dropped; put it on the new one: git -C {worktree} rebase --onto {branch} {short}, then: wf reset {id}"
    )))
}

/// Where the commits of a merged workstream are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergedCommits {
    /// In the base branch, or merged by a forge, which may have written them anew.
    Present,
    Lost,
    /// In the base branch, where every file that they changed is again as it was before.
    TakenBack,
    /// The base branch does not exist.
    BaseGone,
}

/// Observes whether the commits of a workstream that is done are in its base branch.
pub(crate) async fn observe_merged(
    product: &WorktreeRepo,
    workstream: &Workstream,
) -> WfResult<MergedCommits> {
    let meta = &workstream.meta;
    if meta.merge_pull.is_some() {
        return Ok(MergedCommits::Present);
    }
    let Some(base) = product.branch_tip(&meta.base_branch).await.or_exit(WfExit::General)? else {
        return Ok(MergedCommits::BaseGone);
    };
    let user = product.user();
    let mut commits = Vec::new();
    if let Some(accepted) = &meta.last_commit_sha {
        commits.extend(user.resolve_commit(accepted.as_str()).await.or_exit(WfExit::General)?);
    }
    commits.extend(product.branch_tip(&meta.branch).await.or_exit(WfExit::General)?);
    for commit in &commits {
        if !user.is_ancestor(commit, &base).await.or_exit(WfExit::General)? {
            return Ok(MergedCommits::Lost);
        }
    }
    let Some(last) = commits.first() else { return Ok(MergedCommits::Present) };
    match was_taken_back(product, workstream, last, &base).await? {
        true => Ok(MergedCommits::TakenBack),
        false => Ok(MergedCommits::Present),
    }
}

/// True if nothing of what a workstream changed is in a commit that contains it: a revert leaves the commits where they are.
async fn was_taken_back(
    product: &WorktreeRepo,
    workstream: &Workstream,
    last: &Sha,
    base: &Sha,
) -> WfResult<bool> {
    let user = product.user();
    let start = user.resolve_commit(workstream.meta.base_sha.as_str()).await;
    let Some(start) = start.or_exit(WfExit::General)? else { return Ok(false) };
    let (before, after) = find_merge(product, &start, last, base).await?;
    let own = product.changed_paths(&before, &after).await.or_exit(WfExit::General)?;
    let now = product.changed_paths(&before, base).await.or_exit(WfExit::General)?;
    let now: BTreeSet<Vec<u8>> = now.into_iter().collect();
    Ok(!own.is_empty() && !own.iter().any(|path| now.contains(path)))
}

/// The commits of the base branch around the merge of a workstream: the last one without its work, and the first one with it.
/// A branch that was only moved forward has nothing but its commits in between.
async fn find_merge(
    product: &WorktreeRepo,
    start: &Sha,
    accepted: &Sha,
    base: &Sha,
) -> WfResult<(Sha, Sha)> {
    let user = product.user();
    let line = user.first_parents(base, start).await.or_exit(WfExit::General)?;
    if line.contains(accepted) {
        return Ok((start.clone(), accepted.clone()));
    }
    let (mut without, mut with) = (0, line.len());
    while without < with {
        let middle = usize::midpoint(without, with);
        match user.is_ancestor(accepted, &line[middle]).await.or_exit(WfExit::General)? {
            true => with = middle,
            false => without = middle + 1,
        }
    }
    let before = without.checked_sub(1).map_or(start, |at| &line[at]);
    Ok((before.clone(), line.get(without).unwrap_or(base).clone()))
}

/// Finds those of the named workstreams that are done and whose commits are not where they were merged into.
pub(crate) async fn find_lost<'a>(
    product: &WorktreeRepo,
    workstreams: impl Iterator<Item = &'a Workstream>,
    named: &BTreeSet<&str>,
) -> WfResult<BTreeSet<String>> {
    let mut lost = BTreeSet::new();
    for workstream in workstreams {
        let meta = &workstream.meta;
        if meta.status == WorkstreamStatus::Done
            && named.contains(meta.id.as_str())
            && observe_merged(product, workstream).await? != MergedCommits::Present
        {
            lost.insert(meta.id.to_string());
        }
    }
    Ok(lost)
}
