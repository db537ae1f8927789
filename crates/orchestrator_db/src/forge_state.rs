//! The row of an issue that has a bottle.

use std::fmt;

use jiff::Timestamp;

use crate::rules::status::BottleState;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IssueKey {
    pub owner: String,
    pub repo: String,
    pub issue_number: u64,
}

impl fmt::Display for IssueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, repo, issue_number } = self;
        write!(f, "{owner}/{repo}#{issue_number}")
    }
}

/// The bottle that works on an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeState {
    pub key: IssueKey,
    pub slug: String,
    pub agent_name: String,
    /// The bottle manifests that it was made from.
    pub bottle_names: Vec<String>,
    pub backend_name: String,
    /// The author of its commits.
    pub agent_git_user: String,
    pub pr_number: Option<u64>,
    pub status: BottleState,
    /// Time of its last sign of life.
    pub last_checkin_at: Timestamp,
}
