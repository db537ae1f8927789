//! The traits of every engine. A call returns once its effect survives a power failure, and two concurrent calls on one row
//! are serialised: the second one sees the result of the first.

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;

use crate::delivery::{Delivery, DeliveryInsert};
use crate::dispatch::{Dispatch, ScheduleMark};
use crate::error::DbError;
use crate::fence::{Fence, HeldLease, Writer};
use crate::forge_state::{ForgeState, IssueKey};
use crate::host_row::{HeldLeases, HostClaim, HostReport, HostRow};
use crate::notice::{Notice, NoticeDelivery};
use crate::rules::lifecycle::{WorkState, WorkStep};
use crate::rules::status::{BottleState, BottleStep};
use crate::spending::{Amount, BudgetRefusal, IssueSpending, RunReservation, Spending, WorkClaim};
use crate::user_action::UserActionRecord;
use crate::work::{StatusComment, WorkEvent, WorkItem, WorkNote, WorkOrder, WorkRequest};

/// Everything that the orchestrator stores.
pub trait Store:
    Debug
    + IssueStore
    + SavedBottleStore
    + InboxStore
    + WorkStore
    + LeaseStore
    + SpendingStore
    + DispatchStore
    + NoticeStore
    + UserActionStore
    + ProcessStore
    + HostStore
{
}

impl<T> Store for T where
    T: Debug
        + IssueStore
        + SavedBottleStore
        + InboxStore
        + WorkStore
        + LeaseStore
        + SpendingStore
        + DispatchStore
        + NoticeStore
        + UserActionStore
        + ProcessStore
        + HostStore
{
}

/// The bottle of each issue. Every write names its [`Writer`]: one under an older claim, or of a host that does not have the
/// bottle, is refused.
pub trait IssueStore: Send + Sync {
    /// Adds the bottle of an issue. It replaces one that is destroyed; an issue with another bottle is refused.
    fn add_forge_state(&self, state: &ForgeState, writer: Writer<'_>) -> Result<(), DbError>;

    fn forge_state(&self, key: &IssueKey) -> Result<Option<ForgeState>, DbError>;

    /// All bottles, by owner, repository and number.
    fn forge_states(&self) -> Result<Vec<ForgeState>, DbError>;

    /// Stores a sign of life, and the pull request once there is one. A row of another bottle stays unchanged.
    fn check_in(
        &self,
        key: &IssueKey,
        slug: &str,
        pull: Option<u64>,
        writer: Writer<'_>,
    ) -> Result<(), DbError>;

    /// Stores what other hosts need to know of the bottle, as its host writes it. A row of another bottle stays unchanged.
    fn save_summary(
        &self,
        key: &IssueKey,
        slug: &str,
        summary: &str,
        writer: Writer<'_>,
    ) -> Result<(), DbError>;

    /// The summary that the host of an issue's bottle stored last; `None` without a bottle, and before the first time.
    fn bottle_summary(&self, key: &IssueKey) -> Result<Option<String>, DbError>;

    /// Takes a step if the bottle's state allows it, and returns the new state; `None` if the row is another bottle's.
    fn step_bottle(
        &self,
        key: &IssueKey,
        slug: &str,
        step: BottleStep,
        writer: Writer<'_>,
    ) -> Result<Option<BottleState>, DbError>;

    /// Deletes the row of a bottle that was never made. A row of another bottle stays.
    fn delete_forge_state(
        &self,
        key: &IssueKey,
        slug: &str,
        writer: Writer<'_>,
    ) -> Result<(), DbError>;
}

/// Bottles that travel: the store of bottles has their newest states, and the rows name them.
pub trait SavedBottleStore: Send + Sync {
    /// Stores the name of the newest state of a bottle, with the time by the database's clock. A row of another bottle stays
    /// unchanged.
    fn note_saved(
        &self,
        key: &IssueKey,
        slug: &str,
        name: &str,
        writer: Writer<'_>,
    ) -> Result<(), DbError>;

