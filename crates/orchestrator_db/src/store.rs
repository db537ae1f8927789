//! The trait of every engine that stores forge states.

use crate::error::DbError;
use crate::forge_state::{ForgeState, IssueKey};
use crate::rules::status::{BottleState, BottleStep};

/// Stores the bottle of each issue across restarts. A call returns once its effect survives a power failure.
pub trait ForgeStateStore: Send + Sync {
    /// Adds a row, or replaces the issue's earlier one.
    fn upsert(&self, state: &ForgeState) -> Result<(), DbError>;

    fn get(&self, key: &IssueKey) -> Result<Option<ForgeState>, DbError>;

    fn delete(&self, key: &IssueKey) -> Result<(), DbError>;

    /// All rows, by owner, repository and number.
    fn all(&self) -> Result<Vec<ForgeState>, DbError>;

    /// Takes a step if the bottle's state allows it, and returns the new state. Two concurrent calls are serialised: the
    /// second one sees the result of the first.
    fn step(&self, key: &IssueKey, step: BottleStep) -> Result<BottleState, DbError>;
}
