//! What merging would bring, tried for real and without touching anything: against the base branch, and between branches
//! that touched the same files.

use host::git::ProductRepo;
use model::id::Sha;
use model::verdict::WfStatus;
use serde::Serialize;

use crate::exit::{Failure, OrExit};

/// What git makes of two branches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "merge", rename_all = "snake_case")]
pub(crate) enum Forecast {
    /// They merge without anybody.
    Clean,
    /// These paths need somebody.
    Conflicts { paths: Vec<String> },
    /// They cannot be merged at all.
    Impossible { reason: String },
}

/// Tries a merge.
pub(crate) async fn forecast(
    product: &ProductRepo,
    ours: &Sha,
    theirs: &Sha,
) -> Result<Forecast, Failure> {
    if product.merge_base(ours, theirs).await.or_exit(WfStatus::General)?.is_none() {
        return Ok(Forecast::Impossible { reason: "they have no commit in common".to_owned() });
    }
    let merged = product.merge_tree(ours, theirs).await.or_exit(WfStatus::General)?;
    if merged.is_clean {
        return Ok(Forecast::Clean);
    }
    let mut paths: Vec<String> = merged
        .stages
        .iter()
        .map(|stage| String::from_utf8_lossy(&stage.path).into_owned())
        .collect();
    paths.sort();
    paths.dedup();
    Ok(Forecast::Conflicts { paths })
}

impl Forecast {
    /// In words.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Clean => "merges cleanly".to_owned(),
            Self::Conflicts { paths } => format!("conflicts in {}", paths.join(", ")),
            Self::Impossible { reason } => format!("cannot be merged: {reason}"),
        }
    }
}
