//! Conflict resolution for workstreams, in a scratch repository that reads the product's objects and writes none there.
//!
//! A workstream's branch has no merge history to learn from, so confidence comes from the shipped table alone.

use host::git::{SealedRepo, WorktreeRepo};
use merge::resolver::decide::TrustThreshold;
use merge::resolver::{MergeHeads, ResolveOptions, ResolvedMerge, resolve_conflicts};
use model::id::Sha;
use tempfile::TempDir;

use crate::exit::{OrExit, WfExit, WfResult};

/// Scratch repository for merges. It is deleted on drop; objects that are wanted are fetched from it first.
pub(crate) struct MergeScratch {
    pub(crate) repo: SealedRepo,
    _folder: TempDir,
}

impl MergeScratch {
    pub(crate) async fn open(product: &WorktreeRepo) -> WfResult<Self> {
        let folder = TempDir::new().or_exit(WfExit::General)?;
        let user = product.user();
        let path = folder.path().join("resolver.git");
        let repo = SealedRepo::init_bare(&path, user.object_format()).await;
        let repo = repo.or_exit(WfExit::General)?;
        repo.add_alternate(&user.objects_dir()).or_exit(WfExit::General)?;
        Ok(Self { repo, _folder: folder })
    }

    pub(crate) async fn resolve(
        &self,
        ours: &Sha,
        theirs: &Sha,
        trust: TrustThreshold,
    ) -> WfResult<ResolvedMerge> {
        let heads = MergeHeads { ours: ours.clone(), theirs: theirs.clone() };
        let options = ResolveOptions::at(trust);
        resolve_conflicts(&self.repo, &heads, options).await.or_exit(WfExit::General)
    }
}

pub(crate) fn open_paths(resolved: &ResolvedMerge) -> Vec<String> {
    resolved.rest.iter().map(|brief| brief.path.to_string()).collect()
}
