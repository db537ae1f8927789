//! Refreshing the list of files that each workstream has touched.
//!
//! A few git calls serve all workstreams together: one for branches, one for worktrees, and one for the diffs of those
//! whose branch or base moved.

use std::collections::HashMap;
use std::path::PathBuf;

use futures_util::{StreamExt, stream};
use host::git::{WorktreeEntry, WorktreeRepo};
use model::id::Sha;

use crate::disk::workstream::{Durability, TOUCHED};
use crate::disk::{Workstream, save_derived, spread};
use crate::exit::{OrExit, WfExit, WfResult};
use crate::rules::meta::stamp;
use crate::rules::touched::render_touched;

/// Two git processes keep two processors busy; more would only take turns.
const AT_ONCE: usize = 2;

#[derive(Debug, Clone, Default)]
pub(crate) struct Tips {
    branches: HashMap<String, Sha>,
    worktrees: HashMap<PathBuf, Sha>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refreshed {
    Same,
    Anew,
    Missing,
}

impl Tips {
    pub(crate) async fn observe(product: &WorktreeRepo) -> WfResult<Self> {
        let branches = product.branches().await.or_exit(WfExit::General)?;
        let branches: HashMap<String, Sha> = branches.into_iter().collect();
        let worktrees = match product.read_worktrees() {
            Some(worktrees) => worktrees,
            None => product.worktrees().await.or_exit(WfExit::General)?,
        };
        let head_of = |entry: &WorktreeEntry| {
            let tip = entry.branch.as_ref().and_then(|branch| branches.get(branch.as_str()));
            entry.head.clone().or_else(|| tip.cloned())
        };
        let worktrees = worktrees.into_iter();
        let worktrees = worktrees.filter_map(|entry| Some((entry.path.clone(), head_of(&entry)?)));
        Ok(Self { worktrees: worktrees.collect(), branches })
    }

    /// Reads only the branches: reading a thousand worktrees takes time.
    pub(crate) async fn observe_branches(product: &WorktreeRepo) -> WfResult<Self> {
        let branches = product.branches().await.or_exit(WfExit::General)?;
        Ok(Self { branches: branches.into_iter().collect(), worktrees: HashMap::new() })
    }

    pub(crate) fn head_of(&self, workstream: &Workstream) -> Option<&Sha> {
        let path = &workstream.meta.worktree;
        let known = || self.worktrees.get(&path.canonicalize().ok()?);
        self.worktrees.get(path).or_else(known)
    }

    pub(crate) fn base_tip(&self, workstream: &Workstream) -> Option<&Sha> {
        self.branches.get(workstream.meta.base_branch.as_str())
    }

