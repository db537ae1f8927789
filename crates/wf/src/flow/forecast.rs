//! Merge forecasts: a branch against its base branch, and two branches that touch the same files. The merge is made in
//! memory; no branch and no worktree changes.

use host::git::WorktreeRepo;
use merge::resolver::decide::TrustThreshold;
use model::id::Sha;

use super::resolver::{MergeScratch, open_paths};
use crate::disk::ProjectDirs;
use crate::disk::forecast_cache::ForecastCache;
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::branch_forecast::BranchForecast;

/// Forecasts many merges. One process of git tells which are clean; the resolver looks at the others; a forecast that was
/// made before is not made again.
pub(crate) async fn forecast_all(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    pairs: &[(Sha, Sha)],
) -> WfResult<Vec<BranchForecast>> {
    let mut cache = ForecastCache::load(dirs);
    let is_new = |(ours, theirs): &&(Sha, Sha)| cache.get(ours, theirs).is_none();
    let new: Vec<(Sha, Sha)> = pairs.iter().filter(is_new).cloned().collect();
    if !new.is_empty() {
        let scratch = MergeScratch::open(product).await?;
        // A pair without a common ancestor fails for all of them; each is then tried by itself.
        let clean = scratch.repo.merge_cleanly(&new).await.unwrap_or_default();
        for (at, pair) in new.iter().enumerate() {
            let found = match clean.get(at) {
                Some(true) => BranchForecast::Clean,
                Some(false) => forecast_in(&scratch, pair).await?,
                None => forecast(product, &pair.0, &pair.1).await?,
            };
            cache.insert(pair, found);
        }
        cache.save(dirs);
    }
    let known = pairs.iter().map(|(ours, theirs)| cache.get(ours, theirs).cloned());
    known
        .collect::<Option<_>>()
        .ok_or_else(|| Failure::new(WfExit::Internal, "a forecast is missing"))
}

/// Merges two commits in memory and reports what the merge comes to.
async fn forecast(product: &WorktreeRepo, ours: &Sha, theirs: &Sha) -> WfResult<BranchForecast> {
    if product.merge_base(ours, theirs).await.or_exit(WfExit::General)?.is_none() {
        let reason = "they have no commit in common".to_owned();
        return Ok(BranchForecast::Impossible { reason });
    }
    let scratch = MergeScratch::open(product).await?;
    forecast_in(&scratch, &(ours.clone(), theirs.clone())).await
}

async fn forecast_in(
    scratch: &MergeScratch,
    (ours, theirs): &(Sha, Sha),
) -> WfResult<BranchForecast> {
    let merge = scratch.resolve(ours, theirs, TrustThreshold::DEFAULT).await?;
    let resolved: Vec<String> = merge.receipts.iter().map(|it| it.path.to_string()).collect();
    Ok(match (merge.rest.is_empty(), resolved.is_empty()) {
        (true, true) => BranchForecast::Clean,
        (true, false) => BranchForecast::Resolves { paths: resolved },
        (false, _) => BranchForecast::Conflicts { paths: open_paths(&merge), resolved },
    })
}