    /// Makes the writer's host the one that has the bottle. Only under a claim, and only a bottle that is saved: of any other
    /// one its host has all there is.
    fn move_bottle(&self, key: &IssueKey, slug: &str, writer: Writer<'_>) -> Result<(), DbError>;

    /// Says of a claimed item what its holder waits for, as an event. Its state stays.
    fn tell_work(&self, key: &IssueKey, fence: Fence, reason: &str) -> Result<(), DbError>;
}

/// The inbox: deliveries are stored before they are acknowledged, many of them in one commit.
pub trait InboxStore: Send + Sync {
    /// Stores deliveries in one commit, and returns for each whether it is new.
    fn insert_deliveries(&self, list: &[Delivery]) -> Result<Vec<DeliveryInsert>, DbError>;

    /// Unhandled deliveries, in the order of arrival.
    fn unhandled_deliveries(&self, limit: usize) -> Result<Vec<Delivery>, DbError>;

    /// Unhandled deliveries of these sources alone, in the order of arrival.
    fn unhandled_from(&self, sources: &[&str], limit: usize) -> Result<Vec<Delivery>, DbError>;

    /// Deliveries after `seq`, in the order of arrival.
    fn deliveries_since(&self, seq: u64, limit: usize) -> Result<Vec<Delivery>, DbError>;

    /// Sources and bodies of the stored deliveries about an issue, in the order of arrival.
    fn issue_deliveries(&self, key: &IssueKey) -> Result<Vec<(String, Vec<u8>)>, DbError>;

    fn count_unhandled(&self) -> Result<u64, DbError>;

    /// Returns whether a delivery was stored, handled or not.
    fn has_delivery(&self, source: &str, id: &str) -> Result<bool, DbError>;

    fn delivery_body(&self, seq: u64) -> Result<Vec<u8>, DbError>;

    fn mark_handled(&self, list: &[u64]) -> Result<(), DbError>;

    /// Deletes deliveries that were handled before `before`. Redelivering one of them only causes another reconciliation.
    fn forget_deliveries(&self, before: Timestamp) -> Result<usize, DbError>;
}

/// The work queue. Every write to an item names the fence that the writer knows, and is refused if the item was claimed
/// since.
pub trait WorkStore: Send + Sync {
    /// All work items, by owner, repository and number.
    fn works(&self) -> Result<Vec<WorkItem>, DbError>;

    fn work(&self, key: &IssueKey) -> Result<Option<WorkItem>, DbError>;

    /// Queues an issue that has no work item, or whose bottle is removed; with a condition it waits from the start. Any other
    /// work item is returned unchanged.
    fn add_work(
        &self,
        key: &IssueKey,
        title: &str,
        request: &WorkRequest,
        note: &WorkNote,
    ) -> Result<WorkItem, DbError>;

    /// Takes a step if the item's state allows it.
    fn step_work(
        &self,
        key: &IssueKey,
        fence: Fence,
        step: WorkStep,
        note: &WorkNote,
    ) -> Result<WorkState, DbError>;

    /// Stores the order that the labels and the text of an issue ask for.
    fn set_order(&self, key: &IssueKey, fence: Fence, order: &WorkOrder) -> Result<(), DbError>;

    /// Sets when the bottle is destroyed; `None` clears it.
    fn set_destroy_at(
        &self,
        key: &IssueKey,
        fence: Fence,
        at: Option<Timestamp>,
    ) -> Result<(), DbError>;

    /// Deletes the item of an issue whose bottle is removed, so that the issue can start again. Its fence is remembered.
    fn forget_work(&self, key: &IssueKey, fence: Fence) -> Result<(), DbError>;

    fn work_events(&self, key: &IssueKey) -> Result<Vec<WorkEvent>, DbError>;

    /// The events of all issues after `seq`, oldest first. An event that is returned later has a greater number.
    fn events_since(&self, seq: u64, limit: usize) -> Result<Vec<WorkEvent>, DbError>;

    /// The number of the newest event that [`Self::events_since`] returns; 0 without any.
    fn last_event(&self) -> Result<u64, DbError>;

    fn status_comment(&self, key: &IssueKey) -> Result<Option<StatusComment>, DbError>;

