//! `wf update`: merges the base branch into a workstream's branch.
//!
//! The merge is made from objects alone. The worktree is fast-forwarded at the end; until then nothing changes in it.

use host::git::{CommitDraft, OldValue, RefName, WorktreeRepo};
use merge::resolver::decide::TrustThreshold;
use merge::resolver::receipt::Receipt;
use model::id::Sha;
use model::inert::inert_line;
use serde::Serialize;
use shell::Ui;

use super::agent_merge::{MergeAgent, NoMerge, OpenMerge, conclude};
use super::base::check_rewritten;
use super::forward::{fast_forward, mend_forward};
use super::merge::refuse_dirty;
use super::product::{check_worktree, identity};
use super::refresh::{Tips, refresh};
use super::resolver::{MergeScratch, open_paths};
use crate::disk::{PendingForward, ProjectDirs, Workstream};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::profile::Profile;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub(crate) enum Updated {
    /// The base branch was contained already.
    Same,
    /// The branch had no commits of its own and was fast-forwarded to its base.
    Forward { commit: Sha },
    /// The base branch was merged, and these conflicts were resolved.
    Merged {
        commit: Sha,
        receipts: Vec<Receipt>,
        #[serde(skip_serializing_if = "Option::is_none")]
        by_agent: Option<AgentShare>,
    },
}

/// Conflicts that an agent resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct AgentShare {
    pub(crate) agent: &'static str,
    pub(crate) paths: Vec<String>,
}

/// Treatment of conflicts that the resolver leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenConflicts {
    Agent,
    Refuse,
}

/// Options of an update.
pub(crate) struct UpdateOptions<'a> {
    pub(crate) ui: &'a Ui,
    pub(crate) profile: &'a Profile,
    pub(crate) trust: TrustThreshold,
    pub(crate) open: OpenConflicts,
}

const NAMED: usize = 10;

/// Updates; the caller holds the workstream's lock. The global lock is not held while an agent works.
pub(crate) async fn update(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &mut Workstream,
    options: &UpdateOptions<'_>,
) -> WfResult<Updated> {
    let note = format!("update {}", workstream.meta.id);
    let lock = dirs.lock_global_with_git(&note).await?;
    let [head, base] = observe_sides(dirs, product, workstream).await?;
    let meta = workstream.meta.clone();
    let user = product.user();
    let updated = if user.is_ancestor(&base, &head).await.or_exit(WfExit::General)? {
        drop(lock);
        Updated::Same
    } else if user.is_ancestor(&head, &base).await.or_exit(WfExit::General)? {
        drop(lock);
        Updated::Forward { commit: base }
    } else {
        drop(lock);
        merge_base(dirs, product, workstream, [&head, &base], options).await?
    };
    let _lock = dirs.lock_global_with_git(&note).await?;
    if let Updated::Forward { commit } | Updated::Merged { commit, .. } = &updated {
        let (checkout, from, to) = (meta.worktree.clone(), head.clone(), commit.clone());
        let pending = PendingForward { checkout, from, to };
        fast_forward(dirs, product, &meta.id, &pending).await?.or_exit(WfExit::Blocked)?;
    }
    // Which files are the workstream's own depends on what it was merged with.
    *workstream = Workstream::load_dir(&workstream.dir)?;
    refresh(product, &Tips::observe(product).await?, workstream).await?;
    dirs.write_active()?;
    Ok(updated)
}

/// Checks that the worktree can be updated, and returns the tips of its branch and of the base branch.
async fn observe_sides(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
) -> WfResult<[Sha; 2]> {
    let meta = &workstream.meta;
    check_worktree(dirs, product, workstream).await?.or_exit(WfExit::Implement)?;
    let stands = check_rewritten(dirs, product, workstream).await?;
    stands.map_err(|message| Failure::new(WfExit::Implement, message))?;
    mend_forward(dirs, product, &meta.id).await?;
    refuse_dirty(product, &meta.worktree, "the worktree").await?;
    let lost = |name: &str| Failure::new(WfExit::Implement, format!("there is no branch {name}"));
    let base = product.branch_tip(&meta.base_branch).await.or_exit(WfExit::General)?;
    let base = base.ok_or_else(|| lost(meta.base_branch.as_str()))?;
    let head = product.branch_tip(&meta.branch).await.or_exit(WfExit::General)?;
    let head = head.ok_or_else(|| lost(meta.branch.as_str()))?;
    Ok([head, base])
}

