//! Acceptance tests of a workstream: generating them, and reading those that count at the gate.

use std::path::Path;

use jiff::Timestamp;
use model::id::{IdError, Sha, UatId};

use super::DiskResult;
use super::project_dirs::ProjectDirs;
use super::queue::{QueueEntry, Queued, load_queue, move_entry, next_number, save_entry};
use super::workstream::Workstream;
use crate::rules::plan::Plan;
use crate::rules::schema::Schema;
use crate::rules::uat::{Uat, UatStatus, new_uat, render_uat};

pub(crate) const PENDING_UATS: &str = "uat/pending";

impl Queued for Uat {
    type Status = UatStatus;
    const NOUN: &'static str = "acceptance test";
    const LIST: &'static str = "wf uat list";
    const PREFIX: &'static str = "UAT-";
    const SCHEMA: Schema = Schema::Uat;
    const FOLDERS: &'static [(UatStatus, &'static str)] = &[
        (UatStatus::Pending, PENDING_UATS),
        (UatStatus::Passed, "uat/passed"),
        (UatStatus::Failed, "uat/failed"),
        (UatStatus::Superseded, "uat/superseded"),
    ];

    fn check_id(text: &str) -> Result<(), IdError> {
        UatId::parse(text).map(drop)
    }

    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn status(&self) -> UatStatus {
        self.status
    }

    fn render(&self) -> String {
        render_uat(self)
    }
}

/// Reads all tests that count at the gate, or the names of the unreadable ones.
pub(crate) fn load_gate(workstream: &Path) -> DiskResult<Result<Vec<Uat>, Vec<String>>> {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for status in [UatStatus::Pending, UatStatus::Passed, UatStatus::Failed] {
        for entry in load_queue(workstream, status)? {
            match entry {
                // The folder decides the status, because people move the files.
                QueueEntry::Good(uat) => good.push(Uat { status, ..uat }),
                QueueEntry::Bad { name, .. } => bad.push(name),
            }
        }
    }
    Ok(if bad.is_empty() { Ok(good) } else { Err(bad) })
}

/// Generates the acceptance test of a finished plan and supersedes others. The caller holds the global lock.
pub(crate) fn generate(
    dirs: &ProjectDirs,
    workstream: &Workstream,
    plan: &Plan,
    head: Option<&Sha>,
    supersede: &[UatId],
    now: Timestamp,
) -> DiskResult<Uat> {
    for entry in load_queue::<Uat>(&workstream.dir, UatStatus::Failed)? {
        if let QueueEntry::Good(old) = entry
            && supersede.contains(&old.id)
        {
            move_entry(&workstream.dir, UatStatus::Failed, &old.superseded())?;
        }
    }
    let id = UatId::numbered(next_number::<Uat>(dirs)?);
    let uat = new_uat(id, &workstream.meta.id, &plan.commits, head, now);
    save_entry(&workstream.dir, &uat)?;
    Ok(uat)
}
