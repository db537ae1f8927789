//! Merge forecasts: a branch against its base branch, and two branches that touch the same files. The merge is made in
//! memory; no branch and no worktree changes.

use host::git::WorktreeRepo;
use merge::resolver::decide::TrustThreshold;
use model::id::Sha;
use serde::Serialize;

use super::resolver::{MergeScratch, open_paths};
use crate::exit::{OrExit, WfExit, WfResult};

/// Expected result of merging two branches with git and then the resolver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "merge", rename_all = "snake_case")]
pub(crate) enum BranchForecast {
    /// Git merges them without a conflict.
    Clean,
    /// They conflict in these paths, and the resolver resolves all of them.
    Resolves { paths: Vec<String> },
    /// `paths` need a person; the resolver resolves the others.
    Conflicts { paths: Vec<String>, resolved: Vec<String> },
    /// They have no common ancestor.
    Impossible { reason: String },
}

/// Merges two commits in memory and reports what the merge comes to.
pub(crate) async fn forecast(
    product: &WorktreeRepo,
    ours: &Sha,
    theirs: &Sha,
) -> WfResult<BranchForecast> {
    if product.merge_base(ours, theirs).await.or_exit(WfExit::General)?.is_none() {
        let reason = "they have no commit in common".to_owned();
        return Ok(BranchForecast::Impossible { reason });
    }
    let scratch = MergeScratch::open(product).await?;
    let merge = scratch.resolve(ours, theirs, TrustThreshold::DEFAULT).await?;
    let resolved: Vec<String> = merge.receipts.iter().map(|it| it.path.to_string()).collect();
    Ok(match (merge.rest.is_empty(), resolved.is_empty()) {
        (true, true) => BranchForecast::Clean,
        (true, false) => BranchForecast::Resolves { paths: resolved },
        (false, _) => BranchForecast::Conflicts { paths: open_paths(&merge), resolved },
    })
}

impl BranchForecast {
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Clean => "merges cleanly".to_owned(),
            Self::Resolves { paths } => {
                format!("merges; conflicts that resolve automatically: {}", paths.join(", "))
            }
            Self::Conflicts { paths, resolved } if resolved.is_empty() => {
                format!("conflicts in {}", paths.join(", "))
            }
            Self::Conflicts { paths, resolved } => {
                format!(
                    "conflicts in {}; {} more resolve automatically",
                    paths.join(", "),
                    resolved.len()
                )
            }
            Self::Impossible { reason } => format!("cannot be merged: {reason}"),
        }
    }
}
