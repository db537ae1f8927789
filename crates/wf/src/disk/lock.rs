//! Two kinds of lock: a workstream's, held for a whole run, and the global one of an ops directory, held for the
//! moment in which a registry is changed. Lock files are never removed.

use std::path::{Path, PathBuf};

use host::lock::{FileLock, LockKind, PassLock};
use model::id::WorkstreamId;

use super::project_dirs::ProjectDirs;
use super::{DiskResult, make_dir};

impl ProjectDirs {
    /// The lock file of a workstream. It includes the project's name, because projects may share an ops directory.
    pub(crate) fn workstream_lock(&self, id: &WorkstreamId) -> PathBuf {
        self.locks_dir().join(format!("workstream.{}.{id}.lock", self.project.name))
    }

    /// Reports whether a run of the workstream is active, or another command that excludes one.
    pub(crate) fn is_running(&self, id: &WorkstreamId) -> bool {
        host::lock::is_held(&self.workstream_lock(id)).unwrap_or(false)
    }

    pub(crate) async fn lock_global(&self, note: &str) -> DiskResult<FileLock> {
        self.acquire(&self.locks_dir().join("global.lock"), note).await
    }

    /// Same, and git holds the lock too while it works: a git that outlives a killed wf has then finished before the
    /// next command looks at what was left.
    pub(crate) async fn lock_global_with_git(&self, note: &str) -> DiskResult<FileLock> {
        let lock = self.lock_global(note).await?;
        lock.pass_to_children(PassLock::Yes)?;
        Ok(lock)
    }

    pub(crate) async fn lock_workstream(
        &self,
        id: &WorkstreamId,
        note: &str,
    ) -> DiskResult<FileLock> {
        self.acquire(&self.workstream_lock(id), note).await
    }

    async fn acquire(&self, path: &Path, note: &str) -> DiskResult<FileLock> {
        make_dir(&self.locks_dir())?;
        let timeout = Self::lock_timeout()?;
        Ok(FileLock::acquire(path, LockKind::Exclusive { note }, timeout).await?)
    }

    pub(crate) fn try_lock_workstream(
        &self,
        id: &WorkstreamId,
        note: &str,
    ) -> DiskResult<FileLock> {
        make_dir(&self.locks_dir())?;
        Ok(FileLock::try_acquire(&self.workstream_lock(id), LockKind::Exclusive { note })?)
    }
}
