//! Forecast of a merge of two branches, and its words.

use serde::{Deserialize, Serialize};

/// Expected result of merging two branches with git and then the resolver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
