//! What the orchestrator keeps about the work on an issue, and what happened to it.

use jiff::Timestamp;

use crate::forge_state::IssueKey;
use crate::rules::lifecycle::WorkState;

/// The work on an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The issue.
    pub key: IssueKey,
    /// Where it stands.
    pub state: WorkState,
    /// What is to be done when it runs next.
    pub errand: Errand,
    /// The delivery that it is done for, if one set it off.
    pub trigger: Option<String>,
    /// The issue's title, for people.
    pub title: String,
    /// The bottle, once there is one.
    pub slug: Option<String>,
    /// Grows with every claim: who comes with an older one has lost it.
    pub fence: u64,
    /// How often it was claimed. A claim that is taken over stays the same one.
    pub claims: u64,
    /// Who holds it, while it is claimed or runs.
    pub holder: Option<String>,
    /// Until when it is held, by the database's clock.
    pub lease_until: Option<Timestamp>,
    /// When it goes on, while it waits.
    pub not_before: Option<Timestamp>,
    /// When its bottle is to go, once its pull request is closed.
    pub destroy_at: Option<Timestamp>,
    /// How often it failed in a row through no fault of its agent.
    pub attempts: u32,
    /// Why it stands where it stands, for people.
    pub reason: String,
    /// When it was queued first.
    pub created_at: Timestamp,
    /// When it took its last step.
    pub updated_at: Timestamp,
}

/// What is to be done for an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Errand {
    /// Make a bottle.
    Start {
        /// Whose manifest.
        agent: String,
        /// Which bottles, in the place of the agent's own.
        bottles: Vec<String>,
    },
    /// Go on with the bottle that is there.
    Resume {
        /// A person's own words; without them the thread says what is new.
        prompt: Option<String>,
    },
}

/// What changes with a step beside the state. What is `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkNote {
    /// Why, for people.
    pub reason: String,
    /// The bottle.
    pub slug: Option<String>,
    /// What is to be done next.
    pub errand: Option<Errand>,
    /// The delivery that it is done for.
    pub trigger: Option<String>,
    /// When it goes on.
    pub not_before: Option<Timestamp>,
    /// How often it failed in a row.
    pub attempts: Option<u32>,
}

impl WorkNote {
    /// A note with nothing but its reason.
    pub fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..Self::default() }
    }
}

/// One thing that happened to the work on an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkEvent {
    /// In which order.
    pub seq: u64,
    /// The issue.
    pub key: IssueKey,
    /// When.
    pub at: Timestamp,
    /// The state that it led to.
    pub state: WorkState,
    /// Why.
    pub reason: String,
}
