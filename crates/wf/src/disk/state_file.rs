//! State of a workstream beside its folder: one JSON file in the ops directory, replaced whole.

use std::path::PathBuf;

use model::id::WorkstreamId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::project_dirs::ProjectDirs;
use super::{DiskError, load_json, make_dir, remove_optional};
use crate::rules::schema::render_json;

const MODE: u32 = 0o600;

pub(crate) trait StateFile: Serialize + DeserializeOwned {
    /// End of the file's name.
    const SUFFIX: &'static str;

    /// Whether this state must survive a power failure.
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

    fn load(dirs: &ProjectDirs, id: &WorkstreamId) -> Result<Option<Self>, DiskError> {
        load_json(&Self::path(dirs, id))
    }

    fn save(&self, dirs: &ProjectDirs, id: &WorkstreamId) -> Result<(), DiskError> {
        make_dir(&dirs.state_dir())?;
        let (path, text) = (Self::path(dirs, id), render_json(self));
        if self.is_durable() {
            Ok(host::file::write_atomic(&path, text.as_bytes(), MODE)?)
        } else {
            Ok(host::file::write_transient(&path, text.as_bytes(), MODE)?)
        }
    }

    fn remove(dirs: &ProjectDirs, id: &WorkstreamId) -> Result<(), DiskError> {
        remove_optional(&Self::path(dirs, id))
    }
}
