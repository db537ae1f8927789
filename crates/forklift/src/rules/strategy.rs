//! Merge or rebase.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Strategy {
    /// A merge commit on top of the fork's history
    #[default]
    Merge,
    /// The fork's commits rebased on top of upstream's
    Rebase,
}

impl Strategy {
    /// Name in flags and rules.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
        }
    }
}
