//! Dispatches: work that its operator asks for without an issue. The orchestrator opens the issue.

use jiff::Timestamp;

use crate::forge_state::IssueKey;

/// A request for work, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// Its id. An id is stored once.
    pub id: String,
    pub request: DispatchRequest,
    pub created_at: Timestamp,
    pub state: DispatchState,
    /// The issue, once it is open.
    pub issue_number: Option<u64>,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Earliest time of the next attempt.
    pub not_before: Option<Timestamp>,
    /// Reason of the last failure; empty without one.
    pub problem: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchRequest {
    /// Name of the asker, for people: a command, a program or a schedule.
    pub origin: String,
    /// The schedule that asked for it.
    pub schedule: Option<String>,
    pub owner: String,
    pub repo: String,
    pub agent: String,
    /// Bottle manifests that replace the agent's own.
    pub bottles: Vec<String>,
    /// Account to assign; by default that of the token.
    pub assignee: Option<String>,
    pub title: String,
    pub prompt: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchState {
    /// Its issue is not open yet.
    Pending,
    /// A request for its issue was sent, or is about to be sent.
    Opening,
    /// Its issue is open.
    Opened,
    /// It needs a person.
    Failed,
}

/// The last time for which a schedule asked for work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleMark {
    pub name: String,
    /// The times at which it is due, as the configuration has them.
    pub definition: String,
    pub last_due: Timestamp,
}

impl DispatchState {
    const ALL: [Self; 4] = [Self::Pending, Self::Opening, Self::Opened, Self::Failed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Opening => "opening",
            Self::Opened => "opened",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == word)
    }
}

impl Dispatch {
    /// A dispatch that is not stored yet.
    pub fn new(id: String, request: DispatchRequest, created_at: Timestamp) -> Self {
        Self {
            id,
            request,
            created_at,
            state: DispatchState::Pending,
            issue_number: None,
            attempts: 0,
            not_before: None,
            problem: String::new(),
        }
    }

    /// The issue that was opened for it.
    pub fn issue(&self) -> Option<IssueKey> {
        let DispatchRequest { owner, repo, .. } = &self.request;
        let (owner, repo) = (owner.clone(), repo.clone());
        self.issue_number.map(|issue_number| IssueKey { owner, repo, issue_number })
    }
}
