//! One run, one directory: created once, never reused, closed for ever.
//!
//! The directory belongs to the host alone (mode 0700). Only `workspace` and `harness-state` are ever mounted in a box;
//! the code that fills them creates them. A run is closed when its metadata is read-only: that file is written whole
//! in one step, so a run is never half closed.

mod find;

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use host::file::{FileError, write_atomic};
use jiff::Timestamp;
use model::id::{BoxName, ProjectName, RunId};
use model::redact::Redactor;
use serde::Serialize;

use crate::commands_log::COMMANDS_LOG;
use crate::env_snapshot::ENV_SNAPSHOT;
use crate::error::StoreError;
use crate::metadata::{self, METADATA};
use crate::operation_log::OPERATIONS;

pub use find::{find, is_newer, list, stamp_of};

/// The copy of the repository that the agent works in.
pub const WORKSPACE: &str = "workspace";
/// Files of the agent: its home, logs and answers.
pub const HARNESS_STATE: &str = "harness-state";
/// Bare repository of the host, into which commits are imported to be judged.
pub const REPO: &str = "repo.git";
/// Host-owned folders of the boxes of the run.
pub const BOXES: &str = "boxes";

const PRIVATE: u32 = 0o700;
const FINAL: u32 = 0o444;
const WRITE_BITS: u32 = 0o222;
/// More starts of one project in one second than any machine manages.
const MAX_ATTEMPTS: u32 = 1000;

/// The directory of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    id: RunId,
    path: PathBuf,
}

impl RunDir {
    /// Makes `<runs_root>/<project>_<YYYYMMDD_HHMMSS>`, in UTC, with `-2`, `-3` and so on when that
    /// name is taken. There is no check before the creation, so two starts in one second never get the same one.
    ///
    /// Names give the order of runs, so none is older than one that is there: after a clock that was ahead, the stamp stays where
    /// it was and only the number grows.
    pub fn create(
        runs_root: &Path,
        project: &ProjectName,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        DirBuilder::new()
            .recursive(true)
            .mode(PRIVATE)
            .create(runs_root)
            .map_err(FileError::io("make the directory", runs_root))?;
        let mut stamp = host::clock::stamp_utc(now);
        let mut first = 1;
        if let Some((newest, attempt)) = find::newest_age(runs_root)?.filter(|it| it.0 > stamp) {
            (stamp, first) = (newest, attempt.saturating_add(1));
        }
        for attempt in first..first.saturating_add(MAX_ATTEMPTS) {
            let id = RunId::new(project, &stamp, attempt)?;
            let path = runs_root.join(id.as_str());
            match DirBuilder::new().mode(PRIVATE).create(&path) {
                Ok(()) => return Ok(Self { id, path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(FileError::io("make the directory", &path)(error).into()),
            }
        }
        let first = RunId::new(project, &stamp, 1)?.to_string();
        Err(StoreError::Crowded { root: runs_root.to_path_buf(), first, attempts: MAX_ATTEMPTS })
    }

    /// Opens an existing run directory.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let not_a_run = |why| StoreError::NotARun { path: path.to_path_buf(), why };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(id) = find::parse_run_name(name) else {
            return Err(not_a_run("its name is not <project>_<YYYYMMDD_HHMMSS>"));
        };
        // Links are not followed: a run is a directory that this program created.
        match fs::symlink_metadata(path) {
            Ok(facts) if facts.is_dir() => Ok(Self { id, path: path.to_path_buf() }),
            Ok(_) => Err(not_a_run("it is not a directory")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(not_a_run("nothing is there"))
            }
            Err(error) => Err(FileError::io("look at", path)(error).into()),
        }
    }

    /// Returns the id, which is also the directory's name.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn workspace(&self) -> PathBuf {
        self.path.join(WORKSPACE)
    }

    pub fn harness_state(&self) -> PathBuf {
        self.path.join(HARNESS_STATE)
    }

    pub fn metadata_path(&self) -> PathBuf {
        self.path.join(METADATA)
    }

    pub fn commands_log(&self) -> PathBuf {
        self.path.join(COMMANDS_LOG)
    }

    pub fn env_snapshot(&self) -> PathBuf {
        self.path.join(ENV_SNAPSHOT)
    }

    pub fn operations(&self) -> PathBuf {
        self.path.join(OPERATIONS)
    }

    pub fn repo(&self) -> PathBuf {
        self.path.join(REPO)
    }

    pub fn box_dir(&self, name: &BoxName) -> PathBuf {
        self.path.join(BOXES).join(name.as_str())
    }

    /// Returns the number of the next box `<prefix>-<number>`. A box is never run twice: interrupted work is repeated in
    /// another one.
    pub fn next_box(&self, prefix: &str) -> u32 {
        let is_taken = |n: &u32| self.path.join(BOXES).join(format!("{prefix}-{n}")).exists();
        (1..).find(|n| !is_taken(n)).unwrap_or(1)
    }

    /// Writes the final metadata and makes all records read-only. Closing twice is an error.
    ///
    /// The metadata comes first because it is the mark: a crash after it leaves a closed run whose other records are
    /// still writable by mode, and every writer here checks the mark.
    pub fn close<T: Serialize>(&self, redactor: &Redactor, last: &T) -> Result<(), StoreError> {
        metadata::write(self, redactor, last, FINAL, write_atomic)?;
        for record in [self.operations(), self.commands_log(), self.env_snapshot()] {
            match fs::set_permissions(&record, Permissions::from_mode(FINAL)) {
                Ok(()) => {}
                // Not every run gets as far as each record.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(FileError::io("make read-only", &record)(error).into()),
            }
        }
        Ok(())
    }

    /// Returns whether the run is over. The mode decides: root may write to anything.
    pub fn is_closed(&self) -> bool {
        fs::symlink_metadata(self.metadata_path()).is_ok_and(|facts| facts.mode() & WRITE_BITS == 0)
    }

    /// Waits until the directory and the names in it are on disk. Creation does not wait: each effect of a run begins
    /// with a line in its operation log, and the first line waits.
    pub(crate) fn fsync(&self) -> Result<(), StoreError> {
        for dir in [Some(self.path.as_path()), self.path.parent()].into_iter().flatten() {
            File::open(dir)
                .and_then(|dir| dir.sync_all())
                .map_err(FileError::io("bring to disk", dir))?;
        }
        Ok(())
    }

    pub(crate) fn ensure_open(&self) -> Result<(), StoreError> {
        if self.is_closed() {
            return Err(StoreError::Closed { run: self.id.to_string() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
