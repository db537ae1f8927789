//! Fix micro-commits in a plan. The plan is written first; a command that is killed before the status follows leaves a plan
//! with open work, and such a workstream is not merged.

use model::id::MicroCommitId;

use super::gate::update_status;
use crate::disk::{DiskError, ProjectDirs, Workstream, save};
use crate::exit::WfResult;
use crate::rules::fix::{FixDraft, add_fixes};

/// Adds fixes to the plan and updates the status. The caller holds the global lock. Returns the ids of the fixes.
pub(crate) fn plan_fixes(
    workstream: &mut Workstream,
    fixes: &[FixDraft],
    why: &str,
) -> WfResult<Vec<MicroCommitId>> {
    let path = workstream.plan_path();
    let before = workstream.plan_text()?.unwrap_or_default();
    let (after, ids) = add_fixes(&before, workstream.meta.id.as_str(), fixes)
        .map_err(DiskError::in_file(&path))?;
    if after != before {
        save(&path, after.as_bytes())?;
        let list: Vec<&str> = ids.iter().map(MicroCommitId::as_str).collect();
        let note = format!("{why} added {} to the plan", list.join(", "));
        workstream.note(&note, host::clock::now())?;
    }
    host::failpoint::hit("wf-fix-planned");
    update_status(workstream)?;
    Ok(ids)
}

/// The same for a caller without the lock.
pub(crate) async fn plan_fixes_locked(
    dirs: &ProjectDirs,
    workstream: &mut Workstream,
    fixes: &[FixDraft],
    why: &str,
) -> WfResult<Vec<MicroCommitId>> {
    let _lock = dirs.lock_global(&format!("plan {}", workstream.meta.id)).await?;
    let ids = plan_fixes(workstream, fixes, why)?;
    dirs.write_active()?;
    Ok(ids)
}

/// Names the fixes and the commands that follow.
pub(crate) fn render_fixes(workstream: &Workstream, ids: &[MicroCommitId]) -> String {
    let id = &workstream.meta.id;
    let list: Vec<&str> = ids.iter().map(MicroCommitId::as_str).collect();
    let first = list.first().copied().unwrap_or_default();
    format!(
        "added to the plan: {}; do it: wf run {id} --loop, or drop it: wf plan drop {first} -w {id}",
        list.join(", ")
    )
}
