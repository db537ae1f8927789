//! The row of an issue that has a bottle.

use std::fmt;

use jiff::Timestamp;

use crate::error::DbError;
use crate::rules::status::{BottleState, BottleStep, next_status};

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
    /// The host that has it; `None` in rows of versions that knew one host only.
    pub host: Option<String>,
    /// Its newest state in the store of bottles; `None` for one that is on its host alone.
    pub saved: Option<SavedState>,
    /// The author of its commits.
    pub agent_git_user: String,
    pub pr_number: Option<u64>,
    pub status: BottleState,
    /// Time of its last sign of life.
    pub last_checkin_at: Timestamp,
}

/// A state of a bottle that every host can fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedState {
    /// Its name in the store of bottles.
    pub name: String,
    pub at: Timestamp,
}

/// A saved state from its two columns.
pub(crate) fn saved_state(name: Option<String>, at: Option<Timestamp>) -> Option<SavedState> {
    name.zip(at).map(|(name, at)| SavedState { name, at })
}

impl ForgeState {
    /// Refuses a new bottle while this one works on the issue.
    pub(crate) fn check_replaceable(self) -> Result<(), DbError> {
        match next_status(self.status, BottleStep::Start) {
            Ok(_) => Ok(()),
            Err(_) => {
                let Self { key, slug, status, .. } = self;
                Err(DbError::HasBottle { key, slug, status })
            }
        }
    }

    /// Refuses a claim by a host that does not have the bottle and cannot fetch it.
    pub(crate) fn check_claimable(&self, host: &str) -> Result<(), DbError> {
        match &self.saved {
            Some(_) => Ok(()),
            None => self.check_host(host),
        }
    }

    /// Refuses a host that does not have the bottle.
    pub(crate) fn check_host(&self, writer: &str) -> Result<(), DbError> {
        match &self.host {
            Some(host) if host != writer && self.status != BottleState::Destroyed => {
                Err(DbError::OtherHost { key: self.key.clone(), host: host.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }
}
