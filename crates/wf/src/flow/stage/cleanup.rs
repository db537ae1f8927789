//! Cleanup after a run: ends boxes that outlived it, and removes copies that hold no work.

use std::path::Path;

use engine::box_dir::BoxDir;
use engine::launch::{self, BoxStatus};
use host::file::remove_tree_safely;

use super::StageResult;
use super::runner::{BOX_STATE, IMPORT_REPO, REVIEW_WORKSPACE, TEST_WORKSPACE, WORKSPACE};
use super::setup::SETUP_WORKSPACE;
use crate::disk::DiskResult;
use crate::disk::run_dir::{list_boxes, with_competitors};

/// Folders that hold an agent's work until it is on the branch.
const AGENTS_OWN: [&str; 2] = [WORKSPACE, IMPORT_REPO];

/// Ends every active box of a run, containers of killed shims included. Returns the number of active boxes.
pub(crate) async fn stop_boxes(run_dir: &Path) -> StageResult<usize> {
    let mut stopped = 0;
    for folder in list_boxes(run_dir)? {
        let box_dir = BoxDir::new(folder);
        match launch::box_status(&box_dir)? {
            BoxStatus::Running | BoxStatus::Orphaned => {
                launch::end(&box_dir).await?;
                stopped += 1;
            }
            BoxStatus::NeverStarted | BoxStatus::Ended(_) => {}
        }
    }
    Ok(stopped)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkLocation {
    OnBranch,
    /// The workspace may be its only place.
    Unknown,
}

/// Reports whether a run still has the agent's copy or the import repository.
pub(crate) fn has_copy(run_dir: &Path) -> bool {
    AGENTS_OWN.iter().any(|folder| run_dir.join(folder).exists())
}

pub(crate) fn remove_copy(run_dir: &Path) -> DiskResult<()> {
    for folder in AGENTS_OWN {
        remove_tree_safely(&run_dir.join(folder))?;
    }
    Ok(())
}

/// Removes the copies of a run and the programs in its box folders. The agent's copy is kept unless its work is on the
/// branch. Errors are ignored: a leftover folder only takes space.
pub(crate) fn tidy(run_dir: &Path, work: WorkLocation) {
    let mut folders = vec![TEST_WORKSPACE, REVIEW_WORKSPACE, SETUP_WORKSPACE, BOX_STATE];
    if work == WorkLocation::OnBranch {
        folders.extend(AGENTS_OWN);
    }
    for box_dir in list_boxes(run_dir).unwrap_or_default() {
        BoxDir::new(box_dir).slim().ok();
    }
    for run_dir in with_competitors(run_dir).unwrap_or_default() {
        for path in folders.iter().map(|folder| run_dir.join(folder)) {
            if path.exists() {
                remove_tree_safely(&path).ok();
            }
        }
    }
}
