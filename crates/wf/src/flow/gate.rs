//! What a workstream waits for, and its status after a person acted on it.

use model::exit::WfExit;

use crate::disk::DiskError;
use crate::disk::question::blocking_questions;
use crate::disk::queue::QueueEntry;
use crate::disk::rejection::load_rejections;
use crate::disk::uat::load_uats;
use crate::disk::workstream::{Durability, Workstream};
use crate::exit::Failure;
use crate::rules::approval::awaits_approval;
use crate::rules::profile::Pause;
use crate::rules::status::{GateFacts, WorkstreamStatus, next_after_person};
use crate::rules::uat::UatStatus;

/// Gathers the facts that the gate depends on. A plan that cannot be read does not count as complete.
pub(crate) fn observe_gate(workstream: &Workstream) -> Result<GateFacts, DiskError> {
    let count = |status| load_uats(&workstream.dir, status).map(|entries| entries.len());
    Ok(GateFacts {
        all_done: workstream.load_plan().is_ok_and(|plan| plan.is_complete()),
        has_blocking_question: !blocking_questions(&workstream.dir)?.is_empty(),
        uat_pending: count(UatStatus::Pending)?,
        uat_passed: count(UatStatus::Passed)?,
        uat_failed: count(UatStatus::Failed)?,
    })
}

/// Updates STATUS and BLOCKED_BY to match what is pending. The caller holds the global lock. An active run reads the
/// questions itself and decides the status again when it ends.
pub(crate) fn update_status(workstream: &mut Workstream) -> Result<WorkstreamStatus, Failure> {
    let status = next_after_person(workstream.meta.status, observe_gate(workstream)?);
    let blocked_by = blocked_by(workstream, status)?;
    let changes = [("STATUS", status.word()), ("BLOCKED_BY", &blocked_by)];
    workstream.change(&changes, Durability::Safe)?;
    Ok(status)
}

fn blocked_by(workstream: &Workstream, status: WorkstreamStatus) -> Result<String, Failure> {
    let uats = |wanted| -> Result<Vec<String>, Failure> {
        Ok(load_uats(&workstream.dir, wanted)?.iter().map(crate::disk::uat::name_of).collect())
    };
    let ids = match status {
        WorkstreamStatus::BlockedClarification => blocking_questions(&workstream.dir)?,
        WorkstreamStatus::UatPending => uats(UatStatus::Pending)?,
        WorkstreamStatus::UatFailed => uats(UatStatus::Failed)?,
        _ => Vec::new(),
    };
    Ok(ids.join(","))
}

/// Reports whether the last micro-commit waits to be approved or rejected.
pub(crate) fn is_awaiting_approval(
    workstream: &Workstream,
    pause: Pause,
) -> Result<bool, DiskError> {
    let rejections = load_rejections(&workstream.dir)?;
    let last = rejections.last().map(|rejection| rejection.sha.as_str());
    Ok(awaits_approval(pause, &workstream.meta, last))
}

/// Returns a readable entry, or an error that names the problem.
pub(crate) fn require_readable<T>(entry: QueueEntry<T>) -> Result<T, Failure> {
    match entry {
        QueueEntry::Good(value) => Ok(value),
        QueueEntry::Bad { name, problem } => {
            Err(Failure::new(WfExit::Config, format!("{name}: {problem}")))
        }
    }
}
