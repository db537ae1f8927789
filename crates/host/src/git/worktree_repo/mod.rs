//! The user's repository with its workstreams. At the user's command worktrees are added and removed, and
//! branches are created, moved and deleted, each only if its tip is still the expected one.
//!
//! Nothing here forces a push, and nothing edits the configuration.

mod branch;
mod compare;
mod hook;
mod ignored;
mod sparse;
mod take;
mod worktree;

pub use branch::RemoteBranch;
pub(super) use branch::{argv_ls_remote, argv_ls_remote_ref, read_remote_branch, read_remote_ref};
pub use worktree::{DirtyPath, WorktreeEntry};

use std::ops::Deref;
use std::path::Path;

use super::call::Git;
use super::{GitError, GitLog, UserRepo};
use crate::signal::Cancel;

/// A repository whose worktrees and branches are administered.
#[derive(Clone, Debug)]
pub struct WorktreeRepo {
    user: UserRepo,
}

impl Deref for WorktreeRepo {
    type Target = UserRepo;

    fn deref(&self) -> &UserRepo {
        &self.user
    }
}

impl WorktreeRepo {
    pub async fn discover(dir: &Path) -> Result<Self, GitError> {
        Ok(Self { user: UserRepo::discover(dir).await? })
    }

    #[must_use]
    pub fn logged(self, log: GitLog) -> Self {
        Self { user: self.user.logged(log) }
    }

    #[must_use]
    pub fn cancelled_by(self, cancel: Cancel) -> Self {
        Self { user: self.user.cancelled_by(cancel) }
    }

    /// Returns the same repository for read-only queries.
    pub fn user(&self) -> &UserRepo {
        &self.user
    }

    fn git(&self) -> &Git {
        &self.user.git
    }

    /// Returns git in one of the worktrees.
    fn git_at(&self, dir: &Path) -> Git {
        Git { cwd: dir.to_path_buf(), ..self.git().clone() }
    }
}
