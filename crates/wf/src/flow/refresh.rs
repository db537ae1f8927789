//! Refreshing: which files each workstream has touched (4.2, D49, D105).
//!
//! Git is asked three times for all workstreams together; only those whose branch or base moved cost a diff of their
//! own, two at a time.

use std::collections::HashMap;
use std::path::PathBuf;

use futures_util::{StreamExt, stream};
use host::git::ProductRepo;
use model::id::Sha;
use model::verdict::WfStatus;

use crate::disk::site::Site;
use crate::disk::workstream::{Durability, TOUCHED, Workstream};
use crate::exit::{Failure, OrExit};
use crate::rules::meta::stamp;
use crate::rules::touched::render_touched;

/// Two diffs keep two processors busy; more would only take turns.
const AT_ONCE: usize = 2;

/// Where everything is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tips {
    branches: HashMap<String, Sha>,
    worktrees: HashMap<PathBuf, Sha>,
}

/// What a refresh found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refreshed {
    /// Nothing moved.
    Same,
    /// The list was made anew.
    Anew,
    /// The worktree is gone.
    Missing,
}

impl Tips {
    /// Asks git where all branches and worktrees are.
    pub(crate) async fn observe(product: &ProductRepo) -> Result<Self, Failure> {
        let branches = product.branches().await.or_exit(WfStatus::General)?;
        let worktrees = product.worktrees().await.or_exit(WfStatus::General)?;
        Ok(Self {
            branches: branches.into_iter().collect(),
            worktrees: worktrees
                .into_iter()
                .filter_map(|entry| Some((entry.path, entry.head?)))
                .collect(),
        })
    }

    /// What is checked out in the worktree of a workstream.
    pub(crate) fn head_of(&self, workstream: &Workstream) -> Option<&Sha> {
        let path = &workstream.meta.worktree;
        let known = || self.worktrees.get(&path.canonicalize().ok()?);
        self.worktrees.get(path).or_else(known)
    }

    /// The tip of the branch that a workstream is based on.
    pub(crate) fn base_tip(&self, workstream: &Workstream) -> Option<&Sha> {
        self.branches.get(workstream.meta.base_branch.as_str())
    }

    /// The tip of a workstream's own branch.
    pub(crate) fn branch_tip(&self, workstream: &Workstream) -> Option<&Sha> {
        self.branches.get(workstream.meta.branch.as_str())
    }
}

/// Refreshes one workstream. Its meta.env is changed; the caller holds whatever lock that needs.
pub(crate) async fn refresh(
    product: &ProductRepo,
    tips: &Tips,
    workstream: &mut Workstream,
) -> Result<Refreshed, Failure> {
    let head = tips.head_of(workstream).filter(|_| workstream.meta.worktree.is_dir());
    let Some(head) = head else { return Ok(Refreshed::Missing) };
    let now = stamp(host::clock::now());
    let base_tip = tips.base_tip(workstream);
    let meta = &workstream.meta;
    let path = workstream.dir.join(TOUCHED);
    let is_same =
        meta.touched_head.as_ref() == Some(head) && meta.touched_base.as_ref() == base_tip;
    if is_same && path.is_file() {
        workstream.change(&[("LAST_REFRESHED", &now)], Durability::Quick)?;
        return Ok(Refreshed::Same);
    }
    let from = touched_from(product, workstream, head, base_tip).await?;
    let paths = product.changed_paths(&from, head).await.or_exit(WfStatus::General)?;
    // Derived data: after a power failure it is simply made again.
    host::file::write_transient(&path, &render_touched(&paths), crate::disk::SHARED)
        .or_exit(WfStatus::General)?;
    let changes = [
        ("LAST_REFRESHED", now.as_str()),
        ("TOUCHED_HEAD", head.as_str()),
        ("TOUCHED_BASE", base_tip.map_or("", Sha::as_str)),
    ];
    workstream.change(&changes, Durability::Quick)?;
    Ok(Refreshed::Anew)
}

/// After the base branch was merged into the workstream, its files are not the workstream's (D49).
async fn touched_from(
    product: &ProductRepo,
    workstream: &Workstream,
    head: &Sha,
    base_tip: Option<&Sha>,
) -> Result<Sha, Failure> {
    let recorded = &workstream.meta.base_sha;
    let Some(tip) = base_tip.filter(|tip| *tip != recorded) else { return Ok(recorded.clone()) };
    let common = product.merge_base(tip, head).await.or_exit(WfStatus::General)?;
    let Some(common) = common.filter(|common| common != recorded) else {
        return Ok(recorded.clone());
    };
    let descends =
        product.user().is_ancestor(recorded, &common).await.or_exit(WfStatus::General)?;
    Ok(if descends { common } else { recorded.clone() })
}

/// Refreshes many, and tells what was found of each, in their order.
pub(crate) async fn refresh_all(
    product: &ProductRepo,
    tips: &Tips,
    workstreams: &mut [Workstream],
) -> Vec<Result<Refreshed, Failure>> {
    let work = workstreams.iter_mut().map(|workstream| refresh(product, tips, workstream));
    stream::iter(work).buffered(AT_ONCE).collect().await
}

/// Writes the table of active workstreams, under the global lock.
pub(crate) async fn write_active(site: &Site) -> Result<Vec<crate::disk::DiskError>, Failure> {
    let _lock = site.lock_global("ACTIVE_WORKSTREAMS.md").await?;
    Ok(site.write_active()?)
}
