//! Journal of the active run, written before each step, so that the next command can finish what a crash interrupted

use std::path::PathBuf;

use jiff::Timestamp;
use model::id::{MicroCommitId, Sha, WorkstreamId};
use serde::{Deserialize, Serialize};

use super::project_dirs::ProjectDirs;
use super::{DiskError, make_dir, read_optional, remove_optional};
use crate::rules::schema::render_json;

const MODE: u32 = 0o600;

/// A run that is under way, or was when its process died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenRun {
    pub(crate) stem: String,
    pub(crate) directory: String,
    /// Key of its current stage.
    pub(crate) stage: String,
    pub(crate) started: Timestamp,
    pub(crate) micro_commit: Option<MicroCommitId>,
    /// The commit to accept, set once every gate has passed. From then on recovery rolls the run forward.
    pub(crate) accepted: Option<Sha>,
}

/// The journal of one workstream.
#[derive(Debug, Clone)]
pub(crate) struct WfJournal {
    path: PathBuf,
}

impl WfJournal {
    /// Opens the journal of a workstream.
    pub(crate) fn of(dirs: &ProjectDirs, id: &WorkstreamId) -> Result<Self, DiskError> {
        make_dir(&dirs.state_dir())?;
        Ok(Self { path: dirs.state_dir().join(Self::name(dirs, id.as_str())) })
    }

    /// The name of its file.
    pub(crate) fn name(dirs: &ProjectDirs, id: &str) -> String {
        format!("{}.{id}.run.json", dirs.project.name)
    }

    /// Time of the last write.
    pub(crate) fn changed_at(&self) -> Option<Timestamp> {
        let changed = self.path.metadata().and_then(|facts| facts.modified()).ok()?;
        Timestamp::try_from(changed).ok()
    }

    /// Reads the unfinished run; `None` if the last one ended normally.
    pub(crate) fn load(&self) -> Result<Option<OpenRun>, DiskError> {
        let Some(bytes) = read_optional(&self.path)? else { return Ok(None) };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| DiskError::invalid(&self.path, error))
    }

    /// Writes the state of the run.
    pub(crate) fn save(&self, run: &OpenRun) -> Result<(), DiskError> {
        let text = render_json(run);
        // Only an acceptance must survive a power failure; the rest only shows where a failed run died.
        if run.accepted.is_some() {
            Ok(host::file::write_atomic(&self.path, text.as_bytes(), MODE)?)
        } else {
            Ok(host::file::write_transient(&self.path, text.as_bytes(), MODE)?)
        }
    }

    /// Removes the journal at the end of the run.
    pub(crate) fn close(&self) -> Result<(), DiskError> {
        remove_optional(&self.path)
    }
}
