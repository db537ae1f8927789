//! What is kept about an issue that a bottle works on.

use jiff::Timestamp;

use crate::rules::status::BottleStatus;

/// An issue on a forge.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IssueKey {
    /// The repository's owner.
    pub owner: String,
    /// The repository.
    pub repo: String,
    /// The issue.
    pub issue_number: u64,
}

/// The bottle of an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeState {
    /// The issue.
    pub key: IssueKey,
    /// The bottle's own name.
    pub slug: String,
    /// The agent in it.
    pub agent_name: String,
    /// The bottle manifests it was made from.
    pub bottle_names: Vec<String>,
    /// The sandbox it runs in.
    pub backend_name: String,
    /// Who its commits are by.
    pub agent_git_user: String,
    /// Its pull request, once there is one.
    pub pr_number: Option<u64>,
    /// What it is doing.
    pub status: BottleStatus,
    /// When it was last heard of.
    pub last_checkin_at: Timestamp,
}