    fn save_status_comment(
        &self,
        key: &IssueKey,
        fence: Fence,
        comment: &StatusComment,
    ) -> Result<(), DbError>;
}

/// Claims and their leases, by the database's clock. A holder is named `host/process`.
pub trait LeaseStore: Send + Sync {
    /// Items that a host may claim, longest waiting first: the first `limit` of the queued ones and of the waiting ones that
    /// are due, and all that wait for a budget, whose room is judged by the claim. An item whose bottle is on another host is
    /// that host's.
    fn claimable_works(&self, host: &str, limit: usize) -> Result<Vec<WorkItem>, DbError>;

    /// Items that this holder has, and those that nobody holds and whose bottles are to be destroyed by now.
    fn works_to_maintain(&self, holder: &str) -> Result<Vec<WorkItem>, DbError>;

    /// Claims an item, with a reservation for the run that it starts. Both are on disk before anything starts, or neither.
    fn claim_work(
        &self,
        work: &WorkItem,
        holder: &str,
        lease: Duration,
        reservation: Option<&RunReservation>,
    ) -> Result<WorkClaim, DbError>;

    /// Takes over the items of the other holders of a holder's host. The caller must know that those processes are gone.
    fn take_over_host(&self, holder: &str, lease: Duration) -> Result<Vec<WorkItem>, DbError>;

    /// Takes over the items of other holders whose leases have expired.
    fn take_over_expired(&self, holder: &str, lease: Duration) -> Result<Vec<WorkItem>, DbError>;

    /// Claims an item once more that this holder has; `None` if it was claimed by another one, or is held by nobody.
    fn reclaim_work(
        &self,
        key: &IssueKey,
        fence: Fence,
        holder: &str,
        lease: Duration,
    ) -> Result<Option<WorkItem>, DbError>;

    /// Raises the fence of a claim above a number that is known elsewhere, because the database was restored to an earlier
    /// time; `None` if another claim has come since.
    fn raise_claim(
        &self,
        key: &IssueKey,
        fence: Fence,
        above: u64,
    ) -> Result<Option<Fence>, DbError>;

    /// Renews the leases of a holder that have not expired, and returns these alone.
    fn renew_leases(&self, holder: &str, lease: Duration) -> Result<Vec<HeldLease>, DbError>;
}

/// Reservations: a run reserves its most from the claim on, and is settled with what it spent. Each row counts in one day.
pub trait SpendingStore: Send + Sync {
    /// Binds the reservation of a claim to a run that starts now, or makes one. A budget without room refuses it, and then
    /// no run may start.
    fn reserve_run(
        &self,
        key: &IssueKey,
        run: &str,
        request: &RunReservation,
        writer: Writer<'_>,
    ) -> Result<Option<BudgetRefusal>, DbError>;

    /// Settles a run with what it spent; once, whoever comes second. It has no fence: what a run has spent stays spent, also
    /// if its issue was claimed by another owner since.
    fn settle_spending(&self, seq: u64, spent: &Amount) -> Result<(), DbError>;

    /// Deletes the reservation of a run that never began.
    fn release_spending(&self, seq: u64) -> Result<(), DbError>;

    /// Rows of runs that have started and are not settled.
    fn unsettled_spending(&self) -> Result<Vec<Spending>, DbError>;

    /// All rows of an issue, oldest first.
    fn spending_of(&self, key: &IssueKey) -> Result<Vec<Spending>, DbError>;

    /// Sums for each issue with runs on a day, by owner, repository and number.
    fn spending_on(&self, day: Date) -> Result<Vec<IssueSpending>, DbError>;
}

/// Dispatches, the marks of schedules, and the repositories that were found in organisations.
pub trait DispatchStore: Send + Sync {
    /// Stores a dispatch, and returns whether its id is new.
    fn add_dispatch(&self, dispatch: &Dispatch) -> Result<DeliveryInsert, DbError>;

    fn dispatch(&self, id: &str) -> Result<Option<Dispatch>, DbError>;

    /// Dispatches without an issue, oldest first.
    fn open_dispatches(&self, limit: usize) -> Result<Vec<Dispatch>, DbError>;

    /// The newest dispatches, newest first.
    fn last_dispatches(&self, limit: usize) -> Result<Vec<Dispatch>, DbError>;

    /// The newest dispatch of a schedule.
    fn last_dispatch_of(&self, schedule: &str) -> Result<Option<Dispatch>, DbError>;

