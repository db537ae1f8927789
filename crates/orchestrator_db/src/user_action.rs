//! Actions that people and programs asked for, with who asked.

use jiff::Timestamp;

use crate::forge_state::IssueKey;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserActionRecord {
    /// Id of the delivery that carries it out. An id is stored once.
    pub id: String,
    /// Name of the asker, for people.
    pub actor: String,
    pub action: String,
    pub key: IssueKey,
    pub at: Timestamp,
}