async fn merge_base(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
    [head, base]: [&Sha; 2],
    options: &UpdateOptions<'_>,
) -> WfResult<Updated> {
    let meta = &workstream.meta;
    let common = product.merge_base(head, base).await.or_exit(WfExit::General)?;
    if common.is_none() {
        let words = format!("{} and {} have no commit in common", meta.branch, meta.base_branch);
        return Err(Failure::new(WfExit::Blocked, words));
    }
    let scratch = MergeScratch::open(product).await?;
    let resolved = scratch.resolve(head, base, options.trust).await?;
    let message = render_message(workstream, &resolved.receipts);
    if !resolved.rest.is_empty() {
        let paths = open_paths(&resolved);
        if options.open == OpenConflicts::Refuse {
            return Err(refusal(workstream, &paths, ""));
        }
        let UpdateOptions { ui, profile, .. } = *options;
        let agent = MergeAgent { ui, dirs, product, workstream, profile };
        let scratch = &scratch;
        let merge = OpenMerge { head, base, scratch, resolved: &resolved, message: &message };
        let (commit, agent) = conclude(&agent, &merge).await.map_err(|error| match error {
            NoMerge::Open(why) => refusal(workstream, &paths, &format!(" ({why})")),
            NoMerge::Failed(failure) => failure,
        })?;
        let by_agent = Some(AgentShare { agent, paths });
        return Ok(Updated::Merged { commit, receipts: resolved.receipts, by_agent });
    }
    let draft = CommitDraft {
        tree: &resolved.tree,
        parents: &[head.clone(), base.clone()],
        identity: &identity(product).await?,
        when: host::clock::now(),
        message: &message,
    };
    let commit = scratch.repo.commit_tree(draft).await.or_exit(WfExit::General)?;
    let name = RefName::parse("refs/wf/update").or_exit(WfExit::Internal)?;
    scratch.repo.update_ref(&name, &commit, OldValue::Missing).await.or_exit(WfExit::General)?;
    product.take_objects(&scratch.repo, &name).await.or_exit(WfExit::General)?;
    Ok(Updated::Merged { commit, receipts: resolved.receipts, by_agent: None })
}

fn refusal(workstream: &Workstream, open: &[String], why: &str) -> Failure {
    let meta = &workstream.meta;
    let more = open.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Failure::new(
        WfExit::Blocked,
        format!(
            "{} conflicts with {} in {}{more}, and nothing was changed{why}; merge it by hand: git -C {} merge {}",
            meta.branch,
            meta.base_branch,
            open.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", "),
            meta.worktree.display(),
            meta.base_branch
        ),
    )
}

/// Message of the merge commit: names each resolved conflict, so that the history records it.
fn render_message(workstream: &Workstream, receipts: &[Receipt]) -> String {
    let meta = &workstream.meta;
    let mut message = format!("Merge {} into workstream {}\n", meta.base_branch, meta.id);
    if !receipts.is_empty() {
        message.push_str("\nConflicts that were resolved automatically:\n\n");
    }
    for receipt in receipts {
        message.push_str(&format!("- {}\n", inert_line(&render_receipt(receipt))));
    }
    message
}

/// One resolved conflict: path, action, strategies and confidence.
pub(crate) fn render_receipt(receipt: &Receipt) -> String {
    let mut strategies: Vec<String> =
        receipt.steps.iter().map(|step| step.strategy.to_string()).collect();
    strategies.dedup();
    let (action, sure) = (receipt.action.as_str(), receipt.confidence * 100.0);
    format!("{}: {action} (by {}, {sure:.0} % sure)", receipt.path, strategies.join(", "))
}
