//! State of a workstream in the ops directory, each in one JSON file that is replaced whole: the journal of the active
//! run, and the implementation that waits for tests and review.

use std::path::PathBuf;

use jiff::Timestamp;
use model::id::{MicroCommitId, Sha, WorkstreamId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::project_dirs::ProjectDirs;
use super::{DiskResult, load_json, make_dir, remove_optional};
use crate::rules::schema::render_json;

const MODE: u32 = 0o600;

pub(crate) trait StateFile: Serialize + DeserializeOwned {
    const SUFFIX: &'static str;

    /// Reports whether this state must survive a power failure.
    fn is_durable(&self) -> bool {
        true
    }

    /// The name includes the project's, because projects may share an ops directory.
    fn file_name(dirs: &ProjectDirs, id: &str) -> String {
        format!("{}.{id}.{}", dirs.project.name, Self::SUFFIX)
    }

    fn path(dirs: &ProjectDirs, id: &WorkstreamId) -> PathBuf {
        dirs.state_dir().join(Self::file_name(dirs, id.as_str()))
    }

    fn load(dirs: &ProjectDirs, id: &WorkstreamId) -> DiskResult<Option<Self>> {
        load_json(&Self::path(dirs, id))
    }

    fn save(&self, dirs: &ProjectDirs, id: &WorkstreamId) -> DiskResult<()> {
        make_dir(&dirs.state_dir())?;
        let (path, text) = (Self::path(dirs, id), render_json(self));
        if self.is_durable() {
            Ok(host::file::write_atomic(&path, text.as_bytes(), MODE)?)
        } else {
            Ok(host::file::write_transient(&path, text.as_bytes(), MODE)?)
        }
    }

    fn remove(dirs: &ProjectDirs, id: &WorkstreamId) -> DiskResult<()> {
        remove_optional(&Self::path(dirs, id))
    }
}

/// Journal of a run that is under way, or was when its process died; it is removed at the end of the run. It is written
/// before each step, so that the next command can finish what a crash interrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenRun {
    pub(crate) stem: String,
    pub(crate) directory: String,
    pub(crate) stage: String,
    pub(crate) started: Timestamp,
    pub(crate) micro_commit: Option<MicroCommitId>,
    /// The commit to accept, set once every gate has passed. From then on recovery rolls the run forward.
    pub(crate) accepted: Option<Sha>,
}

impl StateFile for OpenRun {
    const SUFFIX: &'static str = "run.json";

    /// Only an acceptance must survive a power failure; the rest only shows where a failed run died.
    fn is_durable(&self) -> bool {
        self.accepted.is_some()
    }
}

/// An implementation that passed its checks and waits for tests and review. It is recorded before the branch moves, so
/// that a crash or a signal neither loses the commit nor makes it twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Implemented {
    pub(crate) micro_commit: MicroCommitId,
    pub(crate) before: Sha,
    pub(crate) tip: Sha,
    /// The run whose import repository holds it until the branch has it.
    pub(crate) run: String,
    pub(crate) name: String,
}

impl StateFile for Implemented {
    const SUFFIX: &'static str = "implemented.json";
}