    /// The dispatch for which an issue was opened.
    fn dispatch_of_issue(&self, key: &IssueKey) -> Result<Option<Dispatch>, DbError>;

    /// Stores the progress of a dispatch; what was asked for stays as it is.
    fn save_dispatch(&self, dispatch: &Dispatch) -> Result<(), DbError>;

    /// The marks of all schedules that were ever due.
    fn schedule_marks(&self) -> Result<Vec<ScheduleMark>, DbError>;

    /// Moves the mark of a schedule, and stores what it asks for in the same commit: both or neither survive a crash.
    fn mark_schedule(
        &self,
        mark: &ScheduleMark,
        dispatch: Option<&Dispatch>,
    ) -> Result<(), DbError>;

    /// Repositories that were found in an organisation when it was listed last.
    fn found_repositories(&self, source: &str) -> Result<Vec<String>, DbError>;

    /// Replaces the repositories that were found in an organisation.
    fn save_found_repositories(&self, source: &str, names: &[String]) -> Result<(), DbError>;
}

/// Notices and their deliveries, and how far the events of work items have been turned into notices.
pub trait NoticeStore: Send + Sync {
    /// The event up to which notices were made; `None` before the first time.
    fn notice_cursor(&self) -> Result<Option<u64>, DbError>;

    /// Stores notices, each with a delivery for every channel, and moves the cursor in the same commit. A subject that is
    /// known already is passed over.
    fn add_notices(
        &self,
        notices: &[Notice],
        channels: &[&str],
        cursor: Option<u64>,
    ) -> Result<(), DbError>;

    /// Deliveries that have not arrived and may still do so, oldest first.
    fn open_notices(&self, limit: usize) -> Result<Vec<NoticeDelivery>, DbError>;

    /// The newest deliveries, newest first.
    fn last_notices(&self, limit: usize) -> Result<Vec<NoticeDelivery>, DbError>;

    /// Stores the progress of a delivery.
    fn save_notice(&self, delivery: &NoticeDelivery) -> Result<(), DbError>;

    /// Deletes notices from before this time that are on their way no more.
    fn forget_notices(&self, before: Timestamp) -> Result<(), DbError>;
}

/// The record of who asked for which action.
pub trait UserActionStore: Send + Sync {
    /// Records who asked for an action. One that is known already is passed over.
    fn record_action(&self, record: &UserActionRecord) -> Result<(), DbError>;

    /// The account that asked for the action of a delivery.
    fn actor_of(&self, delivery_id: &str) -> Result<Option<String>, DbError>;

    /// The newest actions, newest first.
    fn last_actions(&self, limit: usize) -> Result<Vec<UserActionRecord>, DbError>;
}

/// Chores and news of the processes that share a database.
pub trait ProcessStore: Send + Sync {
    /// Takes a chore that one process at a time does, or renews its lease; false while another one holds it.
    fn hold_chore(&self, name: &str, holder: &str, lease: Duration) -> Result<bool, DbError>;

    /// Gives a chore up, so that no other process waits for the end of its lease.
    fn release_chore(&self, name: &str, holder: &str) -> Result<(), DbError>;

    /// Gives up the chores of the other holders of a holder's host. The caller must know that those processes are gone.
    fn release_host_chores(&self, holder: &str) -> Result<(), DbError>;

    /// Calls back soon after another process has stored something that is to be done. It only saves time: a call may be lost,
    /// and an engine of one process makes none.
    fn listen(&self, wake: Box<dyn Fn() + Send>);
}

/// The hosts that share a database, as each one reports itself. A database of one host knows none.
pub trait HostStore: Send + Sync {
    /// Reports a host for as long as its process renews it. The process of another home under the same name is refused.
    fn report_host(&self, report: &HostReport, lease: Duration) -> Result<HostClaim, DbError>;

    /// Takes up that the process of a host has ended in good order.
    fn leave_host(&self, name: &str, process: &str) -> Result<(), DbError>;

    /// All hosts that ever reported themselves, by name.
    fn hosts(&self) -> Result<Vec<HostRow>, DbError>;

    /// Leases of work items, over all hosts.
    fn held_leases(&self) -> Result<HeldLeases, DbError>;
}
