//! Record of what a run published.

use std::path::PathBuf;

use model::id::{BranchName, Sha};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    pub branch: BranchName,
    pub commit: Sha,
    /// True if the branch is at origin.
    #[serde(default)]
    pub pushed: bool,
    /// Reason for which it was not published in full.
    pub problem: Option<String>,
    #[serde(default)]
    pub pull: Option<PullReference>,
    /// The pull request's text, where there is no forge to open it on.
    #[serde(default)]
    pub pull_text: Option<PathBuf>,
    /// Condition that is missing for a pull request.
    #[serde(default)]
    pub note: Option<String>,
}

impl Publication {
    /// Returns whether the branch is at origin and nothing went wrong.
    pub fn is_published(&self) -> bool {
        self.pushed && self.problem.is_none()
    }

    /// Adds a problem to those that are known.
    pub fn add_problem(&mut self, problem: String) {
        self.problem = Some(match self.problem.take() {
            Some(known) => format!("{known}; {problem}"),
            None => problem,
        });
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullReference {
    pub number: u64,
    pub url: String,
    /// The title that this run would give it; people may have chosen another.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
}
