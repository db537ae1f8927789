//! The orchestrator's database: which bottle works on which issue, the inbox of deliveries, the work queue, and
//! what runs spend.
//!
//! [`ForgeStateStore`] is the trait for another engine; [`SqliteForgeStateStore`] is the first one, and also stores the
//! orchestrator's [`Delivery`]s and [`WorkItem`]s with their leases and fences. `rules` decides which step may follow which.

mod delivery;
mod error;
mod forge_state;
mod rules;
mod spending;
mod sqlite;
mod store;
mod work;

pub use delivery::{About, Delivery, DeliveryInsert};
pub use error::DbError;
pub use forge_state::{ForgeState, IssueKey};
pub use rules::lifecycle::{WorkState, WorkStep, WrongWorkStep, next_work};
pub use rules::status::{BottleState, BottleStep, WrongBottleStep, next_status};
pub use spending::{
    Amount, BudgetLimit, BudgetRefusal, BudgetScope, BudgetUnit, IssueSpending, RunReservation,
    Spending, WorkClaim,
};
pub use sqlite::SqliteForgeStateStore;
pub use store::ForgeStateStore;
pub use work::{
    IssueText, StatusComment, WakeCause, WorkEvent, WorkHold, WorkItem, WorkNote, WorkOrder,
    WorkRequest,
};