    pub(crate) fn branch_tip(&self, workstream: &Workstream) -> Option<&Sha> {
        self.branches.get(workstream.meta.branch.as_str())
    }
}

/// Refreshes one workstream and writes its meta.env. The caller holds the global lock.
pub(crate) async fn refresh(
    product: &WorktreeRepo,
    tips: &Tips,
    workstream: &mut Workstream,
) -> WfResult<Refreshed> {
    *workstream = Workstream::load_dir(&workstream.dir)?;
    let found = refresh_all(product, tips, std::slice::from_mut(workstream)).await;
    found.into_iter().next().unwrap_or(Ok(Refreshed::Missing))
}

enum Need {
    Missing,
    Nothing,
    List { from: Sha, head: Sha },
}

async fn observe_need(
    product: &WorktreeRepo,
    tips: &Tips,
    workstream: &Workstream,
) -> WfResult<Need> {
    let head = tips.head_of(workstream).filter(|_| workstream.meta.worktree.is_dir());
    let Some(head) = head else { return Ok(Need::Missing) };
    let base_tip = tips.base_tip(workstream);
    let meta = &workstream.meta;
    let is_same =
        meta.touched_head.as_ref() == Some(head) && meta.touched_base.as_ref() == base_tip;
    if is_same && workstream.dir.join(TOUCHED).is_file() {
        return Ok(Need::Nothing);
    }
    let from = touched_from(product, workstream, head, base_tip).await?;
    Ok(Need::List { from, head: head.clone() })
}

/// The commit to diff against. After the base branch was merged into the workstream, this is the merge base, so that the
/// base branch's files do not count as touched.
async fn touched_from(
    product: &WorktreeRepo,
    workstream: &Workstream,
    head: &Sha,
    base_tip: Option<&Sha>,
) -> WfResult<Sha> {
    let recorded = &workstream.meta.base_sha;
    let Some(tip) = base_tip.filter(|tip| *tip != recorded) else { return Ok(recorded.clone()) };
    let common = product.merge_base(tip, head).await.or_exit(WfExit::General)?;
    let Some(common) = common.filter(|common| common != recorded) else {
        return Ok(recorded.clone());
    };
    let descends = product.user().is_ancestor(recorded, &common).await.or_exit(WfExit::General)?;
    Ok(if descends { common } else { recorded.clone() })
}

/// Refreshes many workstreams, in their order. The caller read them under the global lock and still holds it.
pub(crate) async fn refresh_all(
    product: &WorktreeRepo,
    tips: &Tips,
    workstreams: &mut [Workstream],
) -> Vec<WfResult<Refreshed>> {
    let needs = workstreams.iter().map(|workstream| observe_need(product, tips, workstream));
    let needs: Vec<WfResult<Need>> =
        stream::iter(needs.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await;
    let mut lists = lists_of(product, &needs).await.into_iter();
    let now = stamp(host::clock::now());
    let pairs = workstreams.iter_mut().zip(needs);
    let work = pairs.map(|(workstream, need)| {
        let list = matches!(need, Ok(Need::List { .. })).then(|| lists.next()).flatten();
        (workstream, need, list)
    });
    spread(work.collect(), |(workstream, need, list)| {
        let paths = list.transpose()?.unwrap_or_default();
        apply(tips, workstream, need?, &paths, &now)
    })
}

fn apply(
    tips: &Tips,
    workstream: &mut Workstream,
    need: Need,
    paths: &[Vec<u8>],
    now: &str,
) -> WfResult<Refreshed> {
    let head = match need {
        Need::Missing => return Ok(Refreshed::Missing),
        Need::Nothing => {
            workstream.change_known(&[("LAST_REFRESHED", now)], Durability::Quick)?;
            return Ok(Refreshed::Same);
        }
        Need::List { head, .. } => head,
    };
    // Derived data: after a power failure it is rebuilt.
    save_derived(&workstream.dir.join(TOUCHED), &render_touched(paths))?;
    let base = tips.base_tip(workstream).map_or("", Sha::as_str).to_owned();
    let changes =
        [("LAST_REFRESHED", now), ("TOUCHED_HEAD", head.as_str()), ("TOUCHED_BASE", &base)];
    workstream.change_known(&changes, Durability::Quick)?;
    Ok(Refreshed::Anew)
}

/// Reads the needed lists in one git call; one by one if that fails, so that a bad commit spoils only its own.
async fn lists_of(product: &WorktreeRepo, needs: &[WfResult<Need>]) -> Vec<WfResult<Vec<Vec<u8>>>> {
    let pair = |need: &WfResult<Need>| match need {
        Ok(Need::List { from, head }) => Some((from.clone(), head.clone())),
        Ok(Need::Missing | Need::Nothing) | Err(_) => None,
    };
    let pairs: Vec<(Sha, Sha)> = needs.iter().filter_map(pair).collect();
    if let Ok(lists) = product.changed_paths_of(&pairs).await {
        return lists.into_iter().map(Ok).collect();
    }
    let one_by_one = pairs.iter().map(|(from, head)| async move {
        product.changed_paths(from, head).await.or_exit(WfExit::General)
    });
    stream::iter(one_by_one.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await
}
