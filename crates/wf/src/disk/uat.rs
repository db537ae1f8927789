//! Acceptance tests of a workstream: generating, listing and moving them between statuses.

use std::path::Path;

use jiff::Timestamp;
use model::id::{Sha, UatId};

use super::DiskError;
use super::project_dirs::ProjectDirs;
use super::question::all_dirs;
use super::queue::{QueueEntry, highest_in, load_folder, remove_entry, save_entry};
use super::workstream::Workstream;
use crate::rules::plan::Plan;
use crate::rules::schema::Schema;
use crate::rules::uat::{Uat, UatStatus, new_uat, render_uat};

const PREFIX: &str = "UAT-";
/// The folders under a workstream, one per status.
const FOLDERS: [&str; 4] = ["uat/pending", "uat/passed", "uat/failed", "uat/superseded"];

/// The acceptance tests of a workstream that have this status.
pub(crate) fn load_uats(
    workstream: &Path,
    status: UatStatus,
) -> Result<Vec<QueueEntry<Uat>>, DiskError> {
    let dir = workstream.join("uat").join(status.folder());
    let mut entries: Vec<QueueEntry<Uat>> = load_folder(&dir, PREFIX, Schema::Uat)?;
    // A test with a verdict does not count as pending, even if a crash left its pending file.
    if status == UatStatus::Pending {
        let has_verdict = |name: &str| {
            [UatStatus::Passed, UatStatus::Failed, UatStatus::Superseded].iter().any(|verdict| {
                workstream.join("uat").join(verdict.folder()).join(format!("{name}.json")).exists()
            })
        };
        entries.retain(|entry| !has_verdict(&name_of(entry)));
    }
    Ok(entries)
}

/// The id of a test, readable or not.
pub(crate) fn name_of(entry: &QueueEntry<Uat>) -> String {
    match entry {
        QueueEntry::Good(uat) => uat.id.to_string(),
        QueueEntry::Bad { name, .. } => name.clone(),
    }
}

/// Reads all tests that count at the gate, or the names of the unreadable ones.
pub(crate) fn load_gate(workstream: &Path) -> Result<Result<Vec<Uat>, Vec<String>>, DiskError> {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for status in [UatStatus::Pending, UatStatus::Passed, UatStatus::Failed] {
        for entry in load_uats(workstream, status)? {
            match entry {
                // The folder decides the status, because people move the files.
                QueueEntry::Good(uat) => good.push(Uat { status, ..uat }),
                QueueEntry::Bad { name, .. } => bad.push(name),
            }
        }
    }
    Ok(if bad.is_empty() { Ok(good) } else { Err(bad) })
}

/// Generates the acceptance test of a finished plan, with the next number of the project, and supersedes others. The
/// caller holds the global lock.
pub(crate) fn generate(
    dirs: &ProjectDirs,
    workstream: &Workstream,
    plan: &Plan,
    head: Option<&Sha>,
    supersede: &[UatId],
    now: Timestamp,
) -> Result<Uat, DiskError> {
    for entry in load_uats(&workstream.dir, UatStatus::Failed)? {
        if let QueueEntry::Good(old) = entry
            && supersede.contains(&old.id)
        {
            move_uat(&workstream.dir, UatStatus::Failed, &old.superseded())?;
        }
    }
    let number = 1 + highest_in(&all_dirs(dirs)?, &FOLDERS, PREFIX)?;
    let uat = new_uat(UatId::numbered(number), &workstream.meta.id, &plan.commits, head, now);
    save_uat(&workstream.dir, &uat)?;
    Ok(uat)
}

/// Moves a test to the folder of its status.
pub(crate) fn move_uat(workstream: &Path, from: UatStatus, uat: &Uat) -> Result<(), DiskError> {
    save_uat(workstream, uat)?;
    remove_entry(&workstream.join("uat").join(from.folder()), uat.id.as_str())
}

fn save_uat(workstream: &Path, uat: &Uat) -> Result<(), DiskError> {
    let dir = workstream.join("uat").join(uat.status.folder());
    save_entry(&dir, uat.id.as_str(), uat, &render_uat(uat))
}
