//! Which bottle works on which issue, kept across restarts.
//!
//! A small table behind one trait, [`ForgeStateStore`], so that the engine below can be another one; the first is SQLite
//! ([`SqliteForgeStateStore`]), which also keeps what the orchestrator needs: an inbox of [`Delivery`]s and the [`Work`] on
//! each issue, with leases and fences. Whether a status may follow another is decided in `rules`.

mod delivery;
mod error;
mod forge_state;
mod rules;
mod sqlite;
mod store;
mod work;

pub use delivery::{About, Delivery, Kept, NewDelivery};
pub use error::StateError;
pub use forge_state::{ForgeState, IssueKey};
pub use rules::lifecycle::{WorkState, WorkStep, WrongWorkStep, next_work};
pub use rules::status::{BottleStatus, Step, WrongStep, next_status};
pub use sqlite::SqliteForgeStateStore;
pub use store::ForgeStateStore;
pub use work::{Errand, Work, WorkEvent, WorkNote};
