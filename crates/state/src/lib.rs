//! Which bottle works on which issue, kept across restarts.
//!
//! A small table behind one trait, [`ForgeStateStore`], so that the engine below can be another one; the first is SQLite
//! ([`SqliteForgeStateStore`]). Whether a status may follow another is decided in `rules`.

mod error;
mod forge_state;
mod rules;
mod sqlite;
mod store;

pub use error::StateError;
pub use forge_state::{ForgeState, IssueKey};
pub use rules::status::{BottleStatus, Step, WrongStep, next_status};
pub use sqlite::SqliteForgeStateStore;
pub use store::ForgeStateStore;
