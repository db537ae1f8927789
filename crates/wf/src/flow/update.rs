//! `wf update`: merges the base branch into a workstream's branch.
//!
//! The merge is made from objects alone. The worktree is fast-forwarded at the end; until then nothing changes in it.

use host::git::{CommitDraft, OldValue, RefName, WorktreeRepo};
use merge::resolver::decide::TrustThreshold;
use merge::resolver::receipt::Receipt;
use model::id::Sha;
use model::inert::inert_line;
use serde::Serialize;

use super::forward::{fast_forward, mend_forward};
use super::merge::refuse_dirty;
use super::product::{check_worktree, identity};
use super::resolver::{MergeScratch, open_paths};
use crate::disk::{PendingForward, ProjectDirs, Workstream};
use crate::exit::{Failure, OrExit, WfExit, WfResult};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub(crate) enum Updated {
    /// The base branch was contained already.
    Same,
    /// The branch had no commits of its own and was fast-forwarded to its base.
    Forward { commit: Sha },
    /// The base branch was merged, and these conflicts were resolved.
    Merged { commit: Sha, receipts: Vec<Receipt> },
}

const NAMED: usize = 10;

/// Updates; the caller holds the workstream's lock and the global one.
pub(crate) async fn update(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
    trust: TrustThreshold,
) -> WfResult<Updated> {
    let meta = &workstream.meta;
    check_worktree(dirs, product, workstream).await?.or_exit(WfExit::Implement)?;
    mend_forward(dirs, product, &meta.id).await?;
    refuse_dirty(product, &meta.worktree, "the worktree").await?;
    let lost = |name: &str| Failure::new(WfExit::Implement, format!("there is no branch {name}"));
    let base = product.branch_tip(&meta.base_branch).await.or_exit(WfExit::General)?;
    let base = base.ok_or_else(|| lost(meta.base_branch.as_str()))?;
    let head = product.branch_tip(&meta.branch).await.or_exit(WfExit::General)?;
    let head = head.ok_or_else(|| lost(meta.branch.as_str()))?;
    let user = product.user();
    if user.is_ancestor(&base, &head).await.or_exit(WfExit::General)? {
        return Ok(Updated::Same);
    }
    let updated = if user.is_ancestor(&head, &base).await.or_exit(WfExit::General)? {
        Updated::Forward { commit: base }
    } else {
        merge_base(product, workstream, [&head, &base], trust).await?
    };
    if let Updated::Forward { commit } | Updated::Merged { commit, .. } = &updated {
        let (checkout, from, to) = (meta.worktree.clone(), head.clone(), commit.clone());
        let pending = PendingForward { checkout, from, to };
        fast_forward(dirs, product, &meta.id, &pending).await?.or_exit(WfExit::Blocked)?;
    }
    Ok(updated)
}

async fn merge_base(
    product: &WorktreeRepo,
    workstream: &Workstream,
    [head, base]: [&Sha; 2],
    trust: TrustThreshold,
) -> WfResult<Updated> {
    let meta = &workstream.meta;
    let common = product.merge_base(head, base).await.or_exit(WfExit::General)?;
    if common.is_none() {
        let words = format!("{} and {} have no commit in common", meta.branch, meta.base_branch);
        return Err(Failure::new(WfExit::Blocked, words));
    }
    let scratch = MergeScratch::open(product).await?;
    let resolved = scratch.resolve(head, base, trust).await?;
    if !resolved.rest.is_empty() {
        return Err(refusal(workstream, &open_paths(&resolved)));
    }
    let message = render_message(workstream, &resolved.receipts);
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
    Ok(Updated::Merged { commit, receipts: resolved.receipts })
}

fn refusal(workstream: &Workstream, open: &[String]) -> Failure {
    let meta = &workstream.meta;
    let more = open.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Failure::new(
        WfExit::Blocked,
        format!(
            "{} conflicts with {} in {}{more}, and nothing was changed; merge it by hand: git -C {} merge {}",
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
