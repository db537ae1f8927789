//! An implementation that passed its checks and waits for tests and review. It is recorded before the branch moves, so
//! that a crash or a signal neither loses the commit nor makes it twice.

use std::path::PathBuf;

use model::id::{MicroCommitId, Sha, WorkstreamId};
use serde::{Deserialize, Serialize};

use super::project_dirs::ProjectDirs;
use super::{DiskError, make_dir, read_optional, remove_optional};
use crate::rules::schema::render_json;

/// A commit that is, or is about to be, the tip of the workstream's branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Implemented {
    pub(crate) micro_commit: MicroCommitId,
    /// Tip of the branch before it.
    pub(crate) before: Sha,
    pub(crate) tip: Sha,
    /// The run whose import repository holds it until the branch has it.
    pub(crate) run: String,
    /// Its ref in that repository.
    pub(crate) name: String,
}

/// The file of one workstream.
#[derive(Debug, Clone)]
pub(crate) struct ImplementedFile {
    path: PathBuf,
}

impl ImplementedFile {
    pub(crate) fn of(dirs: &ProjectDirs, id: &WorkstreamId) -> Result<Self, DiskError> {
        make_dir(&dirs.state_dir())?;
        let name = format!("{}.{id}.implemented.json", dirs.project.name);
        Ok(Self { path: dirs.state_dir().join(name) })
    }

    pub(crate) fn load(&self) -> Result<Option<Implemented>, DiskError> {
        let Some(bytes) = read_optional(&self.path)? else { return Ok(None) };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| DiskError::invalid(&self.path, error))
    }

    pub(crate) fn save(&self, implemented: &Implemented) -> Result<(), DiskError> {
        Ok(host::file::write_atomic(&self.path, render_json(implemented).as_bytes(), 0o600)?)
    }

    /// Removes the record after a verdict.
    pub(crate) fn clear(&self) -> Result<(), DiskError> {
        remove_optional(&self.path)
    }
}
