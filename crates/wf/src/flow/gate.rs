//! Gate of a workstream: its open questions and tests, and its status after a person acted on them.

use crate::disk::question::blocking_questions;
use crate::disk::queue::names_of;
use crate::disk::rejection::load_rejections;
use crate::disk::{DiskResult, Workstream};
use crate::exit::WfResult;
use crate::rules::approval::awaits_approval;
use crate::rules::profile::Pause;
use crate::rules::status::{GateFacts, WorkstreamStatus, next_after_person};
use crate::rules::uat::{Uat, UatStatus};

/// Gathers the facts that the gate depends on. A plan that cannot be read does not count as complete.
pub(crate) fn observe_gate(workstream: &Workstream) -> DiskResult<GateFacts> {
    let count = |status| names_of::<Uat>(&workstream.dir, status).map(|entries| entries.len());
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
pub(crate) fn update_status(workstream: &mut Workstream) -> WfResult<WorkstreamStatus> {
    let status = next_after_person(workstream.meta.status, observe_gate(workstream)?);
    let blocked_by = blocked_by(workstream, status)?;
    workstream.set_status(status, &blocked_by)?;
    Ok(status)
}

fn blocked_by(workstream: &Workstream, status: WorkstreamStatus) -> WfResult<String> {
    let uats = |wanted| names_of::<Uat>(&workstream.dir, wanted);
    let ids = match status {
        WorkstreamStatus::BlockedClarification => blocking_questions(&workstream.dir)?,
        WorkstreamStatus::UatPending => uats(UatStatus::Pending)?,
        WorkstreamStatus::UatFailed => uats(UatStatus::Failed)?,
        _ => Vec::new(),
    };
    Ok(ids.join(","))
}

pub(crate) fn is_awaiting_approval(workstream: &Workstream, pause: Pause) -> DiskResult<bool> {
    let rejections = load_rejections(&workstream.dir)?;
    let last = rejections.last().map(|rejection| rejection.sha.as_str());
    Ok(awaits_approval(pause, &workstream.meta, last))
}
