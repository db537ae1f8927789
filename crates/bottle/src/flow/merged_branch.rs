//! The branch of a merged pull request: removed at origin when its bottle is destroyed, if nothing came on top of it.

use std::time::Duration;

use forge::ForgeError;
use host::git::{DeleteOutcome, RemoteBranch, SealedRepo};
use serde::{Deserialize, Serialize};

use super::access::ForgeAccess;
use super::bottle::Bottle;
use super::context::RunContext;
use super::observe::Source;
use crate::exit::{Failure, OrGeneral};

const LIMIT: Duration = Duration::from_secs(60);

/// Removal of a branch, in the bottle's record: the intent comes before the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BranchRemoval {
    Intended,
    Removed,
    /// It was gone already, as on forges that remove it themselves.
    WasGone,
    /// Others moved it on, so it stays.
    Moved,
    /// Origin refused.
    Refused,
}

/// Removes the branch if its pull request was merged. Work that was not merged stays at origin.
pub(crate) async fn remove_merged_branch(
    context: RunContext<'_>,
    slug: &str,
    access: &ForgeAccess,
) -> Result<(), Failure> {
    let (bottle, mut record) = Bottle::open(context.home, slug)?;
    let (Some(pull), Some(published)) = (record.pull, record.published.clone()) else {
        return Ok(());
    };
    let is_merged = match access.open().await?.read_pr(pull).await {
        Ok(pull) => pull.merged,
        Err(ForgeError::NotFound { .. }) => false,
        Err(error) => return Err(error).or_general(),
    };
    if !is_merged || record.branch_removal.is_some_and(|it| it != BranchRemoval::Intended) {
        return Ok(());
    }
    let source = Source::find(&record.repo, Some(access)).await?;
    let url = &source.push_urls()?.first;
    let there = source.repo.branch_at_url(url, &record.branch, LIMIT).await.or_general()?;
    let end = match there {
        RemoteBranch::Absent => BranchRemoval::WasGone,
        RemoteBranch::At(tip) if tip != published => BranchRemoval::Moved,
        RemoteBranch::At(_) => {
            record.branch_removal = Some(BranchRemoval::Intended);
            bottle.save(&record)?;
            host::failpoint::hit("branch");
            let path = bottle.path().join("branch.git");
            host::file::remove_tree_safely(&path).or_general()?;
            let format = source.repo.object_format();
            let repo = SealedRepo::init_bare(&path, format).await.or_general()?;
            let env = access.git_env();
            let deleted = repo.delete_branch(url, &record.branch, &published, env, LIMIT).await;
            host::file::remove_tree_safely(&path).or_general()?;
            match deleted.or_general()? {
                DeleteOutcome::Deleted => BranchRemoval::Removed,
                DeleteOutcome::Rejected { reason } => {
                    context.ui.note(&format!("origin keeps {}: {reason}", record.branch));
                    BranchRemoval::Refused
                }
            }
        }
    };
    record.branch_removal = Some(end);
    bottle.save(&record)
}
