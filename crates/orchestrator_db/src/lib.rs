//! The orchestrator's database: which bottle works on which issue, the inbox of deliveries, the work queue, and
//! what runs spend.
//!
//! [`Store`] has everything that an engine does; nothing above it knows which one it is. [`open_file`] opens a database in
//! SQLite; with the feature `postgres`, `open_postgres` connects to one in PostgreSQL. `rules` decides which step may follow
//! which.

mod delivery;
mod dispatch;
mod error;
mod fence;
mod forge_state;
mod host_row;
mod notice;
#[cfg(feature = "postgres")]
mod postgres;
mod rules;
mod spending;
mod sqlite;
mod store;
mod user_action;
mod work;

#[cfg(feature = "postgres")]
pub use self::postgres::{
    DatabaseHealth, PostgresOptions, ReplicationState, check_postgres, open_postgres,
    worker_role_sql,
};
pub use delivery::{About, Delivery, DeliveryInsert};
pub use dispatch::{Dispatch, DispatchRequest, DispatchState, ScheduleMark};
pub use error::DbError;
pub use fence::{Fence, HeldLease, Writer};
pub use forge_state::{ForgeState, IssueKey, SavedState};
pub use host_row::{HeldLeases, HostClaim, HostReport, HostRow};
pub use notice::{Notice, NoticeDelivery, NoticeState};
pub use rules::lifecycle::{WorkState, WorkStep, WrongWorkStep, next_work};
pub use rules::status::{BottleState, BottleStep, WrongBottleStep, next_status};
pub use spending::{
    Amount, BudgetLimit, BudgetRefusal, BudgetScope, BudgetUnit, IssueSpending, RunReservation,
    Spending, WorkClaim,
};
pub use sqlite::open_file;
pub use store::{
    DispatchStore, HostStore, InboxStore, IssueStore, LeaseStore, NoticeStore, ProcessStore,
    SavedBottleStore, SpendingStore, Store, UserActionStore, WorkStore,
};
pub use user_action::UserActionRecord;
pub use work::{
    IssueText, StatusComment, WakeCause, WorkEvent, WorkHold, WorkItem, WorkNote, WorkOrder,
    WorkRequest, spread_front,
};
