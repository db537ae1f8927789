//! What merging would bring, tried for real and without touching anything: against the base branch, and between branches
//! that touched the same files.

use host::git::WorktreeRepo;
use merge::ladder::decide::Trust;
use model::exit::WfExit;
use model::id::Sha;
use serde::Serialize;

use super::ladder::{Ladder, open_paths};
use crate::exit::{Failure, OrExit};

/// What git, and then the ladder, make of two branches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "merge", rename_all = "snake_case")]
pub(crate) enum Forecast {
    /// They merge without anybody.
    Clean,
    /// They conflict in these paths, and all of them settle without anybody.
    Settles { paths: Vec<String> },
    /// These paths need somebody; the others settle.
    Conflicts { paths: Vec<String>, settled: Vec<String> },
    /// They cannot be merged at all.
    Impossible { reason: String },
}

/// Tries a merge.
pub(crate) async fn forecast(
    product: &WorktreeRepo,
    ours: &Sha,
    theirs: &Sha,
) -> Result<Forecast, Failure> {
    if product.merge_base(ours, theirs).await.or_exit(WfExit::General)?.is_none() {
        return Ok(Forecast::Impossible { reason: "they have no commit in common".to_owned() });
    }
    let climb = Ladder::open(product).await?.climb(ours, theirs, Trust::USUAL).await?;
    let settled: Vec<String> = climb.receipts.iter().map(|it| it.path.to_string()).collect();
    Ok(match (climb.rest.is_empty(), settled.is_empty()) {
        (true, true) => Forecast::Clean,
        (true, false) => Forecast::Settles { paths: settled },
        (false, _) => Forecast::Conflicts { paths: open_paths(&climb), settled },
    })
}

impl Forecast {
    /// In words.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Clean => "merges cleanly".to_owned(),
            Self::Settles { paths } => {
                format!("merges; conflicts that settle without anybody: {}", paths.join(", "))
            }
            Self::Conflicts { paths, settled } if settled.is_empty() => {
                format!("conflicts in {}", paths.join(", "))
            }
            Self::Conflicts { paths, settled } => {
                format!("conflicts in {}; {} more settle", paths.join(", "), settled.len())
            }
            Self::Impossible { reason } => format!("cannot be merged: {reason}"),
        }
    }
}
