//! Starting over from what is on the branch: a try that was not judged is forgotten, and micro-commits whose accepted
//! commits are not on the branch any more are to be done again.

use std::collections::BTreeSet;

use host::git::WorktreeRepo;
use model::id::{MicroCommitId, Sha};
use serde::Serialize;

use super::gate::update_status;
use crate::disk::{Implemented, ProjectDirs, StateFile, Workstream, list_runs, load_result};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::pipeline::RunOutcome;
use crate::rules::plan::mark_undone;
use crate::rules::status::WorkstreamStatus;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ResetOutcome {
    /// Micro-commits that are to be done again.
    pub(crate) undone: Vec<MicroCommitId>,
    /// The last accepted commit that is on the branch.
    pub(crate) accepted: Option<Sha>,
    pub(crate) status: WorkstreamStatus,
}

/// Commits that runs recorded: the accepted one of each micro-commit, and all.
#[derive(Default)]
struct RecordedCommits {
    accepted: Vec<(MicroCommitId, Sha)>,
    all: BTreeSet<String>,
}

/// Resets; the caller holds the workstream's lock and the global one.
pub(crate) async fn reset(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &mut Workstream,
) -> WfResult<ResetOutcome> {
    let meta = workstream.meta.clone();
    let head = product.branch_tip(&meta.branch).await.or_exit(WfExit::General)?;
    let head = head.ok_or_else(|| Failure::usage(format!("there is no branch {}", meta.branch)))?;
    let base = find_start(product, workstream, &head).await?;
    let recorded = load_recorded(dirs, workstream)?;
    let branch = product.commits_between(&base, &head).await.or_exit(WfExit::General)?;
    // A commit that no run made was written again by a person, such as in a rebase.
    let is_accepted = |id: &MicroCommitId, (sha, subject): &(Sha, String)| {
        let is_new = !recorded.all.contains(sha.as_str());
        subject.starts_with(&format!("{id}:"))
            && (is_new || recorded.accepted.contains(&(id.clone(), sha.clone())))
    };
    let plan = workstream.load_plan()?;
    let (mut undone, mut done) = (Vec::new(), Vec::new());
    for commit in plan.commits.iter().filter(|commit| commit.is_done) {
        // One that no run accepted was skipped or marked by a person.
        let was_accepted = recorded.accepted.iter().any(|(id, _)| *id == commit.id);
        let is_there = branch.iter().any(|it| is_accepted(&commit.id, it));
        if was_accepted && !is_there { undone.push(commit) } else { done.push(commit) }
    }
    let accepted = branch.iter().find(|it| done.iter().any(|commit| is_accepted(&commit.id, it)));
    let accepted = accepted.map(|(sha, _)| sha.clone());
    let undone: Vec<MicroCommitId> = undone.into_iter().map(|commit| commit.id.clone()).collect();
    for id in &undone {
        workstream.mark_plan(mark_undone, id)?;
    }
    Implemented::remove(dirs, &meta.id)?;
    host::file::remove_tree_safely(&dirs.agents_dir(&meta.id)).or_exit(WfExit::General)?;
    let sha = accepted.as_ref().map_or("", Sha::as_str);
    let status = if undone.is_empty() { meta.status } else { WorkstreamStatus::Implement };
    let changes = [
        ("LAST_COMMIT_SHA", sha),
        ("APPROVED_SHA", ""),
        ("STATUS", status.word()),
        ("BASE_SHA", base.as_str()),
    ];
    workstream.change(&changes)?;
    let status = update_status(workstream)?;
    Ok(ResetOutcome { undone, accepted, status })
}

/// The commit that the branch starts from: the recorded one, or after a rebase the last that it shares with its base.
async fn find_start(product: &WorktreeRepo, workstream: &Workstream, head: &Sha) -> WfResult<Sha> {
    let meta = &workstream.meta;
    let user = product.user();
    let is_known = user.resolve_commit(meta.base_sha.as_str()).await.or_exit(WfExit::General)?;
    if is_known.is_some()
        && user.is_ancestor(&meta.base_sha, head).await.or_exit(WfExit::General)?
    {
        return Ok(meta.base_sha.clone());
    }
    let tip = product.branch_tip(&meta.base_branch).await.or_exit(WfExit::General)?;
    let Some(tip) = tip else { return Ok(meta.base_sha.clone()) };
    let shared = product.merge_base(head, &tip).await.or_exit(WfExit::General)?;
    Ok(shared.unwrap_or_else(|| meta.base_sha.clone()))
}

fn load_recorded(dirs: &ProjectDirs, workstream: &Workstream) -> WfResult<RecordedCommits> {
    let mut recorded = RecordedCommits::default();
    for name in list_runs(&dirs.runs_dir())? {
        // A run that cannot be read says nothing.
        let Ok(Some(result)) = load_result(&dirs.runs_dir().join(name)) else { continue };
        let is_ours = result.project == dirs.project.name.as_str()
            && result.workstream == workstream.meta.id.as_str();
        let Some(sha) = result.commit_sha.filter(|_| is_ours) else { continue };
        recorded.all.insert(sha.clone());
        let id = result.microcommit.filter(|_| result.status == RunOutcome::Passed);
        recorded.accepted.extend(id.zip(Sha::parse(&sha).ok()));
    }
    Ok(recorded)
}
