//! What every engine below the state must be able to do.

use crate::error::StateError;
use crate::forge_state::{ForgeState, IssueKey};
use crate::rules::status::{BottleStatus, Step};

/// Keeps the state of issues across restarts. A call returns once its effect survives a power failure.
pub trait ForgeStateStore: Send + Sync {
    /// Keeps a state, in the place of an earlier one of the same issue.
    fn upsert(&self, state: &ForgeState) -> Result<(), StateError>;

    /// The state of an issue, if there is one.
    fn get(&self, key: &IssueKey) -> Result<Option<ForgeState>, StateError>;

    /// Forgets an issue; one that is not known is no error.
    fn delete(&self, key: &IssueKey) -> Result<(), StateError>;

    /// All states, by owner, repository and number.
    fn all(&self) -> Result<Vec<ForgeState>, StateError>;

    /// Takes a step with a bottle if its status allows it, and returns the new status. Of two who try at once, the
    /// second sees what the first has done.
    fn step(&self, key: &IssueKey, step: Step) -> Result<BottleStatus, StateError>;
}
